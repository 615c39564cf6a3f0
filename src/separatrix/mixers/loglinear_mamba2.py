"""Log-linear attention over Mamba-2.

    y_i = sum_l lambda_i^(l) S_i^(l) C_i + E x_i,
    S_i^(l) = sum over the tokens j of bucket l of a_{j+1} ... a_i D_j x_j B_j^T

with x, B, C (here `v`, `k` and `q`), D, a and E as in mamba2.py, its groups called `key_heads` and
its state size head_dim; buckets, levels and lambda as in loglinear.py. With all lambda equal to 1
this is Mamba-2.
Source: Guo et al. 2025, arXiv 2506.04761, section 3.3; released as fla's LogLinearMamba2.
State: as in loglinear.py, with d_phi = head_dim (the paper's N): every bucket's state decays with
every later token.
Parallel form: inside a chunk of a power of two tokens the decayed scores (ops/decay.py) weighed by
the levels. Above it, level by level, the tokens of every odd run of chunks read the state of the
even run before it, decayed by the tokens in between: O(T log T).
"""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import Shapes, State, join_chunks, wide
from separatrix.mixers.base.recurrence import Recurrence, Terms
from separatrix.mixers.base.stepped import SteppedMixer
from separatrix.mixers.ops.decay import after, bounded, scores
from separatrix.mixers.ops.fenwick import (
    LevelWeights,
    chunk_size,
    inside_chunk,
    levels,
    read_slots,
    slots_after,
    split_runs,
    to_odd_runs,
)
from separatrix.stacks.mechanisms import LogLinear


class FenwickDecayed(Recurrence):
    """Decaying sums over the buckets of a Fenwick tree. Terms: q, k, v, log a (b h t 1) and the
    weights of the levels (b h r l).
    """

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Float[Tensor, "b h r e"]:
        q, k, v, log_a, weights = terms
        tokens = k.shape[2]
        if q.shape[2] < tokens:
            place = torch.arange(tokens, device=k.device)
            kept = after(bounded(log_a)).exp().mT  # b h 1 t
            return (q @ k.mT * kept * weights[..., levels(place[-1], place)]) @ v
        return fenwick(q, k, v, log_a, weights, chunk=chunk_size(chunk, tokens))

    def step(self, terms: Terms, state: State, t: int) -> tuple[Float[Tensor, "b h 1 e"], State]:
        q, k, v, log_a, weights = terms
        slots = list((log_a.exp()[:, None] * wide(state["S"])).unbind(1))
        # the token's own value does not decay
        own = k.transpose(-1, -2) * v
        return read_slots(q, own, slots, weights), {"S": slots_after(slots, own, t)}


class LogLinearMamba2Mixer(SteppedMixer):
    """Log-linear Mamba-2. Raises SizeError for a token after the 2^31st."""

    recurrence = FenwickDecayed()

    def __init__(self, mechanism: LogLinear, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.level = LevelWeights(width, self.heads)
        self._add_steps(width)

    def shapes(self, t: int) -> Shapes:
        return {"S": (t.bit_length(), self.heads, self.head_dim, self.dv)} | self._conv_shapes(t)

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        q, k, v = qkv
        step, log_a = self._steps(x)
        # weights are asked for where queries are
        weights = self.level.of(x[:, -q.shape[2] :], start + x.shape[1])
        return q, k, step * v, log_a, weights


def fenwick(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b h t d"],
    v: Float[Tensor, "b h t e"],
    log_a: Float[Tensor, "b h t 1"],
    weights: Float[Tensor, "b h t l"],
    *,
    chunk: int,
) -> Float[Tensor, "b h t e"]:
    """y_i for every i, in chunks of a power of two tokens."""
    tokens = q.shape[2]
    q, k, v, log_a, weights = (split_runs(x, chunk) for x in (q, k, v, log_a, weights))
    log_a = bounded(log_a)
    total = log_a.cumsum(3)  # b h n c 1
    y = (scores(q, k, log_a, total) * inside_chunk(weights)) @ v
    # a query as it reads the state before its run of chunks
    q = total.exp() * q
    # chunks have 2^p tokens: the first level above them is that of bit p, p + 1
    level = (chunk - 1).bit_length() + 1
    sums = (after(log_a).exp() * k).mT @ v  # b h n d e
    kept = total[:, :, :, -1:].exp()  # b h n 1 1
    while sums.shape[2] > 1:
        (even, odd), (first, second) = (
            rearrange(x, "b h (m two) d e -> two b h m d e", two=2) for x in (sums, kept)
        )
        runs = rearrange(q, "b h (m two r) c d -> two b h m (r c) d", two=2, m=even.shape[2])
        weight = rearrange(
            weights[..., level], "b h (m two r) c -> two b h m (r c)", two=2, m=even.shape[2]
        )[1]
        y = y + to_odd_runs(weight[..., None] * (runs[1] @ even), chunk)
        # at the next level the queries of odd runs reach further back, through the even run
        through = torch.stack([runs[0], first * runs[1]])
        q = rearrange(through, "two b h m (r c) d -> b h (m two r) c d", c=chunk)
        sums = second * even + odd
        kept = second * first
        level = level + 1
    return join_chunks(y, tokens)
