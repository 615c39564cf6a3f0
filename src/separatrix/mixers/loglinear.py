"""Log-linear attention over linear attention, Mamba-2 and Gated DeltaNet.

    y_i = sum_l lambda_i^(l) S_i^(l) q_i,
    S_i^(l) = sum over the tokens j of bucket l of v_j k_j^T M_{j+1} ... M_i

with q = phi(Q x_i), k = phi(K x_j), M_i = 1 over linear attention (phi as in linear.py,
no normaliser); q, k, v and M_i = a_i of decayed.py over Mamba-2, whose groups are `key_heads` here
and whose state size head_dim; q, k, b_j v_j and M_i = a_i (I - b_i k_i k_i^T) of delta.py over
Gated DeltaNet. Tokens are counted from 0. The i tokens before token i fall into one bucket
of 2^l tokens for every bit l that is set in i, the largest bucket first. The bucket of bit l is
level l+1; token i itself is a bucket of its own, level 0. So token j <= i stands at level
bit_length(i xor j). The weights are lambda_i = softplus(Lambda x_i). With all lambda
equal to 1 these are the mixers beneath.
Source: Guo et al. 2025, arXiv 2506.04761, sections 3.1 and 3.3; over Mamba-2 released as fla's
LogLinearMamba2. State after t tokens: S (floor(log2 t) + 1, heads, d_phi, value_dim), slot l the
bucket of bit l of t, 0 where that bit is not set; every later token moves it by its M. A new token
joins slot 0; two buckets of one size merge into the next slot, as in adding 1 to t in binary.
Buckets merge right after the token, not right before the next one as in the paper: the outputs are
the same, and what is carried is counted in full. Parallel form: chunks of a power of two tokens.
Inside a chunk the levels weigh the scores of the mixer beneath; above it `climb` climbs.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from separatrix.core.errors import SizeError
from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import Mixer, Shapes, State, join_chunks, wide
from separatrix.mixers.base.recurrent import Recurrence, RecurrentMixer, Terms
from separatrix.mixers.base.tensors import (
    Keys,
    Matrices,
    Matrix,
    OneQuery,
    OneRead,
    Reads,
    Tokens,
    Values,
)
from separatrix.mixers.decayed import SteppedMixer
from separatrix.mixers.delta import DeltaMixer
from separatrix.mixers.kernels import chosen
from separatrix.mixers.linear import features, kernel
from separatrix.mixers.ops.decay import after, bounded, scores
from separatrix.mixers.ops.delta_rule import Delta
from separatrix.stacks.mechanisms import LogLinear

LEVELS = 32
"""Levels a mixer has weights for: sequences of up to 2^31 tokens."""


class LevelWeights(nn.Linear):
    """lambda_i = softplus(Lambda x_i), rows of Lambda: level first, then head."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, LEVELS * heads, bias=False)
        self.heads = heads

    def of(self, x: Tokens, tokens: int) -> Float[Tensor, "b h t l"]:
        """lambda for the levels that a sequence of so many tokens has. Raises SizeError for more
        than 2^31.
        """
        # i xor j has at most the bits of the last place; level l+1 is for bit l
        used = (tokens - 1).bit_length() + 1
        if used > LEVELS:
            raise SizeError(
                f"token {tokens} of log-linear attention; it has weights for {LEVELS} levels,"
                f" enough for 2^{LEVELS - 1} tokens"
            )
        logits = F.linear(x, self.weight[: used * self.heads])
        return rearrange(F.softplus(wide(logits)), "b t (l h) -> b h t l", h=self.heads)


def levels(i: Int[Tensor, "*#b"], j: Int[Tensor, "*#b"]) -> Int[Tensor, "*b"]:
    """The level at which token i sees token j <= i: bit_length(i xor j)."""
    # x = m 2^e with 1/2 <= m < 1, and e = 0 for x = 0
    return torch.frexp((i ^ j).double()).exponent.long()


def chunk_size(chunk: int, tokens: int) -> int:
    """The largest power of two up to both."""
    return 1 << (min(chunk, tokens).bit_length() - 1)


