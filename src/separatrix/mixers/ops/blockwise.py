"""Which blocks or tokens a query reads, and softmax over the tokens of chosen blocks, and over
complete blocks, without quadratic memory.

Read are those with the largest scores, the earlier of equal ones first. No choice has a gradient.

Queries of one key-value head that chose the same block are brought together in tiles of one size.
A tile multiplies with its block as dense matrices. The partial sums (maximum, numerators,
denominator) go back to their queries and are added up. A block's keys and values are so copied once
per tile, not once per query. Everything is computed again in the backward pass, a few queries at a
time.

Shapes: b batch, h heads, n groups (sequence and key-value head), r query heads of one group, t
tokens, i = r t queries, d key dimension, e value dimension, m or n complete blocks, B tokens per
block, j or k blocks chosen per query.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
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


def places_of(marks: Bool[Tensor, "*b m"], k: int, none: int) -> Int[Tensor, "*b j"]:
    """The places of at most k marks, in order, filled up with `none`."""
    places = marks.shape[-1]
    left = torch.arange(places, 0, -1, dtype=torch.int32, device=marks.device)
    found = torch.where(marks, left, 0).topk(min(k, places)).values.long()
    found = torch.where(found > 0, places - found, none)
    return F.pad(found, (0, k - found.shape[-1]), value=none)


def spans(tokens: int, size: int, multiple: int) -> list[tuple[int, int]]:
    """Cuts `tokens` places into consecutive spans of about `size`, a multiple of `multiple`."""
    size = max(1, size // multiple) * multiple
    return [(first, min(tokens, first + size)) for first in range(0, tokens, size)]


PARTS = 16
"""Most parts a sequence is cut into: each adds to the gradient of every key before it."""


def compressed_softmax(
    q: Keys, keys: BlockKeys, values: Float[Tensor, "b g m e"], *, stride: int, since: int
) -> Values:
    """Softmax over the blocks m that are read from token `stride` m + `since` on, one key and value
    each and per head; 0 where there is none.
    """
    batch, heads, tokens, _ = q.shape
    outputs = []
    size = max(64, ROOM // max(1, batch * heads * keys.shape[2]))
    for first, last in spans(tokens, size, 1):
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


def block_softmax(
    q: Float[Tensor, "n r t d"],
    k: Float[Tensor, "n t d"],
    v: Float[Tensor, "n t e"],
    chosen: Int[Tensor, "n r t j"],
    block: int,
) -> Float[Tensor, "n r t e"]:
    """One softmax over the tokens of the chosen complete blocks and of the query's own block up
    to the query.
    """
    _, heads, tokens, _ = q.shape
    full = tokens // block
    keys, values = (x[:, : full * block].unflatten(1, (full, block)) for x in (k, v))
    scores = heads * max(1, chosen.shape[-1]) * block  # per token
    size = max(ROOM // scores, 8 * block, tokens // PARTS)
    together = max(1, ROOM // (scores * tokens))
    # parts start where blocks do, so that the own block of a query lies in its part
    places = spans(tokens, size, block)
    lengths = [last - first for first, last in places]
    run = partial(_attended, block=block)
    outputs = []
    for q_, k_, v_, keys_, values_, chosen_ in zip(
        *(x.split(together) for x in (q, k, v, keys, values, chosen)), strict=True
    ):
        queries = zip(
            places,
            q_.split(lengths, 2),
            k_.split(lengths, 1),
            v_.split(lengths, 1),
            chosen_.split(lengths, 2),
            strict=True,
        )
        parts = []
        for (_, last), *own, picks in queries:
            seen = min(full, (last - 1) // block)
            # none was marked by the number of all blocks; in this part that is `seen`
            parts.append(
                recomputed(run, *own, keys_[:, :seen], values_[:, :seen], picks.clamp(max=seen))
            )
        outputs.append(torch.cat(parts, 2))
    return torch.cat(outputs)


def _attended(
    q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, chosen: Tensor, *, block: int
) -> Tensor:
    """Own blocks (q n r t d, k n t d, v n t e) and chosen ones (keys n m B d, values n m B e,
    chosen n r t k, m for none) in one softmax.
    """
    largest, total, sums = _own(q, k, v, block)
    if keys.shape[1] and chosen.shape[-1]:
        rows = q.flatten(1, 2)
        parts = _tiles(rows, keys, values, chosen.flatten(1, 2))  # n i k, n i k, n i k e
        maxima, totals, numerators = (x.unflatten(1, q.shape[1:3]) for x in parts)
        # partial softmaxes are added up at the scale of the largest score
        # at that scale the denominator is at least 1
        top = torch.maximum(largest, maxima.amax(-1))
        own = (largest - top).exp()
        others = (maxima - top[..., None]).exp()
        total = own * total + (others * totals).sum(-1)
        sums = own[..., None] * sums + (others[..., None, :] @ numerators)[..., 0, :]
    return sums / total[..., None]


def _own(q: Tensor, k: Tensor, v: Tensor, block: int) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum and denominator (n r t) and numerators (n r t e) over the query's own block, up to
    the query.
    """
    tokens = q.shape[2]
    size = min(block, tokens)
    # n r c B d, n c B d
    q, k, v = (F.pad(x, (0, 0, 0, -tokens % size)).unflatten(-2, (-1, size)) for x in (q, k, v))
    causal = torch.ones(size, size, dtype=torch.bool, device=q.device).tril()
    scores = (q @ k[:, None].transpose(-1, -2)).masked_fill(~causal, -math.inf)
    parts = _partial(scores, v[:, None])
    return tuple(x.flatten(2, 3)[:, :, :tokens] for x in parts)  # type: ignore[return-value]


