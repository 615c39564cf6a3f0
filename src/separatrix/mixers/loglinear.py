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

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from separatrix.core.errors import SizeError
from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import Mixer, Shapes, State, join_chunks, taken_heads, wide
from separatrix.mixers.base.recurrent import Decayed, Recurrence, RecurrentMixer, Terms
from separatrix.mixers.base.tensors import Keys, Matrices, Tokens, Values
from separatrix.mixers.decayed import SteppedMixer
from separatrix.mixers.delta import DeltaMixer
from separatrix.mixers.kernels import chosen
from separatrix.mixers.linear import Sums, features, kernel
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


def split_runs(x: Keys, chunk: int) -> Float[Tensor, "b h n c d"]:
    """Chunks of `chunk` tokens, a power of two of them, filled up with zeros."""
    chunks = 1 << (-(-x.shape[2] // chunk) - 1).bit_length()
    return rearrange(
        F.pad(x, (0, 0, 0, chunks * chunk - x.shape[2])), "b h (n c) d -> b h n c d", n=chunks
    )


def climb(
    y: Float[Tensor, "b h n c e"],
    q: Float[Tensor, "b h n c d"],
    sums: Matrices,
    passed: Float[Tensor, "b h n #d #d"] | None,
    weights: Float[Tensor, "b h n c l"],
    tokens: int,
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
        # zeros for the even runs
        read = F.pad((weight[..., None] * (runs[1] @ even))[:, :, :, None], (0, 0, 0, 0, 1, 0))
        y = y + rearrange(read, "b h m two (r c) e -> b h (m two r) c e", c=chunk)
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
    return rearrange(x, "b h (m two) d e -> two b h m d e", two=2).unbind(0)


class Buckets(Recurrence):
    """A recurrence over the buckets of a Fenwick tree: in every bucket the one beneath it. Terms:
    those of that one, and last the weights of the levels of all tokens (b h t l).
    """

    def __init__(self, beneath: Recurrence) -> None:
        self.beneath = beneath
        # what a delta rule writes hangs on all before it: levels cannot weigh it token by token
        self.most = 0 if getattr(beneath, "overwrites", False) else math.inf

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Values:
        q, k, v, *_, weights = terms
        if isinstance(self.beneath, Sums):
            fast = chosen("log_linear", k, v, dtype)
            if fast is not None:
                feature = self.beneath.feature
                return fast(features(feature, q), features(feature, k), v, weights)
        tokens = v.shape[2]
        # the largest power of two up to both
        chunk = 1 << (min(chunk, tokens).bit_length() - 1)
        q, k, v, *rest, weights = (split_runs(x, chunk) for x in terms)
        shares, above = in_chunk(self.beneath, q, k, v, *rest)
        place = torch.arange(chunk, device=v.device)
        # lambda_i at the level of token j, for i and j in one chunk
        inside = weights.gather(-1, levels(place[:, None], place).expand_as(shares))
        y = (shares * inside).tril() @ v
        if y.shape[2] == 1:
            return join_chunks(y, tokens)
        return climb(y, *above(), weights, tokens)

    def shares(
        self, terms: Terms, places: Int[Tensor, "b r"], chunk: int
    ) -> tuple[Float[Tensor, "b h r t"], Values]:
        *inputs, weights = terms
        shares, v = self.beneath.shares(tuple(inputs), places, chunk)
        # later tokens have no share, at whatever level
        level = levels(places[:, :, None], torch.arange(v.shape[2], device=v.device))
        level = level[:, None].expand(-1, v.shape[1], -1, -1)
        return shares * taken_heads(weights, places).gather(3, level), v

    def step(self, terms: Terms, state: State, t: int) -> tuple[Tensor, State]:
        """The token's own state is level 0, the slot of bit l level l+1. It joins slot 0; two
        buckets of one size merge into the next, as in adding 1 to t.
        """
        *inputs, weights = terms
        q, k, v, *rest = inputs
        slots = wide(state["S"])  # b l h d e
        empty = {"S": torch.zeros_like(k.mT * v)}
        y, own = self.beneath.step(tuple(inputs), empty, t)
        # the token's value is in its own state alone
        beside = tuple(x[:, None] for x in (q, k, torch.zeros_like(v), *rest))
        read, moved = self.beneath.step(beside, {"S": slots}, t)
        y = torch.einsum(
            "bhl,blhe->bhe", weights[:, :, 0], torch.cat([y[:, None], read], 1)[:, :, :, 0]
        )
        before = list(moved["S"].unbind(1))
        # trailing ones of t: the buckets that merge with the new token
        full = (~t & (t + 1)).bit_length() - 1
        merged = sum(before[:full], own["S"])
        after = [*[torch.zeros_like(merged)] * full, merged, *before[full + 1 :]]
        return y[:, :, None], {"S": torch.stack(after, 1)}


Above = Callable[[], tuple[Tensor, Tensor, Tensor | None]]
"""What `climb` asks for between y and the weights."""


def in_chunk(
    beneath: Recurrence, q: Tensor, k: Tensor, v: Tensor, *rest: Tensor
) -> tuple[Tensor, Above]:
    """What each token of a chunk takes of v of the earlier ones (b h n c c), and: the queries as
    they read the state before the chunk, what the chunk adds to it, and what it makes of it.
    """
    if isinstance(beneath, Sums):
        phi = partial(features, beneath.feature)
        return kernel(beneath.feature, q, k), lambda: (phi(q), phi(k).mT @ v, None)
    if len(rest) == 1:
        log_a = bounded(rest[0])
        total = log_a.cumsum(3)  # b h n c 1
        return scores(q, k, log_a, total), lambda: (
            total.exp() * q,
            (after(log_a).exp() * k).mT @ v,
            total[:, :, :, -1:].exp(),
        )
    chunk = q.shape[3]
    delta = Delta(*(x.flatten(2, 3) for x in (k, v, *rest, q)), chunk=chunk)
    # the share of every v_j apart: reads (I + L)^-1 diag(b)
    assert delta.reads is not None
    return delta.reads @ delta.inverse, delta.passed


class _Levelled(Mixer):
    """Slots and level weights. Raises SizeError for a token after the 2^31st."""

    level: LevelWeights

    def shapes(self, t: int) -> Shapes:
        slots, *conv = super().shapes(t).items()
        return {"S": (t.bit_length(), *slots[1])} | dict(conv)

    def _terms(self, qkv: Projected, x: Tokens, start: int) -> Terms:
        weights = self.level.of(x, start + x.shape[1])
        return *super()._terms(qkv, x, start), weights  # type: ignore[misc]


class LogLinearMixer(_Levelled, RecurrentMixer):
    """Log-linear attention with a feature map."""

    def __init__(self, mechanism: LogLinear, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.feature = mechanism.feature
        self.level = LevelWeights(width, self.heads)
        self.recurrence = Buckets(Sums(self.feature, normaliser=False))


class LogLinearMamba2Mixer(_Levelled, SteppedMixer):
    """Log-linear Mamba-2."""

    recurrence = Buckets(Decayed(scalar=True))

    def __init__(self, mechanism: LogLinear, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.level = LevelWeights(width, self.heads)
        self._add_steps(width)


class LogLinearGDNMixer(_Levelled, DeltaMixer):
    """Log-linear Gated DeltaNet."""

    recurrence = Buckets(Decayed(scalar=True, overwrites=True))
    decay = "head"

    def _add_gates(self, width: int) -> None:
        self.level = LevelWeights(width, self.heads)
        super()._add_gates(width)
