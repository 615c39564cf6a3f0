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
(ops/block_tiles.py); memory linear in T.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from separatrix.mixers.base.mixer import Shapes, State, linear, wide
from separatrix.mixers.base.softmax import SoftmaxMixer, latest
from separatrix.mixers.base.tensors import (
    BlockKeys,
    GroupKeys,
    GroupValues,
    Keys,
    OneQuery,
    OneToken,
    Token,
    Tokens,
    Values,
)
from separatrix.mixers.ops.block_choice import ROOM, is_short, largest, spans, tokens_of
from separatrix.mixers.ops.block_tiles import block_softmax
from separatrix.mixers.ops.recompute import recomputed
from separatrix.mixers.ops.softmax import masked_softmax, softmax
from separatrix.mixers.sparse import windowed
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
        if x.shape[2] < self.block:
            return x[:, :, :0]
        blocks = x.unfold(2, self.block, self.stride).transpose(-1, -2)  # b g m l d
        if self.places is None or self.inner is None or self.outer is None:
            return blocks.mean(3)
        rows = (blocks + wide(self.places)).flatten(3)
        return F.linear(F.silu(F.linear(rows, wide(self.inner.weight))), wide(self.outer.weight))


class NSAMixer(SoftmaxMixer):
    """Compressed, selected and windowed attention, gated."""

    def __init__(self, mechanism: NSA, *, width: int) -> None:
        super().__init__(mechanism, width=width, kv_sets=mechanism.kv_sets)
        self.declared = mechanism
        self.block = mechanism.block
        self.stride = mechanism.stride
        self.selected = mechanism.selected
        self.topk = mechanism.topk
        self.first = mechanism.first
        self.near = mechanism.near
        self.window = mechanism.window
        self.own = not mechanism.shared
        self.pool_k = Pool(mechanism.pool, self.block, self.stride, self.head_dim)
        self.pool_v = Pool(mechanism.pool, self.block, self.stride, self.dv)
        self.g = linear(width, 3 * self.heads)

    def shapes(self, t: int) -> Shapes:
        blocks = self.declared.compressed(t)
        shapes = self._cached(t) | _named("compressed", self._cached(blocks))
        if self.own:
            shapes |= _named("near", self._cached(min(t, self.window)))
            shapes |= _named("raw", self._cached(min(t, self.block - 1)))
        return shapes | self._conv_shapes(t)

    def _branches(
        self, k: Float[Tensor, "b n t d"], v: Float[Tensor, "b n t e"]
    ) -> list[tuple[Tensor, Tensor]]:
        """Keys and values to compress, to select and of the window."""
        if not self.own:
            return [(k, v)] * 3
        return list(zip(k.chunk(3, 1), v.chunk(3, 1), strict=True))

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = (wide(y) for y in self._qkv(self._project(x)))
        (raw_k, raw_v), (k, v), (near_k, near_v) = self._branches(k, v)
        keys = self.pool_k(raw_k)
        values = self.pool_v(raw_v)
        compressed = self._compressed(q, self._shared(keys), self._shared(values))
        window = windowed(q, self._shared(near_k), self._shared(near_v), self.window, self.chunk)
        return self._mixed(x, [compressed, self._selected(q, keys, k, v), window])

    def _compressed(
        self, q: Keys, k: Float[Tensor, "b h m d"], v: Float[Tensor, "b h m e"]
    ) -> Values:
        outputs = []
        for first, last in self._parts(q, k.shape[2]):
            part = q[:, :, first:last]
            seen = self.declared.compressed(last)
            if not seen:
                outputs.append(part.new_zeros(*part.shape[:3], v.shape[3]))
                continue
            run = partial(self._compressed_part, first=first)
            inputs = (part, k[:, :, :seen], v[:, :, :seen])
            outputs.append(run(*inputs) if is_short(q.shape[2]) else recomputed(run, *inputs))
        return torch.cat(outputs, 2)

    def _compressed_part(self, q: Tensor, k: Tensor, v: Tensor, *, first: int) -> Tensor:
        return self._shares(q, k, first) @ v

    def _shares(
        self, q: Float[Tensor, "b h i d"], k: Float[Tensor, "b h m d"], first: int
    ) -> Float[Tensor, "b h i m"]:
        """p of the queries from token `first` on; 0 where no block is complete."""
        place = torch.arange(first, first + q.shape[2], device=q.device)[:, None]
        ends = torch.arange(k.shape[2], device=q.device) * self.stride + self.block - 1
        none = (place < self.block - 1).expand(-1, k.shape[2])
        scores = (q @ k.transpose(-1, -2)).masked_fill(ends > place, -math.inf)
        # where no block is complete, scores of 0 keep the softmax and its gradient finite
        return scores.masked_fill(none, 0.0).softmax(-1).masked_fill(none, 0.0)

    def _parts(self, q: Tensor, blocks: int) -> list[tuple[int, int]]:
        return spans(q.shape[2], max(64, ROOM // max(1, len(q) * self.heads * blocks)), 1)

    def _common(self, blocks: int, selected: int, like: Tensor) -> Float[Tensor, "m j"]:
        """o: stretches of `stride` tokens that compressed and selected blocks have in common."""
        starts = torch.arange(blocks, device=like.device)[:, None] * self.stride
        others = torch.arange(selected, device=like.device) * self.selected
        shared = torch.minimum(starts + self.block, others + self.selected) - torch.maximum(
            starts, others
        )
        return (shared.clamp(min=0) // self.stride).to(like.dtype)

    @torch.no_grad()
    def _chosen(
        self, q: Float[Tensor, "b h i d"], keys: BlockKeys, first: int
    ) -> Int[Tensor, "b g i k"]:
        """The blocks that the queries from token `first` on read, their own first, then in order;
        those that are not there as the number of all blocks.
        """
        q = q.detach()
        last = first + q.shape[2]
        total = (last - 1) // self.selected + 1
        seen = self.declared.compressed(last)
        if seen:
            shares = self._shares(q, self._shared(keys.detach()[:, :, :seen]), first)
            grouped = rearrange(shares, "b (g r) i m -> b g r i m", g=self.kv).sum(2)
            scores = grouped @ self._common(seen, total, q)
        else:
            scores = q.new_zeros(len(q), self.kv, q.shape[2], total)
        own = torch.arange(first, last, device=q.device)[:, None] // self.selected
        block = torch.arange(total, device=q.device)
        # above every share: those that are always read, the own one before all others
        always = ((block < self.first) | (block > own - self.near)).to(q.dtype)
        rank = scores + torch.finfo(q.dtype).max / 4 * (always + (block == own))
        rank = torch.where(block > own, -math.inf, torch.where(scores.isnan(), math.inf, rank))
        found = largest(rank, self.topk)
        found = torch.where(found <= own, found, total)
        # the own one first, since tiles read it apart from the others; none at the end
        found = torch.where(found == own, -1, found).sort(dim=-1).values
        found = torch.where(found < 0, own, found)
        return F.pad(found, (0, self.topk - found.shape[-1]), value=total)

    def _selected(self, q: Keys, keys: BlockKeys, k: GroupKeys, v: GroupValues) -> Values:
        tokens = q.shape[2]
        total = -(-tokens // self.selected)
        parts = []
        for first, last in self._parts(q, keys.shape[2]):
            found = self._chosen(q[:, :, first:last], keys, first)
            there = (last - 1) // self.selected + 1
            parts.append(found.masked_fill(found == there, total))
        chosen = torch.cat(parts, 2)
        if is_short(tokens):
            return masked_softmax(
                q, self._shared(k), self._shared(v), self._shared(self._read_mask(chosen, tokens))
            )
        others = chosen[..., 1:]
        # blocks that are not complete have no tile: the own one is the only one that may be so
        full = tokens // self.selected
        others = others.clamp(max=full)[..., : max(1, min(self.topk - 1, full))]
        queries = rearrange(q, "b (g r) t d -> (b g) r t d", g=self.kv)
        picks = others.flatten(0, 1)[:, None].expand(-1, queries.shape[1], -1, -1).contiguous()
        y = block_softmax(queries, k.flatten(0, 1), v.flatten(0, 1), picks, self.selected)
        return rearrange(y, "(b g) r t e -> b (g r) t e", g=self.kv)

    def _read_mask(self, chosen: Int[Tensor, "b g t k"], tokens: int) -> Bool[Tensor, "b g t t"]:
        total = -(-tokens // self.selected)
        marks = torch.zeros(*chosen.shape[:3], total + 1, dtype=torch.bool, device=chosen.device)
        marks = marks.scatter(-1, chosen, True)[..., :total]
        return tokens_of(marks, self.selected)[..., :tokens].tril()

    def _last(self, x: Tokens) -> Token:
        q, k, v = self._qkv(self._project_last(x))
        (raw_k, raw_v), (k, v), (near_k, near_v) = self._branches(k, v)
        keys = self.pool_k(wide(raw_k))
        values = self.pool_v(wide(raw_v))
        near = (near_k[:, :, -self.window :], near_v[:, :, -self.window :])
        return self._read(x[:, -1:], q, (keys, values), (k, v), near)

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        (q, k, v), conv = self._qkv_step(x, state, t)
        branches = self._branches(k, v)
        new = _appended(state, "", branches[1])
        if self.own:
            raw = _appended(state, "raw_", branches[0])
            near = {
                f"near_{name}": latest(state[f"near_{name}"], y, self.window)
                for name, y in zip(("keys", "values"), branches[2], strict=True)
            }
        else:
            raw = {f"raw_{name}": y for name, y in new.items()}
            near = {f"near_{name}": y[:, :, -self.window :] for name, y in new.items()}
        pairs = {name: state[f"compressed_{name}"] for name in ("keys", "values")}
        if self.declared.compressed(t + 1) > self.declared.compressed(t):
            for name, pool in (("keys", self.pool_k), ("values", self.pool_v)):
                own = pool(wide(raw[f"raw_{name}"][:, :, -self.block :]))
                pairs[name] = torch.cat([pairs[name], own.to(pairs[name].dtype)], 2)
        kept = min(t + 1, self.block - 1)
        raw = {name: y[:, :, y.shape[2] - kept :] for name, y in raw.items()}
        y = self._read(
            x[:, None],
            q,
            (pairs["keys"], pairs["values"]),
            (new["keys"], new["values"]),
            (near["near_keys"], near["near_values"]),
        )
        new |= {f"compressed_{name}": y for name, y in pairs.items()}
        # copies: views would keep the forgotten tokens in memory
        kept_apart = near | {name: y.clone() for name, y in raw.items()} if self.own else {}
        return y, new | kept_apart | conv

    def _read(
        self,
        x: OneToken,
        q: OneQuery,
        compressed: tuple[Tensor, Tensor],
        all_tokens: tuple[Tensor, Tensor],
        near: tuple[Tensor, Tensor],
    ) -> Token:
        """The output of the last token, reading only the blocks it selects."""
        q = wide(q)
        keys, values = (wide(y) for y in compressed)
        tokens = all_tokens[0].shape[2]
        branches = [q.new_zeros(*q.shape[:3], self.dv)]
        if keys.shape[2]:
            branches = [self._shares(q, self._shared(keys), tokens - 1) @ self._shared(values)]
        k, v, hidden = self._of_chosen(q, keys, *all_tokens)
        scores = q @ wide(self._shared(k)).transpose(-1, -2)
        if hidden is not None:
            scores = scores.masked_fill(self._shared(hidden)[:, :, None], -math.inf)
        branches.append(softmax(scores, wide(self._shared(v))))
        near_k, near_v = (wide(self._shared(y)) for y in near)
        branches.append(softmax(q @ near_k.transpose(-1, -2), near_v))
        return self._mixed(x, branches)[:, 0]

    def _of_chosen(
        self, q: OneQuery, keys: BlockKeys, k: GroupKeys, v: GroupValues
    ) -> tuple[Tensor, Tensor, Bool[Tensor, "b g s"] | None]:
        """Keys and values of the blocks that the last token reads, and which are not there."""
        tokens = k.shape[2]
        if tokens <= self.topk * self.selected:
            # all blocks: nothing to choose or to copy
            return k, v, None
        chosen = self._chosen(q, keys, tokens - 1)[:, :, 0]  # b g k
        places = chosen[..., None] * self.selected + torch.arange(self.selected, device=q.device)
        places = places.flatten(2)  # b g s
        rows = places.clamp(max=tokens - 1)
        batch, group = (torch.arange(n, device=q.device) for n in k.shape[:2])
        at = (batch[:, None, None], group[:, None], rows)
        return k[at], v[at], places >= tokens

    def _mixed(self, x: Tokens, branches: list[Tensor]) -> Tokens:
        """The gated sum of the branches' outputs (b h t e)."""
        gates = rearrange(wide(self.g(x)).sigmoid(), "b t (c h) -> c b h t 1", c=3)
        y = gates[0] * branches[0] + gates[1] * branches[1] + gates[2] * branches[2]
        return self._out(y.to(x.dtype))


def _named(prefix: str, shapes: Shapes) -> Shapes:
    return {f"{prefix}_{name}": shape for name, shape in shapes.items()}


def _appended(state: State, prefix: str, new: tuple[Tensor, Tensor]) -> dict[str, Any]:
    """Keys and values with those of one token more."""
    return {
        f"{prefix}{name}": torch.cat([state[f"{prefix}{name}"], y], 2)
        for name, y in zip(("keys", "values"), new, strict=True)
    }
