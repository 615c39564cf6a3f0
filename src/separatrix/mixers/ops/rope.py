"""Rotary position embedding: dimension pair (r, r + d/2) of the first d dimensions of a token at
place i turns by i times the angle of pair r (numbers/rotary.py); other dimensions stay.

Source: Su et al. 2021, arXiv 2104.09864; halves instead of neighbours form the pairs, as in Llama
and transformers. Scores depend on differences of places only. Shapes: b batch, h heads, t tokens, d
head dimension.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers.base.tensors import Keys


def rotate(
    x: Keys, rotation: Rotation, *, start: int = 0, places: Int[Tensor, "b t"] | None = None
) -> Keys:
    """x with the pairs of its tokens turned, which stand at `places` or else at `start`, `start` +
    1, ... Angles in float32 at least.
    """
    half = rotation.dims // 2
    # half formats hold every place only up to 2,048 (fp16) or 256 (bf16)
    dtype = torch.promote_types(x.dtype, torch.float32)
    if places is None:
        place = torch.arange(start, start + x.shape[2], dtype=dtype, device=x.device)
    else:
        place = places.to(dtype)[:, None]  # b 1 t
    angle = place[..., None] * torch.tensor(rotation.frequencies, dtype=dtype, device=x.device)
    cos = angle.cos()
    sin = angle.sin()
    one = x[..., :half]
    other = x[..., half : rotation.dims]
    turned = torch.cat([one * cos - other * sin, other * cos + one * sin], -1).to(x.dtype)
    return torch.cat([turned, x[..., rotation.dims :]], -1)
