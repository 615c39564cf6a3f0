"""What queries at a few places read: sums over all earlier tokens written out, without the states
that the chunks of a whole sequence hand on.

Shapes: b batch, h heads, t tokens, r queries, d key dimension, e value dimension.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.mixers.base.tensors import Keys, Queries, Reads, Values
from separatrix.mixers.ops.decay import after_at, bounded


def read_decayed(
    q: Queries, k: Keys, v: Values, log_a: Float[Tensor, "b h t"], places: Int[Tensor, "b r"]
) -> Reads:
    """sum_{j<=i} a_{j+1} ... a_i <q_i, k_j> v_j for the tokens i at the places."""
    kept = after_at(bounded(log_a), places).exp()
    return (kept * (q @ k.mT)).masked_fill(later(places, k.shape[2]), 0) @ v


def later(places: Int[Tensor, "b r"], tokens: int) -> Bool[Tensor, "b 1 r t"]:
    """Which tokens come after each place."""
    return torch.arange(tokens, device=places.device) > places[:, None, :, None]