def _partial(scores: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum, denominator and numerators of a softmax over the last axis. The maximum counts as
    a constant: it cancels.
    """
    # with scores of -inf alone, -inf less -inf would be NaN
    top = scores.detach().amax(-1).clamp(min=torch.finfo(scores.dtype).min)
    weights = (scores - top[..., None]).exp()
    return top, weights.sum(-1), weights @ values


def _tiles(
    q: Tensor, keys: Tensor, values: Tensor, chosen: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Maximum, denominator (n i k) and numerators (n i k e) of each query (n i d) in each block
    it chose (n i k; m for none).
    """
    groups, queries, picks = chosen.shape
    blocks = keys.shape[1]
    pairs = queries * picks
    size = tile_size(pairs, blocks)
    # the sum of ceil(n / size) over blocks is at most pairs // size + blocks; 1 more for no block
    tiles = pairs // size + blocks + 1
    slot, pair, block = place(chosen.flatten(1), blocks, size, tiles)
    offset = torch.arange(groups, device=q.device)[:, None]
    to_query = (pair.clamp(max=pairs - 1) // picks + offset * queries).flatten()
    to_slot = (slot + offset * (tiles * size)).flatten()
    tile = (block + offset * blocks).flatten()
    q = q.flatten(0, 1).index_select(0, to_query).unflatten(0, (-1, size))
    # (n tiles) B d
    keys, values = (x.flatten(0, 1).index_select(0, tile) for x in (keys, values))
    found = _partial(q @ keys.mT, values)
    shape = (groups, queries, picks)
    top, total, sums = (x.flatten(0, 1).index_select(0, to_slot).unflatten(0, shape) for x in found)
    none = chosen == blocks
    return (
        top.masked_fill(none, -math.inf),
        total.masked_fill(none, 0.0),
        sums.masked_fill(none[..., None], 0.0),
    )


def tile_size(pairs: int, blocks: int) -> int:
    """Queries per tile: about a third of those that choose a block, on average, and a power of
    two from 8 to 128.
    """
    return min(128, max(8, 1 << (pairs // (3 * blocks)).bit_length()))


def place(chosen: Tensor, blocks: int, size: int, tiles: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sorts pairs (query, block) into tiles of one block each. Takes the block of each pair (n p),
    `blocks` for none.

    Returns the slot of each pair (n p), the pair in each slot (n tiles*size; p where it is empty)
    and the block of each tile (n tiles). The last tile takes the pairs of no block.
    """
    groups, pairs = chosen.shape
    ordered, order = chosen.sort(dim=-1, stable=True)
    every = torch.arange(blocks + 1, device=chosen.device).expand(groups, -1).contiguous()
    # where the pairs of each block start, then where those of none do: n (blocks + 1)
    starts = torch.searchsorted(ordered, every)
    # tiles of all blocks up to this one: n blocks
    ends = ((starts.diff(dim=-1) + size - 1) // size).cumsum(-1)
    first = F.pad(ends, (1, 0))
    rank = torch.arange(pairs, device=chosen.device) - starts.gather(-1, ordered)
    # pairs of no block share one slot of the last tile, which counts as empty
    slots = torch.where(
        ordered < blocks, first.gather(-1, ordered) * size + rank, (tiles - 1) * size
    )
    slot = torch.empty_like(slots).scatter(-1, order, slots)
    numbers = torch.where(ordered < blocks, order, pairs)
    pair = torch.full((groups, tiles * size), pairs, device=chosen.device).scatter(
        -1, slots, numbers
    )
    block = torch.searchsorted(
        ends, torch.arange(tiles, device=chosen.device).expand(groups, -1).contiguous(), right=True
    )
    return slot, pair, block.clamp(max=blocks - 1)
