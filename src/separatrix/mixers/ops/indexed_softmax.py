"""Softmax attention to the k tokens that a lightning indexer scores best, one choice for all heads:
a part of the queries at a time, computed again in the backward pass, so that memory is linear. No
choice has a gradient.

    I_ij = sum_h w_ih max(0, <q^I_ih, k^I_j>),   h over the index heads

Shapes: b batch, h heads, g key-value heads, t tokens, i queries, j keys, k chosen, d key dimension,
e value dimension.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.mixers.base.mixer import wide
from separatrix.mixers.base.tensors import Channels, GroupKeys, GroupValues, Keys, Values
from separatrix.mixers.ops import block_choice
from separatrix.mixers.ops.block_choice import largest, spans
from separatrix.mixers.ops.recompute import recomputed
from separatrix.mixers.ops.softmax import softmax

DENSE = 8
"""Queries that see up to this many times k tokens take a masked softmax over all of them, which is
faster than gathering theirs.
"""


def indexed_softmax(
    q: Keys,
    k: GroupKeys,
    v: GroupValues,
    index: tuple[Float[Tensor, "b t n c"], Float[Tensor, "b t n"], Channels],
    topk: int,
) -> Values:
    """The outputs of all tokens; `index` are queries, weights and keys of the indexer."""
    index_q, index_w, index_k = index
    batch, heads, tokens, _ = q.shape
    # at least 64 queries to a part, and some 64 parts at most: each costs a pass of its own
    places = spans(tokens, max(64, tokens // 64, block_choice.ROOM // (batch * heads * tokens)), 1)
    lengths = [last - first for first, last in places]
    outputs = []
    for (first, last), part, iq, iw in zip(
        places,
        q.split(lengths, 2),
        index_q.split(lengths, 1),
        index_w.split(lengths, 1),
        strict=True,
    ):
        seen = (
            torch.arange(last, device=q.device)
            <= torch.arange(first, last, device=q.device)[:, None]
        )
        chosen = largest(
            index_scores(iq, iw, index_k[:, :last]).masked_fill(~seen, -math.inf), topk
        )
        read = masked if last <= DENSE * topk else gathered
        outputs.append(
            recomputed(partial(read, start=first), part, k[:, :, :last], v[:, :, :last], chosen)
        )
    return torch.cat(outputs, 2)


def index_scores(
    q: Float[Tensor, "b i h d"], w: Float[Tensor, "b i h"], k: Float[Tensor, "b j d"]
) -> Float[Tensor, "b i j"]:
    """Scores of all tokens j for each token i, no token hidden."""
    k = wide(k).transpose(-1, -2)
    scores = None
    # in turn: all at once take a lot of memory
    for one, weight in zip(wide(q).unbind(2), wide(w)[..., None].unbind(2), strict=True):
        hits = (one @ k).relu()
        scores = weight * hits if scores is None else torch.addcmul(scores, weight, hits)
    assert scores is not None
    return scores


def masked(q: Tensor, k: Tensor, v: Tensor, chosen: Tensor, *, start: int) -> Tensor:
    """Softmax over the chosen tokens (b i k) for queries at `start`, ... (q b h i d; k, v b g j
    .), all others masked.
    """
    seen = _visible(chosen, start)
    mask = torch.zeros(*chosen.shape[:2], k.shape[2], dtype=torch.bool, device=q.device).scatter(
        -1, chosen, seen
    )
    queries = q.unflatten(1, (k.shape[1], -1))  # b g r i d
    scores = (queries @ k[:, :, None].transpose(-1, -2)).masked_fill(
        ~mask[:, None, None], -math.inf
    )
    return softmax(scores.flatten(1, 2), v.repeat_interleave(queries.shape[2], 1))


def gathered(q: Tensor, k: Tensor, v: Tensor, chosen: Tensor, *, start: int) -> Tensor:
    """The same, of keys and values gathered for every query."""
    batch, groups, tokens, _ = k.shape
    # the rows of all sequences and heads in one list: where each of them begins
    first = torch.arange(batch * groups, device=k.device).view(batch, groups, 1, 1) * tokens
    rows = (chosen[:, None] + first).flatten()
    keys, values = (
        y.flatten(0, 2).index_select(0, rows).view(batch, groups, *chosen.shape[1:], -1)
        for y in (k, v)
    )  # b g i k .
    queries = q.unflatten(1, (groups, -1)).transpose(2, 3)  # b g i r d
    scores = (queries @ keys.transpose(-1, -2)).masked_fill(
        ~_visible(chosen, start)[:, None, :, None], -math.inf
    )
    return (scores.softmax(-1) @ values).transpose(2, 3).flatten(1, 2)


def _visible(chosen: Int[Tensor, "b i k"], start: int) -> Bool[Tensor, "b i k"]:
    """Which of the chosen are not later than the query: a query with fewer than k earlier tokens
    has chosen later ones too.
    """
    return chosen <= torch.arange(start, start + chosen.shape[1], device=chosen.device)[:, None]
