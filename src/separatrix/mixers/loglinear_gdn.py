"""Log-linear attention over Gated DeltaNet.

    y_i = sum_l lambda_i^(l) S_i^(l) q_i,
    S_i^(l) = sum over the tokens j of bucket l of b_j v_j k_j^T M_{j+1} ... M_i

with M_i = a_i (I - b_i k_i k_i^T),

q, k, a, b as in gdn.py; buckets, levels and lambda as in loglinear.py. With all lambda equal to 1
this is Gated DeltaNet.
Source: Guo et al. 2025, arXiv 2506.04761, section 3.3.
State: as in loglinear.py, with d_phi = head_dim: every bucket's state is decayed and overwritten by
every later token. Parallel form: inside a chunk of a power of two tokens the scores of _delta.py's
chunk weighed by the levels; above it, level by level, the tokens of every odd run of chunks read
the state of the even run before it, through the transitions in between: O(T log T).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mechanisms import LogLinear
from separatrix.mixers.base.mixer import Shapes, State, join_chunks, linear, wide
from separatrix.mixers.base.recurrent import RecurrentMixer, per_head, unit
from separatrix.mixers.ops.delta_rule import Delta
from separatrix.mixers.ops.fenwick import (
    LevelWeights,
    chunk_size,
    inside_chunk,
    slots_after,
    split_runs,
)
from separatrix.mixers.ops.gates import draw_steps, log_decay


class LogLinearGDNMixer(RecurrentMixer):
    """Log-linear Gated DeltaNet. Raises SizeError for a token after the 2^31st."""

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

    def _forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        (q, k, v), weights, size = (
            self._qkv(x),
            self.level.of(x, x.shape[1]),
            chunk_size(self.chunk, x.shape[1]),
        )
        return self._out(fenwick(unit(q), unit(k), v, *self._gates(x), weights, chunk=size), x)

    def _step(
        self, x: Float[Tensor, "b w"], state: State, t: int
    ) -> tuple[Float[Tensor, "b w"], State]:
        ((q, k, v), conv), (log_a, b), weights = (
            self._qkv_step(x, state),
            self._gates(x[:, None]),
            self.level.of(x[:, None], t + 1),
        )
        k, b = unit(k)[:, None], b[:, None]  # b 1 h 1 .
        decayed = log_a.exp()[:, None] * wide(state["S"])
        slots = list((decayed - k.transpose(-1, -2) * (b * (k @ decayed))).unbind(1))
        own = (k.transpose(-1, -2) * (b * v[:, None]))[:, 0]
        y = torch.einsum(
            "bhl,bhtd,blhde->bhte", weights[:, :, 0], unit(q), torch.stack([own, *slots], 1)
        )
        return self._out(y, x[:, None])[:, 0], self._store(S=slots_after(slots, own, t)) | conv

    def _gates(
        self, x: Float[Tensor, "b t w"]
    ) -> tuple[Float[Tensor, "b h t 1"], Float[Tensor, "b h t 1"]]:
        """log a and b."""
        return per_head(log_decay(self.rate, self.a(x))), per_head(self.b(x)).sigmoid()


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
    identity = torch.eye(chunk, dtype=q.dtype, device=q.device)
    y = (delta.reads @ delta.solve(delta.b * identity) * inside_chunk(weights)).tril() @ v
    # a query as it reads the state before its run of chunks
    q = delta.queries()
    level = (chunk - 1).bit_length() + 1
    sums = delta.added
    transition = delta.transition
    while sums.shape[2] > 1:
        (even, odd), (first, second) = (
            rearrange(x, "b h (m two) d e -> two b h m d e", two=2) for x in (sums, transition)
        )
        runs = rearrange(q, "b h (m two r) c d -> two b h m (r c) d", two=2, m=even.shape[2])
        weight = rearrange(
            weights[..., level], "b h (m two r) c -> two b h m (r c)", two=2, m=even.shape[2]
        )[1]
        read = weight[..., None] * (runs[1] @ even)
        y = y + rearrange(
            F.pad(read[:, :, :, None], (0, 0, 0, 0, 1, 0)),
            "b h m two (r c) e -> b h (m two r) c e",
            c=chunk,
        )
        q = rearrange(
            torch.stack([runs[0], runs[1] @ first]),
            "two b h m (r c) d -> b h (m two r) c d",
            c=chunk,
        )
        sums = second @ even + odd
        transition = second @ first
        level = level + 1
    return join_chunks(y, tokens)
