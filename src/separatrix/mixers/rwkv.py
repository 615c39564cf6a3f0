"""RWKV-7 and RWKV-6: a matrix state that decays, and in RWKV-7 is overwritten too.

Every map m reads z^m_i, a mix of x_i and of x'_i = x_{i-1} (x'_1 = 0; the token shift). With
`gate=`, the norm is an RMS norm of each head; released layers have a group norm there, and their
gate reads a mix of its own. shifts=2: channel mixing follows (`ChannelMixing`), which also
remembers a token.
State: S^T (heads, head_dim, value_dim), the last input (width), and channel mixing's (width).
"""

from __future__ import annotations

from abc import abstractmethod
from math import exp

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.errors import SizeError
from separatrix.mixers.base.heads import Projected, split_heads
from separatrix.mixers.base.mixer import Shapes, State, linear, normed, taken, unbuilt, wide
from separatrix.mixers.base.recurrent import Decayed, Recurrence, RecurrentMixer, Terms, unit
from separatrix.mixers.base.tensors import Places, SomeTokens, Token, Tokens, TokensAt, Values
from separatrix.mixers.kernels import chosen
from separatrix.mixers.ops.delta_rule import low_rank
from separatrix.mixers.ops.maps import LowRank
from separatrix.stacks.mechanisms import RWKV

RANK = 32
DECAY_RANK = 64
DECAY = -exp(-0.5)
"""-e^{-1/2}: no decay of RWKV-7 is stronger than exp of it."""


class ChannelMixing(nn.Module):
    """C_i = V relu(K z^k_i)^2, times sigmoid(R z^r_i) where it is gated, with z^m_i = s_i +
    (s_{i-1} - s_i) * mu^m and s_0 = 0.
    """

    def __init__(self, width: int, hidden: int, *, gated: bool) -> None:
        super().__init__()
        self.mu = nn.Parameter(torch.empty(1 + gated, width))
        self.k = linear(width, hidden)
        self.v = linear(hidden, width)
        self.r = linear(width, width) if gated else None

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        self.mu.uniform_(generator=generator)

    def forward(self, s: SomeTokens, before: SomeTokens) -> SomeTokens:
        z, *gate = mixes(s, before, self.mu)
        y = self.v(F.relu(self.k(z)).square())
        return y if self.r is None else y * self.r(gate[0]).sigmoid()


class ShiftedMixer(RecurrentMixer):
    """Maps that read mixes of a token and the one before it, then a recurrence.

    Subclasses say what is mixed (`_mixed`: the inputs of r, k and v, then the gates'), and what the
    terms are. With shifts=2, channel mixing follows: it reads the mixer's input plus the output so
    far, scaled to a root mean square of 1, and is added. (A released layer has its residual stream
    there, of which a mixer sees the normed input alone.) Raises SizeError for a token shift of
    another width than the model, and for more than two.
    """

    def __init__(self, mechanism: RWKV, *, width: int, hidden: int, gated: bool) -> None:
        shifted = mechanism.model_width
        if shifted != width:
            raise SizeError(
                f"rwkv: its token shift holds width={shifted} numbers, but the model's width is"
                f" {width}; set width={width}"
            )
        # the token shift of time mixing, and of channel mixing
        unbuilt(mechanism, shifts=mechanism.shifts > 2)
        super().__init__(mechanism, width=width)
        self.mixing = ChannelMixing(width, hidden, gated=gated) if mechanism.shifts == 2 else None

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        if self.mixing is not None:
            self.mixing.reset(generator)

    def shapes(self, t: int) -> Shapes:
        last = (min(t, 1), self.width)
        shifts: Shapes = {"shift": last} | ({} if self.mixing is None else {"channel_shift": last})
        return {"S": (self.heads, self.head_dim, self.dv)} | shifts | self._conv_shapes(t)

    @abstractmethod
    def _mixed(self, x: SomeTokens, before: SomeTokens) -> list[SomeTokens]:
        """The inputs of r, k and v, then of the gates."""

    @abstractmethod
    def _mixed_terms(self, qkv: Projected, gates: list[Tokens]) -> Terms:
        """The terms of the recurrence from r, k and v and the inputs of the gates."""

    def _own(self, terms: Terms) -> Values | None:
        """What each token adds to its own output, past the state and its norm."""
        return None

    def _forward(self, x: Tokens) -> Tokens:
        r, k, v, *gates = self._mixed(x, _shifted(x))
        projected = self._convolve(self.q(r), self.k(k), self.v(v))
        terms = self._mixed_terms(self._heads_of(projected), gates)
        y = self.recurrence.outputs(terms, chunk=self.chunk, dtype=x.dtype)
        y = self._out(y, x, self._own(terms))
        if self.mixing is None:
            return y
        s = normed(x + y)
        return y + self.mixing(s, _shifted(s))

    def _at(self, x: Tokens, places: Places) -> TokensAt:
        return taken(self._forward(x), places)

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        r, k, v, *gates = self._mixed(x, state["shift"].sum(1))  # of no token before: 0
        projected, conv = self._convolve_step((self.q(r), self.k(k), self.v(v)), state)
        gates = [z[:, None] for z in gates]
        terms = self._mixed_terms(self._heads_of(projected), gates)
        y, new = self.recurrence.step(terms, self._summed(state), t)
        y = self._out(y, x[:, None], self._own(terms))[:, 0]
        # a copy: the caller may write into x
        after = self._store(**new) | conv | self._store(shift=x[:, None].clone())
        if self.mixing is None:
            return y, after
        s = normed(x + y)
        after |= self._store(channel_shift=s[:, None])
        return y + self.mixing(s, state["channel_shift"].sum(1)), after


