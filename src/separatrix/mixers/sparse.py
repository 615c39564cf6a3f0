"""Attention to chosen blocks of tokens: (B, k)-sparse, MoBA and NSA.

(B, k)-sparse attention: B = `block` tokens per block, k = `topk` blocks read in full per head.

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
.). Parallel form: for short sequences a mask over a (T, T) softmax, for others tiles of queries
that chose one block (ops/blockwise.py). Its time is that of T (k+1) B scores and T^2 / 2B
compressed ones; its memory is linear in T.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from separatrix.mixers.base.mixer import Shapes, State, appended, linear, wide
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.base.tensors import (
    BlockKeys,
    GroupKeys,
    GroupValues,
    Keys,
    OneToken,
    Queries,
    Reads,
    Tokens,
    Values,
)
from separatrix.mixers.ops.blockwise import (
    among_largest,
    best_blocks,
    compressed_softmax,
    compressed_weights,
    largest,
)
from separatrix.mixers.ops.recompute import recomputed
from separatrix.mixers.ops.softmax import KEPT, chosen_softmax, softmax
from separatrix.mixers.window import windowed
from separatrix.stacks.mechanisms import NSA, MoBA, Sparse


class BlockMixer(SoftmaxMixer):
    """Attention to the tokens of chosen blocks and to those of the own one, up to the token; to
    one vector of each complete block, and to a window, where there are such.

    What blocks are chosen by is another vector of each (`_pooled`), kept from the moment that its
    last token is there.
    """

    chooses = True
    pools: ClassVar[tuple[str, ...]] = ("compressed_keys", "compressed_values")
    """What is kept of each block: what queries meet, and what they then read, if anything."""
    g: nn.Linear | None

    def __init__(
        self, mechanism: Sparse | MoBA | NSA, *, width: int, kv_sets: int = 1, stride: int = 0
    ) -> None:
        super().__init__(mechanism, width=width, kv_sets=kv_sets)
        self.block = mechanism.block
        self.stride = stride or self.block
        self.topk = mechanism.topk
        self.window = mechanism.sizes().get("window", 0)
        self.selected = self.block
        # from this token on the first block is one among others
        self.since = self.block
        # tokens up to here have no more blocks than they may read
        self.whole = (self.topk + 1) * self.block

    @abstractmethod
    def _pooled(self, kept: State) -> State:
        """Vectors of the complete blocks of what is kept."""

    def _forward(self, x: Tokens) -> Tokens:
        q, k, v = (wide(y) for y in self._qkv(self._project(x)))
        kept = self._whole(k, v, x)
        keys, *values = (self._shared(kept[name]) for name in self.pools)
        best, asked = self._best, (q, keys)
        branches: list[Values] = []
        if values:
            y, best, asked = self._compressed(q, keys, *values)
            branches.append(y)
        branches.append(self._of_blocks(q, kept["keys"], kept["values"], best, *asked))
        if self.window:
            near = self._near(kept)
            branches.append(windowed(q, *near, size=self.window, chunk=self.chunk))
        return self._mixed(x, branches)

    def _read(self, x: OneToken, q: Queries, kept: State, place: int) -> OneToken:
        q = wide(q)
        seen = max(0, (place - self.since) // self.stride + 1)
        keys, *values = (wide(self._shared(kept[name][:, :, :seen])) for name in self.pools)
        scores = q @ keys.mT
        # no complete block: an empty sum, which is 0
        shares = scores.softmax(-1) if values else scores
        branches = [shares @ y for y in values]
        chosen = self._picked(scores, shares, place)
        branches.append(self._of_chosen(q, kept, chosen, place))
        if self.window:
            near_k, near_v = self._near(kept, -self.window)
            branches.append(softmax(q @ near_k.mT, near_v))
        return self._mixed(x, branches)

    def _compressed(
        self, q: Keys, keys: BlockKeys, values: Float[Tensor, "b g m e"]
    ) -> tuple[Values, Any, Any]:
        """Attention to vectors of blocks, and what names the blocks that are read in full, of what
        it asks.
        """
        y = compressed_softmax(q, keys, values, stride=self.stride, since=self.since)
        return y, self._best, (q, keys)

    def _best(self, q: Keys, keys: BlockKeys, *, first: int) -> Bool[Tensor, "b n t j"]:
        """The blocks that the queries from token `first` on read, their own among them."""
        return best_blocks(q, keys, first=first, k=self.topk, block=self.block)

    def _picked(self, scores: Tensor, shares: Tensor, place: int) -> Int[Tensor, "b n j"] | None:
        """The blocks that the token at a place reads beside its own; None for all."""
        return largest(scores[:, :, 0], self.topk) if scores.shape[3] > self.topk else None

    def _complete(self, t: int) -> int:
        return max(0, (t - self.block) // self.stride + 1)

    def _whole(self, k: Tensor, v: Tensor, x: Tokens) -> State:
        kept = super()._whole(k, v, x)
        return kept | self._pooled({name: wide(y) for name, y in kept.items()})

    def _extended(self, state: State, new: State, t: int) -> State:
        kept = super()._extended(state, new, t)
        pooled = {name: y for name, y in state.items() if name not in kept and name != "conv"}
        if self._complete(t + 1) > self._complete(t):
            latest = {name: wide(y[:, :, -self.block :]) for name, y in kept.items()}
            for name, y in self._pooled(latest).items():
                pooled[name] = appended(pooled[name], y.to(pooled[name].dtype))
        return kept | pooled

    def _near(self, kept: State, since: int = 0) -> tuple[Keys, Values]:
        """Keys and values of the window, from a token on (negative: of the last ones), per head."""
        names = [f"near_{y}" if f"near_{y}" in kept else y for y in ("keys", "values")]
        keys, values = (wide(self._shared(kept[name][:, :, since:])) for name in names)
        return keys, values

    def _of_blocks(
        self, q: Keys, k: GroupKeys, v: GroupValues, best: Callable[..., Tensor], *asked: Tensor
    ) -> Values:
        """Softmax over the tokens of the blocks that `best(*asked, first=)` names for a part of the
        queries `asked`, the rest of which belongs to all of them.
        """
        queries, *others = (y.detach() for y in asked)

        def choice(first: int, last: int) -> Bool[Tensor, "b n i m"]:
            run = partial(best, first=first)
            marks = recomputed(run, queries[:, :, first:last], *others)
            return marks if marks.shape[1] in (1, self.heads) else self._shared(marks)

        keys, values = self._shared(k), self._shared(v)
        return chosen_softmax(q, keys, values, choice, block=self.selected, whole=self.whole)

    def _of_chosen(
        self, q: Queries, kept: State, chosen: Int[Tensor, "b n j"] | None, place: int
    ) -> Reads:
        """The same for the token at a place, of complete blocks before its own; of all tokens where
        none are chosen.
        """
        k, v = (kept[name] for name in ("keys", "values"))
        if chosen is None:
            # branches are added before their sum is rounded
            return self._attend(q, wide(k), wide(v))
        batch, heads = (torch.arange(n, device=q.device) for n in chosen.shape[:2])
        at = (batch[:, None, None], (heads * self.kv // len(heads))[:, None], chosen)
        block = self.selected
        own = place // block * block
        # two parts of one softmax, so that what is gathered is not copied again
        (k_far, k_own), (v_far, v_own) = (
            (
                wide(self._shared(y[:, :, :own].unflatten(2, (-1, block))[at].flatten(2, 3))),
                wide(self._shared(y[:, :, own:])),
            )
            for y in (k, v)
        )
        weights = torch.cat([q @ k_far.mT, q @ k_own.mT], -1).softmax(-1)
        far, own_ = weights.split([k_far.shape[2], k_own.shape[2]], -1)
        return far @ v_far + own_ @ v_own

    def _shares(self, x: Tokens, count: int) -> Sequence[Tensor]:
        """What so many branches are weighed with: gates `g` of the tokens x."""
        assert self.g is not None
        gates = wide(self.g(x)).sigmoid().transpose(1, 2)[..., None]  # b (c h) t 1
        return gates.chunk(count, 1)

    def _mixed(self, x: Tokens, branches: Sequence[Values]) -> Tokens:
        shares = self._shares(x, len(branches))
        y = shares[0] * branches[0]
        for share, branch in zip(shares[1:], branches[1:], strict=True):
            y = torch.addcmul(y, share, branch)
        return self._out(y, x)


class SparseMixer(BlockMixer):
    """Block-sparse attention with compression and selection."""

    def __init__(self, mechanism: Sparse, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.pool_k = nn.Parameter(torch.full((self.block,), 1 / self.block))
        self.pool_v = nn.Parameter(torch.full((self.block,), 1 / self.block))
        self.g = linear(width, (3 if self.window else 2) * self.heads) if mechanism.gates else None
        self.mix = None if mechanism.gates else nn.Parameter(torch.zeros(self.heads))
        self.mix_window = (
            nn.Parameter(torch.zeros(self.heads)) if self.window and not mechanism.gates else None
        )

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        self.pool_k.fill_(1 / self.block)
        self.pool_v.fill_(1 / self.block)

    def _more(self, t: int) -> Shapes:
        return {f"compressed_{y}": shape for y, shape in self._cached(t // self.block).items()}

    def _pooled(self, kept: State) -> State:
        pools = {"keys": self.pool_k, "values": self.pool_v}
        return {
            f"compressed_{name}": torch.einsum(
                "bgmrd,r->bgmd", blocks(kept[name], self.block), wide(pool)
            )
            for name, pool in pools.items()
        }

    def _shares(self, x: Tokens, count: int) -> Sequence[Tensor]:
        if self.mix is None:
            return super()._shares(x, count)
        # shares sigmoid(mix) and 1 - sigmoid(mix), as a softmax that takes a third branch too
        logits = [self.mix, torch.zeros_like(self.mix)]
        if self.mix_window is not None:
            logits.append(self.mix_window)
        return wide(torch.stack(logits)).softmax(0)[..., None, None].unbind(0)


class MoBAMixer(BlockMixer):
    """Mixture of block attention (MoBA): attention to the blocks whose mean key scores highest, and
    to the own block.

        k^_m = 1/B sum_r K x_{mB+r}
        M_i  = the k complete blocks with the largest <Q x_i, k^_m>, per head, as above
        y_i  = y_i^selected

    The paper counts the own block among its k, always chosen; here it comes beside them, so the
    paper's k is `topk` + 1. Rotation (`rope`) comes before the means.
    Source: Lu et al. 2025, arXiv 2502.13189, equations 2 to 6.
    State after t tokens: keys and values (kv_heads, t, .) and the mean keys (kv_heads, floor(t/B),
    head_dim) of the complete blocks.
    """

    pools = ("means",)

    def _more(self, t: int) -> Shapes:
        return {"means": (self.kv, t // self.block, self.head_dim)}

    def _pooled(self, kept: State) -> State:
        return {"means": blocks(kept["keys"], self.block).mean(3)}

    def _mixed(self, x: Tokens, branches: Sequence[Values]) -> Tokens:
        return self._out(branches[0], x)


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
        # a stretch is mapped once, for every place it has in a block
        parts = wide(self.inner.weight).unflatten(1, (per_block, -1)).unbind(1)
        mapped = F.linear(x.flatten(3), torch.cat(parts)).chunk(per_block, 3)
        inner = F.linear(wide(self.places).flatten(), wide(self.inner.weight))
        for j, y in enumerate(mapped):
            inner = inner + y[:, :, j : j + blocks]
        return F.linear(F.silu(inner), wide(self.outer.weight))


LEAST = 2.0**-100
"""Shares of blocks up to this count as 0 in every format: float32 has none much smaller, and would
make ties of what float64 tells apart.
"""


class NSAMixer(BlockMixer):
    """Native sparse attention (NSA): l = `block`, d = `stride`, l' = `selected`, n = `topk`, w =
    `window`.

    Compressed block m holds the tokens md, ..., md+l-1; for token i it is there once it is
    complete, md+l-1 <= i. Selected block j holds the tokens jl', ..., jl'+l'-1 and is read up to i.
    Queries are the same in all branches; keys and values are maps of their own in each (K^c, K^s,
    K^w), or one for all with `shared`.

        k^_m = phi(K^c x_{md}, ..., K^c x_{md+l-1}),   v^_m likewise, a phi of its own
        y^c  = sum_m p_m v^_m,   p = softmax over the complete blocks of <Q x_i, k^_m>;
               0 where there is none
        P_j  = sum over the heads of one key-value head and over m of p_m o_mj,
               o_mj: stretches of d tokens that compressed block m and selected block j share
        M_i  = the first `first` blocks, the last `near` up to that of i, and the blocks with
               the largest P_j, the earlier of equal ones first; n in all, or all if fewer
        y^s  = softmax attention to the tokens of the blocks in M_i up to i
        y^w  = softmax attention to the last w tokens, i included
        y_i  = sum over the branches of sigmoid(G_c x_i) y^c_i, as with `gates` above

    phi: `pool=mlp` W_2 silu(W_1 (k + E)), E learned places inside the block, l d numbers in a row,
    one for all heads, as wide inside as a head; or the mean. The paper does not say more of phi
    than MLP and places. Rotation (`rope`) comes before phi.
    Source: Yuan et al. 2025, arXiv 2502.11089, section 3; P_j is its equations 9 and 10, with
    blocks counted from 0. flash-linear-attention's: l = d = l', pool=mean, shared=true.
    State after t tokens: keys and values of y^s (kv_heads, t, .), compressed ones (kv_heads,
    max(0, floor((t-l)/d)+1), .); unless shared, those of the window (kv_heads, min(t, w), .) and
    of the tokens that may belong to the next compressed block (kv_heads, min(t, l-1), .).
    """

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

    def _room(self, name: str) -> int | None:
        return self.window if name.startswith("near") else None

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
        """P of so many blocks, in float64: neighbours that hold a part each of one compressed block
        share what it weighs, and differ by the little that others add.
        """
        grouped = shares.unflatten(1, (self.kv, -1)).sum(2, dtype=torch.float64)
        # of a stretch of `stride` tokens: those of the compressed blocks that hold it
        held = self.block // self.stride
        stretches = self.selected // self.stride
        more = blocks * stretches - grouped.shape[3]
        scores = F.pad(grouped, (held - 1, max(0, more))).unfold(3, held, 1).sum(4)
        of_blocks = scores[..., : blocks * stretches].unflatten(3, (-1, stretches)).sum(4)
        return F.threshold(of_blocks, LEAST, 0.0)


def blocks(x: GroupKeys, block: int) -> Float[Tensor, "b g m r d"]:
    """The complete blocks of tokens."""
    return x[:, :, : x.shape[2] // block * block].unflatten(2, (-1, block))
