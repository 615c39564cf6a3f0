"""The selective scan of Mamba: every channel has a state of its own, and every number of it a rate.

    h_i = exp(D_i A) h_{i-1} + w_i B_i,   y_i = <C_i, h_i>

Decays differ between the channels and the numbers of their states, so there is no form of matrix
products: h is computed for every token (ops/scan.py), segment by segment, so that states of a few
tokens only are there at a time.

Shapes: b batch, t tokens, s tokens of a segment, c channels, n numbers of a channel's state.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.tensors import Channels
from separatrix.mixers.ops.decay import after
from separatrix.mixers.ops.scan import scan

NUMBERS = 1 << 21
"""Largest number of states' numbers in a segment on a CPU (ops/segments.py says why)."""
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
