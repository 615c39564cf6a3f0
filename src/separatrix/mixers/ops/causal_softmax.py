"""Causal softmax attention in the form that is quickest: PyTorch's fused kernel, or parts of the
queries with their weights written out.

Shapes: b batch, h heads, t tokens, d key dimension, e value dimension.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.tensors import Keys, Values
from separatrix.mixers.ops.parted_softmax import parted_softmax
from separatrix.mixers.ops.softmax import fused, fused_softmax


def causal_softmax(
    q: Keys, k: Keys, v: Values, sink: Float[Tensor, " h"] | None = None, cap: int = 0
) -> Values:
    """Causal softmax attention with scores <q, k>, capped where `cap` is not 0, and with sinks."""
    if cap or not fused(q, k):
        return parted_softmax(q, k, v, cap=cap, sink=sink)
    if sink is None:
        return fused_softmax(q, k, v, is_causal=True)
    # a token before the first, of value 0, whose score with every query is the sink:
    # <(q, 1), (0, s)>
    q = F.pad(q, (0, 1), value=1.0)
    k = F.pad(k, (0, 1))
    first = F.pad(sink[:, None].expand(*k.shape[:2], 1), (k.shape[3] - 1, 0))[:, :, None]
    # a query beside that token keeps the causal mask in step; its output is cut off
    q = F.pad(q, (0, 0, 1, 0))
    k = torch.cat([first, k], 2)
    v = F.pad(v, (0, 0, 1, 0))
    return fused_softmax(q, k, v, is_causal=True)[:, :, 1:]
