"""Which blocks or tokens a query reads, and softmax over the tokens of chosen blocks, and over
complete blocks, without quadratic memory.

Read are those with the largest scores, the earlier of equal ones first. No choice has a gradient.

Queries of one head that chose the same block are brought together in tiles of one size. A tile
multiplies with its block as dense matrices. The partial sums (maximum, numerators, denominator) go
back to their queries and are added up. A block's keys and values are so copied once per tile, not
once per query. Everything is computed again in the backward pass, a few queries at a time.

Shapes: n rows (a head of a sequence) or 1 for all heads, j tokens up to the last query, B tokens
per block, k blocks chosen per query, t tiles of z slots.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from separatrix.mixers.base.tensors import BlockKeys, Keys, Values
from separatrix.mixers.ops.recompute import recomputed

ROOM = 1 << 21
"""Scores held at a time, about."""
SHORT = 512
"""Sequences up to this length, and those that read a share of 1 / DENSE, use a masked softmax over
all pairs of tokens, which is faster there.
"""
DENSE = 8
SORTED = 256
"""So few numbers are sorted, which is one operation."""


def is_dense(tokens: int, read: int) -> bool:
    """Whether tokens that read so many others take a masked softmax."""
    return tokens <= max(SHORT, DENSE * read)


def largest(scores: Float[Tensor, "*b m"], k: int) -> Int[Tensor, "*b j"]:
    """Places of the k largest of m numbers (of all, if k > m) in no particular order; the
    earlier of equal ones first. NaN counts as infinity.
    """
    places = scores.shape[-1]
    if k >= places:
        return torch.arange(places, device=scores.device).expand(scores.shape)
    scores = _numbers(scores)
    if places <= SORTED:
        return scores.sort(descending=True, stable=True).indices[..., :k]
    values, found = scores.topk(k + 1)
    values, next_ = values.split([k, 1], -1)
    found = found[..., :k]
    # topk takes any of several equal to the k-th largest: where there are more of them, those that
    # are not larger are taken again, earliest first. A look is free on a CPU
    looks = not (scores.is_cuda or torch._C._are_functorch_transforms_active())
    if looks and not torch.compiler.is_compiling() and bool((values[..., -1:] > next_).all()):
        return found
    backwards = torch.arange(places, 0, -1, dtype=torch.int32, device=scores.device)
    earliest = torch.where(scores == values[..., -1:], backwards, 0).topk(k).indices
    larger = values > values[..., -1:]
    # topk sorts: the larger ones stand first, those of the tie behind them
    rank = torch.arange(k, device=scores.device) - larger.sum(-1, keepdim=True)
    return torch.where(larger, found, earliest.gather(-1, rank.clamp(min=0)))


def among_largest(scores: Float[Tensor, "*b m"], k: int) -> Bool[Tensor, "*b m"]:
    """Which of m numbers are the k largest, as `largest` has it."""
    places = scores.shape[-1]
    if k >= places:
        return torch.ones_like(scores, dtype=torch.bool)
    scores = _numbers(scores)
    if scores.is_cuda:
        least = scores.topk(k).values[..., -1:]
    else:
        # 4 ms of 2,048 times 2,048 numbers, where topk takes 68
        parted = np.partition(scores.numpy(), places - k, -1)
        least = torch.from_numpy(parted[..., places - k : places - k + 1])
    equal = scores == least
    larger = scores > least
    return larger | (
        equal & (equal.cumsum(-1, dtype=torch.int32) <= k - larger.sum(-1, keepdim=True))
    )


def _numbers(scores: Tensor) -> Tensor:
    # NaN is largest for topk, too, but equals nothing: ties would not be found
    return scores.detach().nan_to_num(math.inf, math.inf, -math.inf)


def best_blocks(
    q: Keys, keys: Float[Tensor, "b h m d"], *, first: int, k: int, block: int
) -> Bool[Tensor, "b h t n"]:
    """The blocks that queries from token `first` on read: the k with the largest <q, key> of those
    complete before the query's own block, and that one.
    """
    last = first + q.shape[2]
    every = torch.arange((last - 1) // block + 1, device=q.device)
    own = torch.arange(first, last, device=q.device)[:, None] // block
    # NaN first: where the block is not complete, NaN is hidden like any other score
    scores = q @ keys[:, :, : len(every) - 1].mT
    scores = _numbers(scores).masked_fill(every[:-1] >= own, -math.inf)
    # early queries have fewer complete blocks than choices
    best = among_largest(scores, k) & (every[:-1] < own)
    return F.pad(best, (0, 1)) | (every == own)


def spans(first: int, last: int, size: int) -> list[tuple[int, int]]:
    """Cuts the places from the first up to the last into consecutive spans of that size."""
    return [(start, min(last, start + size)) for start in range(first, last, size)]


def few_scores(first: int, last: int, rows: int) -> list[tuple[int, int]]:
    """Spans of queries whose scores with all `last` tokens, of so many rows, are about ROOM: at
    least 64 to a part, and some 64 parts at most, since each costs a pass of its own.
    """
    return spans(first, last, max(64, last // 64, ROOM // (rows * last)))


def compressed_softmax(
    q: Keys, keys: BlockKeys, values: Float[Tensor, "b g m e"], *, stride: int, since: int
) -> Values:
    """Softmax over the blocks m that are read from token `stride` m + `since` on, one key and value
    each and per head; 0 where there is none.
    """
    batch, heads, tokens, _ = q.shape
    outputs = []
    size = max(64, ROOM // max(1, batch * heads * keys.shape[2]))
    for first, last in spans(0, tokens, size):
        seen = min(keys.shape[2], max(0, (last - 1 - since) // stride + 1))
        run = partial(_compressed, first=first, stride=stride, since=since)
        inputs = (q[:, :, first:last], keys[:, :, :seen], values[:, :, :seen])
        outputs.append(run(*inputs) if tokens <= SHORT else recomputed(run, *inputs))
    return torch.cat(outputs, 2)


def _compressed(
    q: Tensor, keys: Tensor, values: Tensor, *, first: int, stride: int, since: int
) -> Tensor:
    return compressed_weights(q, keys, first=first, stride=stride, since=since) @ values


def compressed_weights(
    q: Keys, keys: Float[Tensor, "b h m d"], *, first: int, stride: int, since: int
) -> Float[Tensor, "b h t m"]:
    """What the queries from token `first` on weigh each block with."""
    place = torch.arange(first, first + q.shape[2], device=q.device)[:, None]
    later = torch.arange(keys.shape[2], device=q.device) * stride + since > place
    none = place < since
    # where there is no block, scores stay as they are: the softmax and its gradient are finite
    hidden = torch.zeros_like(later, dtype=q.dtype).masked_fill(later & ~none, -math.inf)
    scores = torch.baddbmm(hidden, q.flatten(0, 1), keys.flatten(0, 1).mT)
    weights = scores.unflatten(0, q.shape[:2]).softmax(-1)
    return weights.masked_fill(none, 0.0) if first < since else weights


def tiled(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b h j d"],
    v: Float[Tensor, "b h j e"],
    marks: Bool[Tensor, "b n i m"],
    *,
    block: int,
    picks: int,
    first: int,
) -> Float[Tensor, "b h i e"]:
    """Softmax attention of the tokens from `first` on, where a block begins, to their own blocks,
    up to themselves, and to `picks` complete ones that are marked; some heads at a time.
    """
    _, heads, tokens, _ = q.shape
    marks = marks.expand(-1, heads, -1, -1)
    together = max(1, ROOM // (tokens * (picks + 1) * block))
    rows = (x.flatten(0, 1).split(together) for x in (q, k, v, marks))
    run = partial(_tiled, block=block, picks=picks, first=first)
    parts = [recomputed(run, *some) for some in zip(*rows, strict=True)]
    return torch.cat(parts).unflatten(0, q.shape[:2])


def _tiled(
    q: Tensor, k: Tensor, v: Tensor, marks: Tensor, *, block: int, picks: int, first: int
) -> Tensor:
    tokens = q.shape[1]
    place = torch.arange(first, first + tokens, device=q.device)[:, None]
    before = torch.arange(marks.shape[2], device=q.device) < place // block
    slot, query, tile = placed(marks & before, picks)
    k, v = (in_blocks(x, block) for x in (k, v))
    keys, values = (x[:, first // block :] for x in (k, v))
    causal = torch.ones(block, block, dtype=torch.bool, device=q.device).tril()
    scores = (in_blocks(q, block) @ keys.mT).masked_fill(~causal, -math.inf)
    own = [x.flatten(1, 2)[:, :tokens] for x in _partial(scores, values)]
    # a query of 0 stands in empty slots
    tiles = _taken(F.pad(q, (0, 0, 0, 1)), query) @ _taken(k, tile).mT
    far = [_taken(x.flatten(1, 2), slot) for x in _partial(tiles, _taken(v, tile))]
    # partial softmaxes are added up at the scale of the largest score: there the denominator is at
    # least 1
    top, total = (torch.cat([x[..., None], y], -1) for x, y in zip(own[:2], far[:2], strict=True))
    scale = (top - top.amax(-1, keepdim=True)).exp()
    sums = scale[..., :1] * own[2] + (scale[..., None, 1:] @ far[2])[..., 0, :]
    return sums / (scale * total).sum(-1, keepdim=True)


def in_blocks(x: Float[Tensor, "n j d"], block: int) -> Float[Tensor, "n m B d"]:
    """Blocks of tokens, the last one filled up with zeros."""
    return F.pad(x, (0, 0, 0, -x.shape[1] % block)).unflatten(1, (-1, block))


def _partial(scores: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum, denominator and numerators of a softmax over the last axis. The maximum counts as
    a constant: it cancels.
    """
    top = scores.detach().amax(-1)
    weights = (scores - top[..., None]).exp()
    return top, weights.sum(-1), weights @ values


