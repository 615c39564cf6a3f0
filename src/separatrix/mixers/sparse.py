"""(B, k)-sparse attention: B = `block` tokens per block, k = `topk` blocks read in full per head.

Tokens are counted from 0. Block m holds the tokens mB, ..., mB+B-1. For token i the blocks m <
floor(i/B) are complete; its own block is open, up to the token itself, even where the token is the
B-th of it. A complete block has one compressed key and value per key-value head, learned linear
poolings over the place in the block:

    k^_m = sum_r alpha_r K x_{mB+r},   v^_m = sum_r beta_r V x_{mB+r}

    y_i^compressed = softmax over the complete blocks of <Q x_i, k^_m>, applied to v^_m;
                     0 where there is none
    M_i            = the k complete blocks with the largest <Q x_i, k^_m>, per head;
                     of equal scores the earlier block; all if fewer
    y_i^selected   = one softmax of <Q x_i, K x_j> over the tokens j of the blocks in M_i
                     and of the open block, applied to V x_j
    y_i            = lambda y_i^compressed + (1 - lambda) y_i^selected,
    lambda         = sigmoid of a learned number per head, `mix`

Options of NSA. `window` = s > 0: a third branch y_i^window, softmax attention to the last s tokens,
i included; then, per head,

    y_i = (e^mix y_i^compressed + y_i^selected + e^mix_window y_i^window) / (e^mix + 1 +
    e^mix_window)

`gates`: y_i = sum over the branches c of sigmoid(G_c x_i) y_i^c, one number per head, token and
branch, instead of `mix`; they need not add up to 1. As NSA has it, but: all branches share keys and
values (NSA maps them apart), poolings are linear (NSA: an MLP), blocks do not overlap (NSA's
compression blocks may), every query head chooses its own blocks (NSA: one choice per key-value
head, in which the first and the two latest blocks are fixed). Rotation (`rope`) comes before the
poolings.

The choice of blocks has no gradient; the poolings learn through y^compressed.
Source: [Ye26] section 2; Yuan et al. 2025 (NSA), arXiv 2502.11089.
State after t tokens: keys and values (kv_heads, t, .) and compressed ones (kv_heads, floor(t/B),
.). Parallel form: for short sequences a mask over a (T, T) softmax, then tiles of queries that
chose one block (ops/block_tiles.py). Its time is that of T (k+1) B scores and T^2 / 2B compressed
ones; its memory is linear in T.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.mixer import Shapes, State, linear, wide
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.base.tensors import (
    BlockKeys,
    BlockValues,
    GroupKeys,
    GroupValues,
    Keys,
    OneQuery,
    OneToken,
    Token,
    Tokens,
    Values,
)
from separatrix.mixers.ops.block_choice import (
    choose,
    is_short,
    of_complete,
    ranked,
    seen_tokens,
    selected,
)
from separatrix.mixers.ops.block_tiles import block_softmax, prefix_softmax
from separatrix.mixers.ops.causal_softmax import causal_softmax
from separatrix.mixers.ops.softmax import masked_softmax
from separatrix.mixers.window import banded_softmax
from separatrix.stacks.mechanisms import Sparse


class SparseMixer(SoftmaxMixer):
    """Block-sparse attention with compression and selection."""

    def __init__(self, mechanism: Sparse, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.block = mechanism.block
        self.topk = mechanism.topk
        self.window = mechanism.window
        self.pool_k = nn.Parameter(torch.full((self.block,), 1 / self.block))
        self.pool_v = nn.Parameter(torch.full((self.block,), 1 / self.block))
        self.g = linear(width, (3 if self.window else 2) * self.heads) if mechanism.gates else None
        self.mix = None if mechanism.gates else nn.Parameter(torch.zeros(self.heads))
        self.mix_window = (
            nn.Parameter(torch.zeros(self.heads)) if self.window and not mechanism.gates else None
        )

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        with torch.no_grad():
            self.pool_k.fill_(1 / self.block)
            self.pool_v.fill_(1 / self.block)
            for share in (self.mix, self.mix_window):
                if share is not None:
                    share.zero_()

    def shapes(self, t: int) -> Shapes:
        compressed = {
            f"compressed_{name}": shape for name, shape in self._cached(t // self.block).items()
        }
        return self._cached(t) | compressed | self._conv_shapes(t)

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = self._qkv(self._project(x))
        q = wide(q)
        k = wide(k)
        v = wide(v)
        compressed_k = self._pooled(k, self.pool_k)
        compressed_v = self._pooled(v, self.pool_v)
        form = self._dense if is_short(x.shape[1]) else self._tiled
        branches = form(q, k, v, compressed_k, compressed_v)
        if self.window:
            near = windowed(q, self._shared(k), self._shared(v), self.window, self.chunk)
            branches = (*branches, near)
        return self._mixed(x, branches)

    def _dense(
        self, q: Tensor, k: Tensor, v: Tensor, compressed_k: Tensor, compressed_v: Tensor
    ) -> tuple[Tensor, ...]:
        tokens = q.shape[2]
        scores = q @ self._shared(compressed_k).transpose(-1, -2)  # b h t m
        scores, complete = of_complete(scores, self.block)
        # the first B tokens have no complete block: all their scores are -inf, which no softmax
        # takes
        compressed = scores[:, :, self.block :].softmax(-1) @ self._shared(compressed_v)
        compressed = F.pad(compressed, (0, 0, tokens - compressed.shape[2], 0))
        seen = seen_tokens(scores, complete, self.topk, self.block)
        return compressed, masked_softmax(q, self._shared(k), self._shared(v), seen)

    def _tiled(
        self, q: Tensor, k: Tensor, v: Tensor, compressed_k: Tensor, compressed_v: Tensor
    ) -> tuple[Tensor, ...]:
        queries = rearrange(q, "b (g r) t d -> (b g) r t d", g=self.kv)
        k, v, compressed_k, compressed_v = (
            y.flatten(0, 1) for y in (k, v, compressed_k, compressed_v)
        )
        chosen = choose(queries, compressed_k, self.topk, self.block)
        branches = (
            prefix_softmax(queries, compressed_k, compressed_v, self.block),
            block_softmax(queries, k, v, chosen, self.block),
        )
        return tuple(rearrange(y, "(b g) r t e -> b (g r) t e", g=self.kv) for y in branches)

    def _last(self, x: Tokens) -> Token:
        q, k, v = self._qkv(self._project_last(x))
        # a block that the last token fills is still open for it
        before = (x.shape[1] - 1) // self.block * self.block
        compressed = (
            self._pooled(wide(k[:, :, :before]), self.pool_k),
            self._pooled(wide(v[:, :, :before]), self.pool_v),
        )
        return self._sparse_read(x[:, -1:], q, k, v, *compressed)

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        (q, k, v), conv = self._qkv_step(x, state, t)
        keys = torch.cat([state["keys"], k], 2)
        values = torch.cat([state["values"], v], 2)
        compressed_keys = state["compressed_keys"]
        compressed_values = state["compressed_values"]
        y = self._sparse_read(x[:, None], q, keys, values, compressed_keys, compressed_values)
        if (t + 1) % self.block == 0:
            # the block that this token fills is complete for the next one
            new_key = self._pooled(wide(keys[:, :, -self.block :]), self.pool_k)
            new_value = self._pooled(wide(values[:, :, -self.block :]), self.pool_v)
            compressed_keys = torch.cat([compressed_keys, new_key.to(keys.dtype)], 2)
            compressed_values = torch.cat([compressed_values, new_value.to(values.dtype)], 2)
        new = {
            "keys": keys,
            "values": values,
            "compressed_keys": compressed_keys,
            "compressed_values": compressed_values,
        }
        return y, new | conv

    def _pooled(self, x: GroupKeys, weights: Float[Tensor, " block"]) -> BlockKeys:
        """One vector per complete block."""
        full = x.shape[2] // self.block * self.block
        return torch.einsum(
            "bgmrd,r->bgmd",
            rearrange(x[:, :, :full], "b g (m r) d -> b g m r d", r=self.block),
            wide(weights),
        )

    def _sparse_read(
        self,
        x: OneToken,
        q: OneQuery,
        k: GroupKeys,
        v: GroupValues,
        compressed_k: BlockKeys,
        compressed_v: BlockValues,
    ) -> Token:
        """The output of the last of t tokens, reading only the blocks it selects; m blocks are
        complete for it.
        """
        blocks = compressed_k.shape[2]
        q = wide(q)
        scores = q @ wide(self._shared(compressed_k)).transpose(-1, -2)  # b h 1 m
        chosen = ranked(scores[:, :, 0], self.topk)
        # no complete block (m = 0): an empty sum, which is 0
        branches = [scores.softmax(-1) @ wide(self._shared(compressed_v))]
        read_k, read_v = (
            wide(selected(self._shared(y), chosen, blocks, self.block)) for y in (k, v)
        )
        branches += [(q @ read_k.transpose(-1, -2)).softmax(-1) @ read_v]
        if self.window:
            near_k, near_v = (wide(self._shared(y[:, :, -self.window :])) for y in (k, v))
            branches += [(q @ near_k.transpose(-1, -2)).softmax(-1) @ near_v]
        return self._mixed(x, branches)[:, 0]

    def _mixed(self, x: Tokens, branches: list[Tensor] | tuple[Tensor, ...]) -> Tokens:
        """The weighted sum of the branches' outputs (b h t e)."""
        if self.g is not None:
            shares = rearrange(
                wide(self.g(x)).sigmoid(), "b t (c h) -> c b h t 1", c=len(branches)
            ).unbind(0)
        else:
            assert self.mix is not None
            # shares sigmoid(mix) and 1 - sigmoid(mix), as a softmax that takes a third branch too
            logits = [self.mix, torch.zeros_like(self.mix)]
            if self.mix_window is not None:
                logits.append(self.mix_window)
            shares = wide(torch.stack(logits)).softmax(0)[..., None, None].unbind(0)
        y = sum(share * branch for share, branch in zip(shares, branches, strict=True))
        assert isinstance(y, Tensor)
        return self._out(y.to(x.dtype))


def windowed(q: Keys, k: Keys, v: Values, size: int, chunk: int) -> Values:
    """Softmax attention to the last `size` tokens."""
    if q.shape[2] <= size:
        return causal_softmax(q, k, v)
    return banded_softmax(q, k, v, size=size, chunk=max(size, chunk))
