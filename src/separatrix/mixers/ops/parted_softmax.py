"""Causal softmax attention with what fused kernels lack, capped scores and forget gates: a part of
the queries at a time, computed again in the backward pass, so that memory stays linear.

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
from separatrix.mixers.base.softmax import capped, softmax
from separatrix.mixers.ops.block_choice import ROOM, spans
from separatrix.mixers.ops.decay import after
from separatrix.mixers.ops.recompute import recomputed

SHORT = 128
"""Sequences up to this length are one part, whose weights are kept for the backward pass."""


def parted_softmax(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b h t d"],
    v: Float[Tensor, "b h t e"],
    *,
    log_f: Float[Tensor, "b h t"] | None = None,
    cap: int = 0,
    sink: Float[Tensor, " h"] | None = None,
) -> Float[Tensor, "b h t e"]:
    """Softmax over all tokens up to the own one."""
    batch, heads, tokens, _ = q.shape
    gates = [] if log_f is None else [log_f]
    # first axis the batch, as `recomputed` asks
    sinks = [] if sink is None else [sink.expand(batch, heads)]
    if tokens <= SHORT:
        places = [(0, tokens)]
    else:
        # at least 64 queries to a part, and some 64 parts at most: each costs a pass of its own
        places = spans(tokens, max(64, tokens // 64, ROOM // (batch * heads * tokens)), 1)
    outputs = []
    for first, last in places:
        seen = (x[:, :, :last] for x in (k, v, *gates))
        inputs = (q[:, :, first:last], *seen, *sinks)
        run = partial(_part, gated=bool(gates), first=first, cap=cap)
        outputs.append(run(*inputs) if tokens <= SHORT else recomputed(run, *inputs))
    return torch.cat(outputs, 2)


def _part(
    q: Tensor, k: Tensor, v: Tensor, *rest: Tensor, gated: bool, first: int, cap: int
) -> Tensor:
    """The outputs of the queries from token `first` on; the rest are gates, if any, and sinks."""
    scores = capped(wide(q) @ wide(k).transpose(-1, -2), cap)
    if gated:
        scores = scores + between(rest[0], first)
    last = k.shape[2]
    query = torch.arange(first, last, device=q.device)[:, None]
    hidden = torch.arange(last, device=q.device) > query
    sink = rest[-1] if len(rest) > gated else None
    return softmax(scores.masked_fill(hidden, -math.inf), v, sink)


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