def _taken(x: Shaped[Tensor, "n a ..."], at: Int[Tensor, "n ..."]) -> Tensor:
    """What stands at places of each row."""
    start = torch.arange(len(x), device=x.device).view(-1, *(1,) * (at.dim() - 1)) * x.shape[1]
    return x.flatten(0, 1).index_select(0, (at + start).flatten()).unflatten(0, at.shape)


def tile_size(pairs: int, blocks: int) -> int:
    """Queries per tile: about a third of those that choose a block, on average, and a power of
    two from 8 to 128.
    """
    return min(128, max(8, 1 << (pairs // (3 * blocks)).bit_length()))


def placed(
    marks: Bool[Tensor, "n i m"], picks: int
) -> tuple[Int[Tensor, "n i k"], Int[Tensor, "n t z"], Int[Tensor, "n t"]]:
    """Brings queries that marked one block together in tiles: the slots of the first k marks of
    each query, which has as many, the query in each slot (i where it is empty) and the block of
    each tile.
    """
    rows, queries, blocks = marks.shape
    marks = marks & (marks.cumsum(2) <= picks)
    chosen = marks.to(torch.uint8).sort(dim=2, descending=True, stable=True).indices[..., :picks]
    size = tile_size(queries * picks, blocks)
    # the sum of ceil(n / size) over blocks is at most that
    tiles = queries * picks // size + blocks
    rank = marks.cumsum(1)
    # tiles of all blocks up to this one
    ends = ((rank[:, -1] + size - 1) // size).cumsum(1)
    slot = (F.pad(ends, (1, -1))[:, None] * size + rank - 1).gather(2, chosen)
    every = torch.arange(queries, device=marks.device)[:, None].expand_as(chosen)
    query = torch.full((rows, tiles * size), queries, device=marks.device)
    query = query.scatter(1, slot.flatten(1), every.flatten(1)).unflatten(1, (tiles, size))
    tile = torch.arange(tiles, device=marks.device).expand(rows, -1).contiguous()
    return slot, query, torch.searchsorted(ends, tile, right=True).clamp(max=blocks - 1)
