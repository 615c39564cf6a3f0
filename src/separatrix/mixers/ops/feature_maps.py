"""Feature maps phi of linear attention, and the kernels <phi(q), phi(k)> they stand for."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def features(name: str, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b f"]:
    """phi(x): elu(x)+1, relu(x), x, or taylor (1, x, x (x) x / sqrt 2), of d, d, d or 1+d+d^2
    numbers.
    """
    match name:
        case "elu":
            return F.elu(x) + 1
        case "relu":
            return F.relu(x)
        case "identity":
            return x
        case "taylor":
            # <x (x) x, y (x) y> = <x, y>^2, so the root of 1/2 gives s^2 / 2
            squares = (x[..., :, None] * x[..., None, :]).flatten(-2) * 0.5**0.5
            return torch.cat([torch.ones_like(x[..., :1]), x, squares], -1)
    raise ValueError(f"no feature map {name!r}")


def kernel(
    name: str, q: Float[Tensor, "*b i d"], k: Float[Tensor, "*b j d"]
) -> Float[Tensor, "*b i j"]:
    """<phi(q_i), phi(k_j)>; for taylor 1 + s + s^2/2 with s = <q_i, k_j>, without writing the
    features out.
    """
    if name == "taylor":
        s = q @ k.transpose(-1, -2)
        return 1 + s + 0.5 * s * s
    return features(name, q) @ features(name, k).transpose(-1, -2)
