"""Which blocks or tokens a query reads: those with the largest scores, the earlier of equal ones
first. No choice has a gradient.

Shapes: b batch, h heads, n groups (sequence and key-value head), r query heads of one group, t
tokens, d key dimension, m blocks, k chosen.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.mixers.base.tensors import Keys

ROOM = 1 << 21
"""Scores held at a time, about."""
SHORT = 512
"""Sequences up to this length use a masked softmax over all pairs of tokens, which is faster
there.
"""


def is_short(tokens: int) -> bool:
    return tokens <= SHORT


def largest(scores: Float[Tensor, "*b m"], k: int) -> Int[Tensor, "*b j"]:
    """Places of the k largest of m numbers (of all, if k > m) in no particular order; the
    earlier of equal ones first. NaN counts as infinity.
    """
    places = scores.shape[-1]
    if k >= places:
        return torch.arange(places, device=scores.device).expand(scores.shape)
    # NaN is largest for topk, too, but equals nothing: ties would not be found below
    scores = torch.where(scores.isnan(), math.inf, scores.detach())
    values, found = scores.topk(k)
    # topk takes any of several equal to the k-th largest: those that are not larger are taken
    # again, earliest first
    backwards = torch.arange(places, 0, -1, dtype=torch.int32, device=scores.device)
    earliest = torch.where(scores == values[..., -1:], backwards, 0).topk(k).indices
    larger = values > values[..., -1:]
    # topk sorts: the larger ones stand first, those of the tie behind them
    rank = torch.arange(k, device=scores.device) - larger.sum(-1, keepdim=True)
    return torch.where(larger, found, earliest.gather(-1, rank.clamp(min=0)))


def choose(q: Keys, keys: Float[Tensor, "b h m d"], k: int, block: int) -> Int[Tensor, "b h t j"]:
    """The blocks with the largest <q, key> of those complete before the query's own block; m
    stands for none.
    """
    blocks = keys.shape[2]
    q = q.detach()
    keys = keys.detach()
    chosen = []
    # scores of a part of the queries at a time: memory stays linear in t
    for first, last in spans(q.shape[2], ROOM // max(1, q.shape[0] * q.shape[1] * blocks), block):
        own = torch.arange(first, last, device=q.device)[:, None] // block
        seen = min(blocks, (last - 1) // block)
        scores = q[:, :, first:last] @ keys[:, :, :seen].mT
        # NaN first: where the block is not complete, NaN is hidden like any other score
        scores = torch.where(
            torch.arange(seen, device=q.device) < own,
            torch.where(scores.isnan(), math.inf, scores),
            -math.inf,
        )
        found = largest(scores, k)
        # early queries have fewer complete blocks than choices
        found = torch.where(found < own, found, blocks)
        chosen.append(F.pad(found, (0, min(k, blocks) - found.shape[-1]), value=blocks))
    return torch.cat(chosen, 2)


def spans(tokens: int, size: int, multiple: int) -> list[tuple[int, int]]:
    """Cuts `tokens` places into consecutive spans of about `size`, a multiple of `multiple`."""
    size = max(1, size // multiple) * multiple
    return [(first, min(tokens, first + size)) for first in range(0, tokens, size)]


def seen_tokens(chosen: Int[Tensor, "b h t j"], block: int) -> Bool[Tensor, "b h t t"]:
    """The tokens that each token reads: those of the chosen complete blocks (no less than their
    number stands for none) and those of its own up to it.
    """
    tokens = chosen.shape[2]
    blocks = tokens // block
    marks = torch.zeros(*chosen.shape[:3], blocks + 1, dtype=torch.bool, device=chosen.device)
    marks = marks.scatter(-1, chosen.clamp(max=blocks), True)[..., :blocks]
    seen = F.pad(marks.repeat_interleave(block, -1), (0, tokens - blocks * block))
    place = torch.arange(tokens, device=chosen.device)
    return seen | (place[:, None] // block == place // block).tril()