def mixes(x: SomeTokens, before: SomeTokens, mu: Float[Tensor, "n w"]) -> list[SomeTokens]:
    """x + (before - x) * mu for every mu."""
    change = before - x
    return [torch.addcmul(x, change, one) for one in mu.unbind(0)]


def _shifted(x: Tokens) -> Tokens:
    """The token before each; 0 before the first."""
    return F.pad(x[:, :-1], (0, 0, 1, 0))


class DiagonalPlusRankOne(Recurrence):
    """RWKV-7's. Terms: r, k, v, log w, c and a * c, with log w of at least DECAY."""

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Values:
        r, k, v, log_w, erase, write = terms
        fast = chosen("rwkv7", k, v, dtype)
        # for S^T the change is -(a * c) c^T: c reads and takes the sign, a * c writes
        if fast is None:
            return low_rank(r, k, v, log_w, -erase, write, chunk=chunk, least=DECAY)
        return fast(r, k, v, log_w, -erase, write)

    def step(self, terms: Terms, state: State, t: int) -> tuple[Tensor, State]:
        r, k, v, log_w, erase, write = terms
        old = wide(state["S"])
        kept = log_w.exp().transpose(-1, -2) * old - write.transpose(-1, -2) * (erase @ old)
        new = kept + k.transpose(-1, -2) * v
        return r @ new, {"S": new}


class RWKVMixer(ShiftedMixer):
    """RWKV-7's time mixing, and channel mixing with shifts=2.

        S_i = S_{i-1} (diag(w_i) - c_i (a_i * c_i)^T) + v_i k_i^T,
        y_i = S_i r_i + (sum of r_i * k_i * p) v_i

    per head, * element by element, with z^m_i = x_i + (x'_i - x_i) * mu^m and

        r_i = Q z^r_i,   v_i = V z^v_i,   f_i = K z^k_i,
        w_i = exp(-e^{-1/2} sigmoid(W_2 tanh(W_1 z^w_i) + w_0)),
        a_i = sigmoid(A_2 A_1 z^a_i + a_0),
        c_i = f_i * g scaled to unit length,   k_i = f_i * (1 + (a_i - 1) * h)

    W_1 and A_1 map to 32 numbers; g, h, p are learned numbers per head and dimension. The norm is
    taken of S_i r_i, before the token's own term is added. The value residual from the first layer
    is between layers and left out. Channel mixing: V relu(K z)^2 through 4 width numbers.
    Source: Peng et al. 2025, arXiv 2503.14456, section 4.
    Parallel form: chunks (ops/delta_rule.py, general form).
    """

    recurrence = DiagonalPlusRankOne()

    def __init__(self, mechanism: RWKV, *, width: int) -> None:
        super().__init__(mechanism, width=width, hidden=4 * width, gated=False)
        numbers = self.heads * self.head_dim
        self.mu = nn.Parameter(torch.empty(5, width))  # of r, k, v, w, a
        self.w = LowRank(width, RANK, numbers, tanh=True)
        self.a = LowRank(width, RANK, numbers)
        self.erased = nn.Parameter(torch.empty(self.heads, self.head_dim))
        self.written = nn.Parameter(torch.empty(self.heads, self.head_dim))
        self.bonus = nn.Parameter(torch.empty(self.heads, self.head_dim))

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        self.mu.uniform_(generator=generator)
        self.w.up.bias.uniform_(-6, 1, generator=generator)
        self.erased.fill_(1)
        self.written.fill_(1)
        self.bonus.zero_()

    def _mixed(self, x: SomeTokens, before: SomeTokens) -> list[SomeTokens]:
        return mixes(x, before, self.mu)

    def _mixed_terms(self, qkv: Projected, gates: list[Tokens]) -> Terms:
        """r, k, v, then log w, c and a * c (all b h t d)."""
        r, f, v = qkv
        for_w, for_a = gates
        log_w = DECAY * wide(split_heads(self.w(for_w), self.heads)).sigmoid()
        a = wide(split_heads(self.a(for_a), self.heads)).sigmoid()
        erase = unit(f * self.erased[:, None])
        return r, f * (1 + (a - 1) * self.written[:, None]), v, log_w, erase, a * erase

    def _own(self, terms: Terms) -> Values:
        r, k, v = terms[:3]
        return (r * k * self.bonus[:, None]).sum(-1, keepdim=True) * v


