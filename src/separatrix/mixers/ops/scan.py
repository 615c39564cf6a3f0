"""Recurrences that scale each number of their state by itself, h_i = a_i h_{i-1} + added_i; and the
selective scan of Mamba, where every channel has a state of its own, and every number of it a rate:

    h_i = exp(D_i A) h_{i-1} + w_i B_i,   y_i = <C_i, h_i>

All chunks at once token by token, then chunk by chunk: as many steps as a chunk has tokens, and as
many as there are chunks. Decays of the selective scan differ between the channels and the numbers
of their states, so there is no form of matrix products: h is computed for every token, segment by
segment, so that states of a few tokens only are there at a time.

Shapes: b batch, t tokens, c channels, or numbers of the state, n numbers of a channel's state.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.tensors import Channels
from separatrix.mixers.ops.decay import after


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


NUMBERS = 1 << 21
"""Largest number of states' numbers in a segment on a CPU (`in_segments` says why)."""
NUMBERS_CUDA = 1 << 28
"""And on CUDA, where large steps are cheap, and memory ends."""


def selective_scan(
    step: Channels,
    rates: Float[Tensor, "c n"],
    written: Channels,
    b: Float[Tensor, "b t n"],
    c: Float[Tensor, "b t n"],
    *,
    chunk: int,
) -> Channels:
    """y_i for every i: steps D of at least 0, rates A of at most 0, `written` w."""
    state = None
    outputs: list[Tensor] = []
    for d, w, k, q in _segments(step, written, b, c, rates=rates, chunk=chunk):
        log_a = d[..., None] * rates
        added = w[..., None] * k[:, :, None]
        h = scan(log_a.flatten(2), added.flatten(2), chunk=chunk, state=state)
        state = h[:, -1]
        outputs.append((h.unflatten(2, rates.shape) * q[:, :, None]).sum(-1))
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 1)


def final_state(
    step: Channels,
    rates: Float[Tensor, "c n"],
    written: Channels,
    b: Float[Tensor, "b t n"],
    *,
    chunk: int,
) -> Float[Tensor, "b c n"]:
    """h after the last token."""
    state = torch.zeros_like(step[:, 0, :, None] * rates)
    for d, w, k in _segments(step, written, b, rates=rates, chunk=chunk):
        kept = (after(d)[..., None] * rates).exp()
        added = (kept * w[..., None] * k[:, :, None]).sum(1)
        state = torch.addcmul(added, (d.sum(1)[..., None] * rates).exp(), state)
    return state


def _segments(*inputs: Tensor, rates: Tensor, chunk: int) -> Iterator[tuple[Tensor, ...]]:
    """The inputs (b t .) in segments of whole chunks."""
    most = NUMBERS_CUDA if inputs[0].is_cuda else NUMBERS
    per_chunk = len(inputs[0]) * rates.numel() * chunk
    size = max(1, most // per_chunk) * chunk
    return zip(*(x.split(size, 1) for x in inputs), strict=True)
