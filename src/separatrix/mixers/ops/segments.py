"""Long sequences in segments that hand on the state: what is formed on the way stays small.

Allocators keep small pieces of memory for the next use. Large ones (in glibc those above 32 MiB)
they give back to the system, which zeroes them page by page at every use. Without segments, times
more than double from 8,192 to 16,384 tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

NUMBERS = 1 << 20
"""Largest number of elements of queries, keys or values in a segment."""


Segment = Callable[..., tuple[Tensor, Tensor]]
"""Inputs (b h t .) of a segment and, by the name `state`, the state before it, None for the
empty one -> its outputs and the state after it.
"""


def in_segments(run: Segment, *inputs: Tensor, chunk: int) -> Tensor:
    """The outputs for all tokens. Segments are multiples of `chunk` tokens; on CUDA, where large
    steps are cheap, there is one.
    """
    tokens = inputs[0].shape[2]
    per_token = max(x[:1, :1, :1].numel() for x in inputs) * inputs[0].shape[0] * inputs[0].shape[1]
    most = max(1, NUMBERS // per_token // chunk) * chunk
    # a little more than one segment is one: a pass over a few tokens costs more
    size = tokens if inputs[0].is_cuda or 2 * tokens <= 3 * most else most
    state = None
    outputs = []
    for part in zip(*(x.split(size, 2) for x in inputs), strict=True):
        y, state = run(*part, state=state)
        outputs.append(y)
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 2)
