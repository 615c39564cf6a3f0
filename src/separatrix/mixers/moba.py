"""Mixture of block attention (MoBA): B = `block` tokens per block, k = `topk` blocks read in full
per head beside the token's own.

Blocks, complete and open, as in sparse.py. A complete block has the mean of its keys; there are no
compressed values:

    k^_m = 1/B sum_r K x_{mB+r}
    M_i  = the k complete blocks with the largest <Q x_i, k^_m>, per head;
           of equal scores the earlier block; all if fewer
    y_i  = one softmax of <Q x_i, K x_j> over the tokens j of the blocks in M_i
           and of the open block up to i, applied to V x_j

The paper counts the own block among its k, always chosen; here it comes beside them, so the paper's
k is `topk` + 1. The choice of blocks has no gradient. Rotation (`rope`) comes before the means.
Source: Lu et al. 2025, arXiv 2502.13189, equations 2 to 6.
State after t tokens: keys and values (kv_heads, t, .) and the mean keys (kv_heads, floor(t/B),
head_dim) of the complete blocks. Parallel form: as in sparse.py, in time of T (k+1) B scores and
T^2 / 2B scores of blocks, and in memory linear in T.
"""

from __future__ import annotations

import torch
from einops import rearrange

from separatrix.mixers.base.mixer import Shapes, State, wide
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.base.tensors import (
    BlockKeys,
    GroupKeys,
    GroupValues,
    OneQuery,
    Token,
    Tokens,
)
from separatrix.mixers.ops.block_choice import (
    choose,
    is_short,
    of_complete,
    ranked,
    seen_tokens,
    selected,
)
from separatrix.mixers.ops.block_tiles import block_softmax
from separatrix.mixers.ops.softmax import masked_softmax
from separatrix.stacks.mechanisms import MoBA


class MoBAMixer(SoftmaxMixer):
    """Attention to the blocks whose mean key scores highest, and to the own block."""

    def __init__(self, mechanism: MoBA, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.block = mechanism.block
        self.topk = mechanism.topk

    def shapes(self, t: int) -> Shapes:
        return (
            self._cached(t)
            | {"means": (self.kv, t // self.block, self.head_dim)}
            | self._conv_shapes(t)
        )

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = (wide(y) for y in self._qkv(self._project(x)))
        means = self._means(k)
        if is_short(x.shape[1]):
            every = q @ self._shared(means).transpose(-1, -2)
            scores, complete = of_complete(every, self.block)
            seen = seen_tokens(scores, complete, self.topk, self.block)
            y = masked_softmax(q, self._shared(k), self._shared(v), seen)
        else:
            queries = rearrange(q, "b (g r) t d -> (b g) r t d", g=self.kv)
            chosen = choose(queries, means.flatten(0, 1), self.topk, self.block)
            y = block_softmax(queries, k.flatten(0, 1), v.flatten(0, 1), chosen, self.block)
            y = rearrange(y, "(b g) r t e -> b (g r) t e", g=self.kv)
        return self._out(y.to(x.dtype))

    def _last(self, x: Tokens) -> Token:
        q, k, v = self._qkv(self._project_last(x))
        # a block that the last token fills is still open for it
        before = (x.shape[1] - 1) // self.block * self.block
        return self._read(q, k, v, self._means(wide(k[:, :, :before])))

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        (q, k, v), conv = self._qkv_step(x, state, t)
        keys = torch.cat([state["keys"], k], 2)
        values = torch.cat([state["values"], v], 2)
        means = state["means"]
        y = self._read(q, keys, values, means)
        if (t + 1) % self.block == 0:
            # the block that this token fills is complete for the next one
            new = self._means(wide(keys[:, :, -self.block :]))
            means = torch.cat([means, new.to(keys.dtype)], 2)
        return y, {"keys": keys, "values": values, "means": means} | conv

    def _means(self, k: GroupKeys) -> BlockKeys:
        """The mean key of every complete block."""
        full = k.shape[2] // self.block * self.block
        return rearrange(k[:, :, :full], "b g (m r) d -> b g m r d", r=self.block).mean(3)

    def _read(self, q: OneQuery, k: GroupKeys, v: GroupValues, means: BlockKeys) -> Token:
        """The output of the last of t tokens, reading only the blocks it selects; m blocks are
        complete for it.
        """
        scores = (wide(q) @ wide(self._shared(means)).transpose(-1, -2))[:, :, 0]
        chosen = ranked(scores, self.topk)
        k, v = (wide(selected(self._shared(y), chosen, means.shape[2], self.block)) for y in (k, v))
        return self._out(((wide(q) @ k.transpose(-1, -2)).softmax(-1) @ v).to(q.dtype))[:, 0]
