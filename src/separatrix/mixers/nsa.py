"""Native sparse attention (NSA): l = `block`, d = `stride`, l' = `selected`, n = `topk`, w =
`window`.

Tokens and blocks are counted from 0. Compressed block m holds the tokens md, ..., md+l-1; for token
i it is there once it is complete, md+l-1 <= i. Selected block j holds the tokens jl', ..., jl'+l'-1
and is read up to i. Queries are the same in all branches; keys and values are maps of their own in
each (K^c, K^s, K^w), or one for all with `shared`.

    k^_m = phi(K^c x_{md}, ..., K^c x_{md+l-1}),   v^_m likewise, a phi of its own
    y^c  = sum_m p_m v^_m,   p = softmax over the complete blocks of <Q x_i, k^_m>;
           0 where there is none
    P_j  = sum over the heads of one key-value head and over m of p_m o_mj,
           o_mj: stretches of d tokens that compressed block m and selected block j have in common
    M_i  = the first `first` blocks, the last `near` up to that of i, and the blocks with the
           largest P_j, the earlier of equal ones first; n in all, or all if fewer
    y^s  = softmax attention to the tokens of the blocks in M_i up to i
    y^w  = softmax attention to the last w tokens, i included
    y_i  = sum over the branches of sigmoid(G_c x_i) y^c_i, a number per head, token and branch

phi: `pool=mlp` W_2 silu(W_1 (k + E)), E learned places inside the block, l d numbers in a row, one
for all heads, as wide inside as a head; or the mean. The paper does not say more of phi than MLP
and places. Rotation (`rope`) comes before phi. The choice has no gradient.
Source: Yuan et al. 2025, arXiv 2502.11089, section 3; P_j is its equations 9 and 10, with blocks
counted from 0. flash-linear-attention's: l = d = l', pool=mean, shared=true.
State after t tokens: keys and values of y^s (kv_heads, t, .), compressed ones (kv_heads,
max(0, floor((t-l)/d)+1), .); unless shared, those of the window (kv_heads, min(t, w), .) and of
the tokens that may belong to the next compressed block (kv_heads, min(t, l-1), .). Parallel form:
for short sequences masks over (T, T), then tiles of queries that chose one block
(ops/blockwise.py); memory linear in T.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from separatrix.mixers.base.mixer import Shapes, State, appended, linear, wide
from separatrix.mixers.base.tensors import BlockKeys, GroupKeys, Keys, Tokens, Values
from separatrix.mixers.ops.blockwise import among_largest, compressed_weights, largest
from separatrix.mixers.ops.softmax import KEPT
from separatrix.mixers.sparse import BlockMixer
from separatrix.stacks.mechanisms import NSA


class Pool(nn.Module):
    """phi: one vector for every block of `block` tokens, one every `stride`."""

    def __init__(self, kind: str, block: int, stride: int, dim: int) -> None:
        super().__init__()
        self.block = block
        self.stride = stride
        self.places = nn.Parameter(torch.zeros(block, dim)) if kind == "mlp" else None
        self.inner = linear(block * dim, dim) if kind == "mlp" else None
        self.outer = linear(dim, dim) if kind == "mlp" else None

    def forward(self, x: GroupKeys) -> BlockKeys:
        blocks = (x.shape[2] - self.block) // self.stride + 1
        if blocks < 1:
            return x[:, :, :0]
        per_block = self.block // self.stride
        x = x[:, :, : (blocks + per_block - 1) * self.stride].unflatten(2, (-1, self.stride))
        if self.places is None or self.inner is None or self.outer is None:
            return x.mean(3).unfold(2, per_block, 1).mean(-1)
        stretches = x.flatten(3)
        rows = torch.cat([stretches[:, :, j : j + blocks] for j in range(per_block)], 3)
        inner = F.linear(rows + wide(self.places).flatten(), wide(self.inner.weight))
        return F.linear(F.silu(inner), wide(self.outer.weight))


class NSAMixer(BlockMixer):
    """Compressed, selected and windowed attention, gated."""

    def __init__(self, mechanism: NSA, *, width: int) -> None:
        super().__init__(mechanism, width=width, kv_sets=mechanism.kv_sets, stride=mechanism.stride)
        self.selected = mechanism.selected
        self.whole = self.topk * self.selected
        self.since = self.block - 1
        self.first = mechanism.first
        self.near = mechanism.near
        self.own = not mechanism.shared
        self.pool_k = Pool(mechanism.pool, self.block, self.stride, self.head_dim)
        self.pool_v = Pool(mechanism.pool, self.block, self.stride, self.dv)
        self.g = linear(width, 3 * self.heads)

    def _more(self, t: int) -> Shapes:
        kept = {"compressed": self._complete(t)}
        if self.own:
            kept |= {"near": min(t, self.window), "raw": min(t, self.block - 1)}
        return {
            f"{prefix}_{name}": shape
            for prefix, tokens in kept.items()
            for name, shape in self._cached(tokens).items()
        }

    def _stored(self, k: Tensor, v: Tensor, x: Tokens, start: int) -> State:
        """Keys and values to select, of the window and to compress."""
        kept = {"keys": k, "values": v}
        if self.own:
            for name, y in list(kept.items()):
                kept[f"raw_{name}"], kept[name], kept[f"near_{name}"] = y.chunk(3, 1)
        return kept

    def _pooled(self, kept: State) -> State:
        raw = "raw_" if self.own else ""
        pools = {"keys": self.pool_k, "values": self.pool_v}
        return {f"compressed_{name}": pool(kept[raw + name]) for name, pool in pools.items()}

    def _extended(self, state: State, new: State, t: int) -> State:
        near = {
            name: appended(state[name], new.pop(name), self.window)
            for name in ("near_keys", "near_values")
            if name in new
        }
        return super()._extended(state | near, new, t)

    def _trimmed(self, kept: State, t: int) -> State:
        raw = min(t, self.block - 1)
        # copies: views would keep the forgotten tokens in memory
        return kept | {
            name: y[:, :, y.shape[2] - raw :].clone()
            for name, y in kept.items()
            if name.startswith("raw")
        }

    def _compressed(
        self, q: Keys, keys: BlockKeys, values: Float[Tensor, "b g m e"]
    ) -> tuple[Values, Any, Any]:
        if q[..., 0].numel() * keys.shape[2] > KEPT:
            return super()._compressed(q, keys, values)
        weights = compressed_weights(q, keys, first=0, stride=self.stride, since=self.since)
        return weights @ values, self._best_by_shares, (weights,)

    def _best(self, q: Keys, keys: BlockKeys, *, first: int) -> Bool[Tensor, "b n t j"]:
        seen = keys[:, :, : self._complete(first + q.shape[2])]
        shares = compressed_weights(q, seen, first=first, stride=self.stride, since=self.since)
        return self._best_by_shares(shares, first=first)

    @torch.no_grad()
    def _picked(self, scores: Tensor, shares: Tensor, place: int) -> Int[Tensor, "b g j"] | None:
        own = place // self.selected
        # few blocks are read all: nothing to choose or to copy
        if own < self.topk:
            return None
        rank = self._scores_of_blocks(shares, own + 1)[:, :, 0, :own]
        rank[..., : self.first] = math.inf
        rank[..., own + 1 - self.near :] = math.inf
        # the own block is read beside them
        return largest(rank, self.topk - 1)

    @torch.no_grad()
    def _best_by_shares(
        self, shares: Float[Tensor, "b h i m"], *, first: int
    ) -> Bool[Tensor, "b g i n"]:
        """The blocks that the queries from token `first` on read, by the shares of compressed
        blocks.
        """
        last = first + shares.shape[2]
        block = torch.arange((last - 1) // self.selected + 1, device=shares.device)
        own = torch.arange(first, last, device=shares.device)[:, None] // self.selected
        rank = self._scores_of_blocks(shares, len(block))
        always = (block < self.first) | (block > own - self.near)
        rank = rank.masked_fill_(always, math.inf).masked_fill_(block > own, -math.inf)
        return among_largest(rank, self.topk) & (block <= own)

    def _scores_of_blocks(
        self, shares: Float[Tensor, "b h i m"], blocks: int
    ) -> Float[Tensor, "b g i n"]:
        """P of so many blocks."""
        grouped = shares.unflatten(1, (self.kv, -1)).sum(2)
        # of a stretch of `stride` tokens: those of the compressed blocks that hold it
        held = self.block // self.stride
        stretches = self.selected // self.stride
        more = blocks * stretches - grouped.shape[3]
        scores = F.pad(grouped, (held - 1, max(0, more))).unfold(3, held, 1).sum(4)
        return scores[..., : blocks * stretches].unflatten(3, (-1, stretches)).sum(4)
