"""Recurrences that scale each number of their state by itself: h_i = a_i h_{i-1} + added_i.

All chunks at once token by token, then chunk by chunk: as many steps as a chunk has tokens, and as
many as there are chunks.

Shapes: b batch, t tokens, n chunks, c numbers of the state.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.tensors import Channels


def scan(
    log_a: Channels, added: Channels, *, chunk: int, state: Float[Tensor, "b c"] | None = None
) -> Channels:
    """h_i for every i, from the state before the first token (0 if not given), with log a of at
    most 0.
    """
    tokens = log_a.shape[1]
    size = min(chunk, tokens)
    log_a, added = (
        F.pad(x, (0, 0, 0, -tokens % size)).unflatten(1, (-1, size)) for x in (log_a, added)
    )  # b n s c
    h = torch.zeros_like(added[:, :, 0])
    parts = []
    for a, new in zip(log_a.exp().unbind(2), added.unbind(2), strict=True):
        h = torch.addcmul(new, a, h)
        parts.append(h)
    y = torch.stack(parts, 2)
    if y.shape[1] > 1 or state is not None:
        # no log a is above 0, so products of decays stay at most 1
        kept = log_a.cumsum(2).exp()
        state = torch.zeros_like(h[:, 0]) if state is None else state
        before = []
        for keep, end in zip(kept[:, :, -1].unbind(1), h.unbind(1), strict=True):
            before.append(state)
            state = torch.addcmul(end, keep, state)
        y = torch.addcmul(y, kept, torch.stack(before, 1)[:, :, None])
    return y.flatten(1, 2)[:, :tokens]
