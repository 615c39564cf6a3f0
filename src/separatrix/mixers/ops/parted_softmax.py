"""Causal softmax attention with its weights written out, also with what fused kernels lack, capped
scores and forget gates: a part of the queries at a time, which reads no later part. Long sequences
compute each part again in the backward pass, so that memory stays linear.

    s_ij = cap(<q_i, k_j>) + f_{j+1} + ... + f_i,   f_l = log of the forget gate of token l

Sums of f are taken between the two tokens, never as differences of sums from the start, which would
lose the digits that the two have in common. For a query of a part that starts at token b and a key
before b the sum is one up to b and one from b on.

Shapes: b batch, h heads, t tokens, i queries of a part, j keys up to its end, d key dimension, e
value dimension.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.mixer import wide
from separatrix.mixers.base.tensors import Keys, Values
from separatrix.mixers.ops.block_choice import ROOM, spans
from separatrix.mixers.ops.decay import after
from separatrix.mixers.ops.recompute import recomputed
from separatrix.mixers.ops.softmax import KEPT, capped, softmax

PART = 128
"""Queries of a part, about, where weights are kept for the backward pass. Forward and backward of
257 tokens, batch 64, a head of 64: 52 ms in parts of 128, 60 of 64, 65 in one.
"""


def parted_softmax(
    q: Keys,
    k: Keys,
    v: Values,
    *,
    log_f: Float[Tensor, "b h t"] | None = None,
    cap: int = 0,
    sink: Float[Tensor, " h"] | None = None,
) -> Values:
    """Softmax over all tokens up to the own one."""
    batch, heads, tokens, _ = q.shape
    gates = [] if log_f is None else [log_f]
    # first axis the batch, as `recomputed` asks
    sinks = [] if sink is None else [sink.expand(batch, heads)]
    kept = tokens <= PART or batch * heads * tokens * tokens <= KEPT
    if kept:
        # parts of one size: a last one of a few queries would cost as much as another
        size = -(-tokens // max(1, round(tokens / PART)))
        places = [(first, min(first + size, tokens)) for first in range(0, tokens, size)]
    else:
        # at least 64 queries to a part, and some 64 parts at most: each costs a pass of its own
        places = spans(tokens, max(64, tokens // 64, ROOM // (batch * heads * tokens)), 1)
    outputs = []
    for first, last in places:
        seen = (x[:, :, :last] for x in (k, v, *gates))
        inputs = (q[:, :, first:last], *seen, *sinks)
        run = partial(_part, gated=bool(gates), first=first, cap=cap)
        outputs.append(run(*inputs) if kept else recomputed(run, *inputs))
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 2)


def _part(
    q: Tensor, k: Tensor, v: Tensor, *rest: Tensor, gated: bool, first: int, cap: int
) -> Tensor:
    """The outputs of the queries from token `first` on; the rest are gates, if any, and sinks."""
    q = wide(q)
    k = wide(k)
    last = k.shape[2]
    # added, not filled in: that needs no pass of its own in the backward pass
    mask = q.new_full((last - first, last), -math.inf).triu(1 + first)
    sink = rest[-1] if len(rest) > gated else None
    if cap or gated:
        scores = capped(q @ k.mT, cap) + mask
        return softmax(scores + between(rest[0], first) if gated else scores, v, sink)
    scores = torch.baddbmm(mask, q.flatten(0, 1), k.flatten(0, 1).mT).unflatten(0, q.shape[:2])
    return softmax(scores, v, sink)


def between(log_f: Float[Tensor, "b h j"], first: int) -> Float[Tensor, "b h i j"]:
    """f_{j+1} + ... + f_i for the tokens i from `first` on; of later j something finite."""
    own = log_f[:, :, first:, None]
    up_to = own.cumsum(2)
    # its own part: every sum by itself
    inside = own.expand(*own.shape[:3], own.shape[2]).tril(-1).cumsum(-2)
    if not first:
        return inside
    before = after(log_f[:, :, :first, None]).transpose(-1, -2)
    return torch.cat([up_to + before, inside], -1)