def split_runs(x: Keys, chunk: int) -> Float[Tensor, "b h n c d"]:
    """Chunks of `chunk` tokens, a power of two of them, filled up with zeros."""
    chunks = 1 << (-(-x.shape[2] // chunk) - 1).bit_length()
    return rearrange(
        F.pad(x, (0, 0, 0, chunks * chunk - x.shape[2])), "b h (n c) d -> b h n c d", n=chunks
    )


def inside_chunk(weights: Float[Tensor, "b h n c l"]) -> Float[Tensor, "b h n c c"]:
    """lambda_i at the level of token j, for i and j in one chunk."""
    place = torch.arange(weights.shape[3], device=weights.device)
    inside = levels(place[:, None], place)
    return weights.gather(-1, inside.expand(*weights.shape[:3], *inside.shape))


def climb(
    y: Float[Tensor, "b h n c e"],
    q: Float[Tensor, "b h n c d"],
    sums: Matrices,
    weights: Float[Tensor, "b h n c l"],
    tokens: int,
    passed: Float[Tensor, "b h n #d #d"] | None = None,
) -> Values:
    """What all tokens read: y inside their chunk, and above it, level by level, the tokens of every
    odd run of chunks the state of the even run before it: O(T log T).

    q are the queries as they read the state before their chunk, `sums` what a chunk adds, `passed`
    what it makes of the state before it: nothing, a factor, or a matrix.
    """
    chunk = q.shape[3]
    # chunks have 2^p tokens: the first level above them is that of bit p, p + 1
    level = (chunk - 1).bit_length() + 1
    while sums.shape[2] > 1:
        even, odd = _pairs(sums)
        runs = rearrange(q, "b h (m two r) c d -> two b h m (r c) d", two=2, m=even.shape[2])
        weight = rearrange(
            weights[..., level], "b h (m two r) c -> two b h m (r c)", two=2, m=even.shape[2]
        )[1]
        y = y + _to_odd_runs(weight[..., None] * (runs[1] @ even), chunk)
        if passed is None:
            sums = even + odd
        else:
            first, second = _pairs(passed)
            factor = first.shape[-1] == 1
            # at the next level the queries of odd runs reach further back, through the even run
            through = torch.stack([runs[0], first * runs[1] if factor else runs[1] @ first])
            q = rearrange(through, "two b h m (r c) d -> b h (m two r) c d", c=chunk)
            sums = (second * even if factor else second @ even) + odd
            passed = second * first if factor else second @ first
        level = level + 1
    return join_chunks(y, tokens)


def _pairs(x: Matrices) -> tuple[Tensor, ...]:
    """The even runs and the odd ones."""
    return rearrange(x, "b h (m two) d e -> two b h m d e", two=2).unbind(0)


def _to_odd_runs(read: Float[Tensor, "b h m s e"], chunk: int) -> Float[Tensor, "b h n c e"]:
    """What the tokens of every odd run of chunks read, among zeros for the even runs."""
    return rearrange(
        F.pad(read[:, :, :, None], (0, 0, 0, 0, 1, 0)),
        "b h m two (r c) e -> b h (m two r) c e",
        c=chunk,
    )


def read_slots(
    q: OneQuery, own: Matrix, slots: list[Tensor], weights: Float[Tensor, "b h 1 l"]
) -> OneRead:
    """The output of one token: its own state is level 0, the slot of bit l is level l+1."""
    states = torch.stack([own, *slots], 1)
    return torch.einsum("bhl,bhtd,blhde->bhte", weights[:, :, 0], q, states)


def slots_after(slots: list[Tensor], own: Tensor, t: int) -> Tensor:
    """The buckets (b l h d e) after token t: its own state joins slot 0; two buckets of one size
    merge into the next, as in adding 1 to t.
    """
    # trailing ones of t: the buckets that merge with the new token
    full = (~t & (t + 1)).bit_length() - 1
    merged = sum(slots[:full], own)
    return torch.stack([*[torch.zeros_like(own)] * full, merged, *slots[full + 1 :]], 1)


class Buckets(Recurrence):
    """A recurrence over the buckets of a Fenwick tree. Terms: those of the recurrence beneath, and
    last the weights of the levels (b h r l).
    """

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Reads:
        q, k, v, *_, weights = terms
        tokens = k.shape[2]
        if q.shape[2] < tokens:
            place = torch.arange(tokens, device=k.device)
            return (self._last(terms) * weights[..., levels(place[-1], place)]) @ v
        return self._every(terms, chunk_size(chunk, tokens), dtype)

    def step(self, terms: Terms, state: State, t: int) -> tuple[OneRead, State]:
        q, own, slots = self._moved(terms, wide(state["S"]))
        before = list(slots.unbind(1))
        return read_slots(q, own, before, terms[-1]), {"S": slots_after(before, own, t)}

    def _last(self, terms: Terms) -> Float[Tensor, "b h 1 t"]:
        """The scores of the last query; only where `reads_last`."""
        raise NotImplementedError

    @abstractmethod
    def _every(self, terms: Terms, chunk: int, dtype: torch.dtype) -> Values:
        """The outputs of all tokens, in chunks of a power of two of them."""

    @abstractmethod
    def _moved(
        self, terms: Terms, slots: Float[Tensor, "b l h d e"]
    ) -> tuple[OneQuery, Matrix, Float[Tensor, "b l h d e"]]:
        """The query of one token, its own state, and the slots after it."""


class Sums(Buckets):
    """Of linear attention. Terms: q, k, v, before the feature map."""

    def __init__(self, feature: str) -> None:
        self.feature = feature

    def _last(self, terms: Terms) -> Float[Tensor, "b h 1 t"]:
        return kernel(self.feature, *terms[:2])

    def _every(self, terms: Terms, chunk: int, dtype: torch.dtype) -> Values:
        q, k, v, weights = terms
        fast = chosen("log_linear", k, v, dtype)
        if fast is None:
            return fenwick(self.feature, q, k, v, weights, chunk=chunk)
        return fast(features(self.feature, q), features(self.feature, k), v, weights)

    def _moved(self, terms: Terms, slots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, _ = terms
        own = features(self.feature, k).transpose(-1, -2) * v
        return features(self.feature, q), own, slots


def fenwick(
    feature: str, q: Keys, k: Keys, v: Values, weights: Float[Tensor, "b h t l"], *, chunk: int
) -> Values:
    """sum_{j<=i} weights[i, level(i, j)] <phi(q_i), phi(k_j)> v_j for every i."""
    tokens = q.shape[2]
    q, k, v, weights = (split_runs(x, chunk) for x in (q, k, v, weights))
    y = (kernel(feature, q, k) * inside_chunk(weights)).tril() @ v
    if q.shape[2] == 1:
        return join_chunks(y, tokens)
    sums = features(feature, k).transpose(-1, -2) @ v  # b h n f e
    return climb(y, features(feature, q), sums, weights, tokens)


class DecayedSums(Buckets):
    """Of Mamba-2. Terms: q, k, v and log a (b h t 1)."""

    def _last(self, terms: Terms) -> Float[Tensor, "b h 1 t"]:
        q, k, _, log_a, _ = terms
        return q @ k.mT * after(bounded(log_a)).exp().mT

    def _every(self, terms: Terms, chunk: int, dtype: torch.dtype) -> Values:
        tokens = terms[0].shape[2]
        q, k, v, log_a, weights = (split_runs(x, chunk) for x in terms)
        log_a = bounded(log_a)
        total = log_a.cumsum(3)  # b h n c 1
        y = (scores(q, k, log_a, total) * inside_chunk(weights)) @ v
        sums = (after(log_a).exp() * k).mT @ v  # b h n d e
        # a query as it reads the state before its run of chunks
        return climb(y, total.exp() * q, sums, weights, tokens, total[:, :, :, -1:].exp())

    def _moved(self, terms: Terms, slots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, log_a, _ = terms
        # the token's own value does not decay
        return q, k.transpose(-1, -2) * v, log_a.exp()[:, None] * slots


class DeltaSums(Buckets):
    """Of Gated DeltaNet. Terms: q, k, v, log a and the strength b."""

    reads_last = False

    def _every(self, terms: Terms, chunk: int, dtype: torch.dtype) -> Values:
        tokens = terms[0].shape[2]
        q, k, v, log_a, b, weights = (split_runs(x, chunk) for x in terms)
        delta = Delta(*(x.flatten(2, 3) for x in (k, v, log_a, b, q)), chunk=chunk)
        # the share of every v_j apart (reads (I + L)^-1 diag(b)), for levels to weigh
        y = (delta.reads @ delta.inverse * inside_chunk(weights)).tril() @ v
        transition, sums = delta.passed()
        # a query as it reads the state before its run of chunks
        return climb(y, delta.queries(), sums, weights, tokens, transition)

    def _moved(self, terms: Terms, slots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, log_a, b, _ = terms
        k = k[:, None]  # b 1 h 1 d, beside the slots
        b = b[:, None]
        decayed = log_a.exp()[:, None] * slots
        own = (k.transpose(-1, -2) * (b * v[:, None]))[:, 0]
        # every bucket is overwritten by the token, its value is in the newest alone
        return q, own, decayed - k.transpose(-1, -2) * (b * (k @ decayed))


class _Levelled(Mixer):
    """Slots and level weights. Raises SizeError for a token after the 2^31st."""

    level: LevelWeights

    def shapes(self, t: int) -> Shapes:
        slots, *conv = super().shapes(t).items()
        return {"S": (t.bit_length(), *slots[1])} | dict(conv)

    def _terms(self, qkv: Projected, x: Tokens, start: int) -> Terms:
        # weights are asked for where queries are
        weights = self.level.of(x[:, -qkv[0].shape[2] :], start + x.shape[1])
        return *super()._terms(qkv, x, start), weights  # type: ignore[misc]


class LogLinearMixer(_Levelled, RecurrentMixer):
    """Log-linear attention with a feature map."""

    def __init__(self, mechanism: LogLinear, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.feature = mechanism.feature
        self.level = LevelWeights(width, self.heads)
        self.recurrence = Sums(self.feature)


class LogLinearMamba2Mixer(_Levelled, SteppedMixer):
    """Log-linear Mamba-2."""

    recurrence = DecayedSums()

    def __init__(self, mechanism: LogLinear, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.level = LevelWeights(width, self.heads)
        self._add_steps(width)


class LogLinearGDNMixer(_Levelled, DeltaMixer):
    """Log-linear Gated DeltaNet."""

    recurrence = DeltaSums()
    decay = "head"

    def _add_gates(self, width: int) -> None:
        self.level = LevelWeights(width, self.heads)
        super()._add_gates(width)
