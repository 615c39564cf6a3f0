"""RWKV's mixers with a matrix state: maps that read a mix of each token and the one before it (the
token shift), and channel mixing behind them.

Shapes: b batch, t tokens, w model width, h heads, e value dimension.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.errors import SizeError
from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import Shapes, State, linear, taken, wide
from separatrix.mixers.base.recurrence import Terms
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.base.tensors import Places, SomeTokens, Token, Tokens, TokensAt, Values
from separatrix.stacks.mechanisms import RWKV

EPSILON = 1e-6
"""Added to the mean square under the root of the norm before channel mixing."""


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
        if mechanism.shifts > 2:
            raise SizeError(
                f"rwkv: shifts={mechanism.shifts}; the mixer has the token shift of time mixing,"
                " and of channel mixing: set shifts=1 or shifts=2"
            )
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
        s = _normed(x + y)
        return y + self.mixing(s, _shifted(s))

    def _at(self, x: Tokens, places: Places) -> TokensAt:
        return taken(self._forward(x), places)

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        r, k, v, *gates = self._mixed(x, state["shift"].sum(1))  # of no token before: 0
        projected, conv = self._convolve_step(self.q(r), self.k(k), self.v(v), state)
        gates = [z[:, None] for z in gates]
        terms = self._mixed_terms(self._heads_of(projected), gates)
        y, new = self.recurrence.step(terms, self._summed(state), t)
        y = self._out(y, x[:, None], self._own(terms))[:, 0]
        # a copy: the caller may write into x
        after = self._store(**new, **conv, shift=x[:, None].clone())
        if self.mixing is None:
            return y, after
        s = _normed(x + y)
        after |= self._store(channel_shift=s[:, None])
        return y + self.mixing(s, state["channel_shift"].sum(1)), after


def mixes(x: SomeTokens, before: SomeTokens, mu: Float[Tensor, "n w"]) -> list[SomeTokens]:
    """x + (before - x) * mu for every mu."""
    change = before - x
    return [torch.addcmul(x, change, one) for one in mu.unbind(0)]


def _shifted(x: Tokens) -> Tokens:
    """The token before each; 0 before the first."""
    return F.pad(x[:, :-1], (0, 0, 1, 0))


def _normed(x: SomeTokens) -> SomeTokens:
    """x / rms(x)."""
    scale = (wide(x).square().mean(-1, keepdim=True) + EPSILON).rsqrt()
    return (wide(x) * scale).to(x.dtype)
