"""Log-linear attention over Gated DeltaNet.

    y_i = sum_l lambda_i^(l) S_i^(l) q_i,
    S_i^(l) = sum over the tokens j of bucket l of b_j v_j k_j^T M_{j+1} ... M_i

with M_i = a_i (I - b_i k_i k_i^T),

q, k, a, b as in gdn.py; buckets, levels and lambda as in loglinear.py. With all lambda equal to 1
this is Gated DeltaNet.
Source: Guo et al. 2025, arXiv 2506.04761, section 3.3.
State: as in loglinear.py, with d_phi = head_dim: every bucket's state is decayed and overwritten by
every later token.
Parallel form: inside a chunk of a power of two tokens the scores of a chunk of the delta rule
(ops/delta_rule.py) weighed by the levels. Above it, level by level, the tokens of every odd run of
chunks read the state of the even run before it, through the transitions in between: O(T log T).
"""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import Shapes, State, join_chunks, linear, wide
from separatrix.mixers.base.recurrence import Recurrence, Terms
from separatrix.mixers.base.recurrent import RecurrentMixer, per_head, unit
from separatrix.mixers.ops.delta_rule import Delta
from separatrix.mixers.ops.fenwick import (
    LevelWeights,
    chunk_size,
    inside_chunk,
    read_slots,
    slots_after,
    split_runs,
    to_odd_runs,
)
from separatrix.mixers.ops.gates import draw_steps, log_decay
from separatrix.stacks.mechanisms import LogLinear


class FenwickDelta(Recurrence):
    """The delta rule over the buckets of a Fenwick tree. Terms: q, k, v, log a, the strength b and
    the weights of the levels (b h t l).
    """

    reads_last = False

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Float[Tensor, "b h t e"]:
        q, k, v, log_a, b, weights = terms
        return fenwick(q, k, v, log_a, b, weights, chunk=chunk_size(chunk, q.shape[2]))

    def step(self, terms: Terms, state: State, t: int) -> tuple[Float[Tensor, "b h 1 e"], State]:
        q, k, v, log_a, b, weights = terms
        k = k[:, None]  # b 1 h 1 d, beside the slots
        b = b[:, None]
        decayed = log_a.exp()[:, None] * wide(state["S"])
        # every bucket is overwritten by the token, its value is in the newest alone
        slots = list((decayed - k.transpose(-1, -2) * (b * (k @ decayed))).unbind(1))
        own = (k.transpose(-1, -2) * (b * v[:, None]))[:, 0]
        return read_slots(q, own, slots, weights), {"S": slots_after(slots, own, t)}


class LogLinearGDNMixer(RecurrentMixer):
    """Log-linear Gated DeltaNet. Raises SizeError for a token after the 2^31st."""

    recurrence = FenwickDelta()

    def __init__(self, mechanism: LogLinear, *, width: int) -> None:
        super().__init__(mechanism, width=width, unit_queries=True)
        self.level = LevelWeights(width, self.heads)
        self.a = nn.Linear(width, self.heads)
        self.b = linear(width, self.heads)
        self.rate = nn.Parameter(torch.zeros(self.heads))

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        draw_steps(self.a.bias, generator)
        with torch.no_grad():
            self.rate.zero_()

    def shapes(self, t: int) -> Shapes:
        return {"S": (t.bit_length(), self.heads, self.head_dim, self.dv)} | self._conv_shapes(t)

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        q, k, v = qkv
        weights = self.level.of(x, start + x.shape[1])
        log_a = per_head(log_decay(self.rate, self.a(x)))
        b = per_head(self.b(x)).sigmoid()
        return unit(q), unit(k), v, log_a, b, weights


def fenwick(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b h t d"],
    v: Float[Tensor, "b h t e"],
    log_a: Float[Tensor, "b h t 1"],
    b: Float[Tensor, "b h t 1"],
    weights: Float[Tensor, "b h t l"],
    *,
    chunk: int,
) -> Float[Tensor, "b h t e"]:
    """y_i for every i, in chunks of a power of two tokens."""
    tokens = q.shape[2]
    q, k, v, log_a, b, weights = (split_runs(x, chunk) for x in (q, k, v, log_a, b, weights))
    delta = Delta(*(x.flatten(2, 3) for x in (k, v, log_a, b, q)), chunk=chunk)
    # the share of every v_j apart (reads (I + L)^-1 diag(b)), for levels to weigh
    y = (delta.reads @ delta.inverse * inside_chunk(weights)).tril() @ v
    # a query as it reads the state before its run of chunks
    q = delta.queries()
    # chunks have 2^p tokens: the first level above them is that of bit p, p + 1
    level = (chunk - 1).bit_length() + 1
    transition, sums = delta.passed()
    while sums.shape[2] > 1:
        (even, odd), (first, second) = (
            rearrange(x, "b h (m two) d e -> two b h m d e", two=2) for x in (sums, transition)
        )
        runs = rearrange(q, "b h (m two r) c d -> two b h m (r c) d", two=2, m=even.shape[2])
        weight = rearrange(
            weights[..., level], "b h (m two r) c -> two b h m (r c)", two=2, m=even.shape[2]
        )[1]
        read = weight[..., None] * (runs[1] @ even)
        y = y + to_odd_runs(read, chunk)
        # at the next level the queries of odd runs reach further back, through the even run
        through = torch.stack([runs[0], runs[1] @ first])
        q = rearrange(through, "two b h m (r c) d -> b h (m two r) c d", c=chunk)
        sums = second @ even + odd
        transition = second @ first
        level = level + 1
    return join_chunks(y, tokens)