class DecayedBefore(Recurrence):
    """RWKV-6's. Terms: r, k, v, log w and p (h 1 d)."""

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Values:
        r, k, v, log_w, bonus = terms
        # token i reads what token i - 1 left: its query stands there, and the first reads nothing
        early = F.pad(r[:, :, 1:], (0, 0, 0, 1))
        read = Decayed().outputs((early, k, v, log_w), chunk=chunk, dtype=dtype)
        own = (r * k * bonus).sum(-1, keepdim=True) * v
        return F.pad(read[:, :, :-1], (0, 0, 1, 0)) + own

    def step(self, terms: Terms, state: State, t: int) -> tuple[Tensor, State]:
        r, k, v, log_w, bonus = terms
        old = wide(state["S"])
        y = r @ old + (r * k * bonus).sum(-1, keepdim=True) * v
        return y, {"S": log_w.exp().transpose(-1, -2) * old + k.transpose(-1, -2) * v}


class RWKV6Mixer(ShiftedMixer):
    """RWKV-6's time mixing, and channel mixing with shifts=2.

        S_i = S_{i-1} diag(w_i) + v_i k_i^T,   y_i = (S_{i-1} + v_i (p * k_i)^T) r_i

    per head, * element by element: the token itself is read with a weight p of its own, before it
    joins the state, with

        z^m_i = x_i + (x'_i - x_i) * (mu^m + B^m tanh(A^m (x_i + (x'_i - x_i) * mu))):
        r_i = Q z^r_i,   k_i = K z^k_i,   v_i = V z^v_i,
        w_i = exp(-exp(W_2 tanh(W_1 z^w_i) + w_0))

    A^m maps to 32 numbers, W_1 to 64; mu and p are learned. Channel mixing: sigmoid(R z^r) * V
    relu(K z^k)^2 through 7/2 width numbers.
    Source: Peng et al. 2024, arXiv 2404.05892, section 4.
    Parallel form: chunks (ops/decay.py), the queries moved back by one token.
    """

    recurrence = DecayedBefore()

    def __init__(self, mechanism: RWKV, *, width: int) -> None:
        super().__init__(mechanism, width=width, hidden=7 * width // 2, gated=True)
        self.mu = nn.Parameter(torch.empty(width))
        inputs = 4  # of r, k, v, w
        self.mus = nn.Parameter(torch.empty(inputs, width))
        self.down = linear(width, inputs * RANK)
        self.up = nn.Parameter(torch.empty(inputs, width, RANK))
        self.w = LowRank(width, DECAY_RANK, self.heads * self.head_dim, tanh=True)
        self.bonus = nn.Parameter(torch.empty(self.heads, self.head_dim))

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        self.mu.uniform_(generator=generator)
        self.mus.uniform_(generator=generator)
        # decays then lie around exp(-e^-6) to exp(-e^-1)
        self.w.up.bias.uniform_(-6, -1, generator=generator)
        self.bonus.uniform_(generator=generator)

    def _mixed(self, x: SomeTokens, before: SomeTokens) -> list[SomeTokens]:
        change = before - x
        low = self.down(torch.addcmul(x, change, self.mu)).tanh().unflatten(-1, (-1, RANK))
        return [
            torch.addcmul(x, change, mu + part @ up.mT)
            for mu, part, up in zip(self.mus, low.unbind(-2), self.up, strict=True)
        ]

    def _mixed_terms(self, qkv: Projected, gates: list[Tokens]) -> Terms:
        """r, k, v and log w (all b h t d), and p."""
        (for_w,) = gates
        log_w = -wide(split_heads(self.w(for_w), self.heads)).exp()
        return *qkv, log_w, wide(self.bonus)[:, None]
