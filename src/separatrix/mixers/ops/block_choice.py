"""Which blocks or tokens a query reads: those with the largest scores, the earlier of equal ones
first. No choice has a gradient.

Shapes: b batch, h heads, t tokens, d key dimension, m or n blocks, k chosen.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.mixers.base.tensors import Keys

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
