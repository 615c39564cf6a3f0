"""Which blocks or tokens a query reads: those with the largest scores, the earlier of equal ones
first. No choice has a gradient.

Shapes: b batch, h heads, n groups (sequence and key-value head), r query heads of one group, t
tokens, d key dimension, m blocks, k chosen.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
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


def choose(
    q: Float[Tensor, "n r t d"], keys: Float[Tensor, "n m d"], k: int, block: int, *, start: int = 0
) -> Int[Tensor, "n r t j"]:
    """The blocks with the largest <q, key> of those complete before the query's own block; m
    stands for none. `start`: the first place.
    """
    blocks = keys.shape[1]
    q = q.detach()
    keys = keys.detach()
    chosen = []
    # scores of a part of the queries at a time: memory stays linear in t
    for first, last in spans(q.shape[2], ROOM // max(1, q.shape[0] * q.shape[1] * blocks), block):
        own = torch.arange(start + first, start + last, device=q.device)[:, None] // block
        seen = min(blocks, (start + last - 1) // block)
        scores = q[:, :, first:last] @ keys[:, None, :seen].transpose(-1, -2)
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


def best(scores: Float[Tensor, "b h t m"], k: int) -> Bool[Tensor, "b h t m"]:
    """Marks the k largest of m scores, the earlier of equal ones first."""
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, ranked(scores, k), True)


def ranked(scores: Float[Tensor, "*b m"], k: int) -> Int[Tensor, "*b j"]:
    """Places of the k largest of m numbers (of all, if k > m), the largest first and the earlier
    of equal ones first.
    """
    # topk promises nothing about equal scores, a stable sort does
    return torch.sort(scores.detach(), dim=-1, descending=True, stable=True).indices[..., :k]


def of_complete(
    scores: Float[Tensor, "b h t m"], block: int
) -> tuple[Float[Tensor, "b h t m"], Bool[Tensor, "t m"]]:
    """The scores, -inf for blocks that are not complete before the token's own, and which are."""
    place = torch.arange(scores.shape[2], device=scores.device)
    complete = torch.arange(scores.shape[3], device=scores.device) < (place // block)[:, None]
    return scores.masked_fill(~complete, -math.inf), complete


def seen_tokens(
    scores: Float[Tensor, "b h t m"], complete: Bool[Tensor, "t m"], k: int, block: int
) -> Bool[Tensor, "b h t t"]:
    """The tokens that each token reads: those of the k best complete blocks and of its own."""
    own = own_block(scores.shape[2], block, device=scores.device)
    return tokens_of(best(scores, k) & complete, block) | own


def own_block(tokens: int, block: int, *, device: torch.device) -> Bool[Tensor, "t t"]:
    """Which earlier tokens stand in the same block."""
    place = torch.arange(tokens, device=device)
    return (place[:, None] // block == place // block).tril()


def tokens_of(chosen: Bool[Tensor, "b h t m"], block: int) -> Bool[Tensor, "b h t t"]:
    """The tokens of the chosen blocks."""
    tokens = repeat(chosen, "b h t m -> b h t (m r)", r=block)
    return F.pad(tokens, (0, chosen.shape[2] - tokens.shape[3]))


def selected(x: Keys, chosen: Tensor, blocks: int, block: int) -> Float[Tensor, "b h s d"]:
    """The rows of the chosen ones (b h k) of `blocks` complete blocks, then those of the open
    block.
    """
    complete = x[:, :, : blocks * block]
    opened = x[:, :, blocks * block :]
    complete = rearrange(complete, "b h (m r) d -> b h m (r d)", m=blocks, r=block)
    picked = complete.gather(2, chosen[..., None].expand(*chosen.shape, complete.shape[-1]))
    return torch.cat([rearrange(picked, "b h k (r d) -> b h (k r) d", r=block), opened], 2)
