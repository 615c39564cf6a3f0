"""Log-linear attention over linear attention.

    y_i = sum_l lambda_i^(l) S^(l) phi(Q x_i),
    S^(l) = sum of V x_j (x) phi(K x_j) over the tokens j of bucket l

The buckets are those of a Fenwick tree. With tokens counted from 0, token i has i tokens before it,
and these fall into one bucket of 2^l tokens for every bit l that is set in i, the largest bucket
first; token i itself is a bucket of its own, level 0, and the bucket of bit l is level l+1. So
token j <= i stands at level bit_length(i xor j). The weights are lambda_i = softplus(Lambda x_i).
Source: Guo et al. 2025, arXiv 2506.04761, section 3.1 (their masked form, without decay). No
normaliser. phi as in ops/feature_maps.py. State after t tokens: S (floor(log2 t) + 1, heads, d_phi,
value_dim), slot l the bucket of bit l of t, 0 where that bit is not set. A new token joins slot 0;
two buckets of one size merge into the next slot, as in adding 1 to t in binary. Buckets merge right
after the token, not right before the next one as in the paper: the outputs are the same, and what
is carried is counted in full. Parallel form: chunks of a power of two tokens. Inside a chunk the
levels weigh the scores; above it, level by level, the tokens of every odd run of 2^l chunks read
the sum of the even run before it: O(T log T).
"""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import Shapes, State, join_chunks, wide
from separatrix.mixers.base.recurrence import Recurrence, Terms
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.kernels import chosen
from separatrix.mixers.ops.feature_maps import features, kernel
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


class Fenwick(Recurrence):
    """Sums over the buckets of a Fenwick tree. Terms: q, k, v, before the feature map, and the
    weights of the levels (b h r l).
    """

    def __init__(self, feature: str) -> None:
        self.feature = feature

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Float[Tensor, "b h r e"]:
        q, k, v, weights = terms
        tokens = k.shape[2]
        if q.shape[2] < tokens:
            place = torch.arange(tokens, device=k.device)
            scores = kernel(self.feature, q, k) * weights[..., levels(place[-1], place)]
            return scores @ v
        fast = chosen("log_linear", k, v, dtype)
        if fast is None:
            return fenwick(self.feature, q, k, v, weights, chunk=chunk_size(chunk, tokens))
        return fast(features(self.feature, q), features(self.feature, k), v, weights)

    def step(self, terms: Terms, state: State, t: int) -> tuple[Float[Tensor, "b h 1 e"], State]:
        q, k, v, weights = terms
        own = features(self.feature, k).transpose(-1, -2) * v
        slots = list(wide(state["S"]).unbind(1))
        y = read_slots(features(self.feature, q), own, slots, weights)
        return y, {"S": slots_after(slots, own, t)}


class LogLinearMixer(RecurrentMixer):
    """Log-linear attention with a feature map. Raises SizeError for a token after the 2^31st."""

    def __init__(self, mechanism: LogLinear, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.feature = mechanism.feature
        self.level = LevelWeights(width, self.heads)
        self.recurrence = Fenwick(self.feature)

    def shapes(self, t: int) -> Shapes:
        return {"S": (t.bit_length(), self.heads, self.head_dim, self.dv)} | self._conv_shapes(t)

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        q = qkv[0]
        # weights are asked for where queries are
        return *qkv, self.level.of(x[:, -q.shape[2] :], start + x.shape[1])


def fenwick(
    feature: str,
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b h t d"],
    v: Float[Tensor, "b h t e"],
    weights: Float[Tensor, "b h t l"],
    *,
    chunk: int,
) -> Float[Tensor, "b h t e"]:
    """sum_{j<=i} weights[i, level(i, j)] <phi(q_i), phi(k_j)> v_j for every i, in chunks of a
    power of two tokens.
    """
    tokens = q.shape[2]
    q, k, v, weights = (split_runs(x, chunk) for x in (q, k, v, weights))
    y = (kernel(feature, q, k) * inside_chunk(weights)).tril() @ v
    if q.shape[2] > 1:
        phi_q = features(feature, q)
        # chunks have 2^p tokens: the first level above them is that of bit p, p + 1
        level = (chunk - 1).bit_length() + 1
        sums = features(feature, k).transpose(-1, -2) @ v  # b h n f e
        while sums.shape[2] > 1:
            even, odd = rearrange(sums, "b h (m two) f e -> two b h m f e", two=2)
            # only the tokens of odd runs see the even run before theirs at this level
            later = rearrange(
                phi_q * weights[..., level, None],
                "b h (m two r) c f -> two b h m (r c) f",
                two=2,
                m=even.shape[2],
            )[1]
            read = later @ even
            y = y + to_odd_runs(read, chunk)
            sums = even + odd
            level = level + 1
    return join_chunks(y, tokens)
