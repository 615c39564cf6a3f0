"""Muon for the hidden matrices of several models at once, each with a learning rate and a weight
decay of its own.

    B = mu B + (1 - mu) G,   U = orthogonal((1 - mu) G + mu B)
    W = W - rate (decay W + 0.2 sqrt(max(a, b)) U)           of a matrix (a, b)

`orthogonal` moves every singular value near 1, by five steps of Newton and Schulz. The factor gives
U the size of a step of AdamW (root mean square 0.2), so that one learning rate serves both.
Source: Jordan 2024, kellerjordan.github.io/posts/muon; the factor: Liu et al. 2025, arXiv
2502.16982. `torch.optim.Muon` has one rate for all models of a stack; tests compare both, matrix by
matrix.
"""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.training.stacked import Matrices

MOMENTUM = 0.95
_A = 3.4445
_B = -4.7750
_C = 2.0315
_STEPS = 5
_EPS = 1e-7


def orthogonal(matrices: Tensor) -> Tensor:
    """Matrices (n, a, b), a <= b, with their singular values near 1: about 0.7 to 1.2."""
    x = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=_EPS)
    for _ in range(_STEPS):
        square = torch.bmm(x, x.mT)
        step = torch.baddbmm(square, square, square, beta=_B, alpha=_C)
        x = torch.baddbmm(x, step, x, beta=_A)
    return x


class Muon:
    """The momentum of the hidden matrices in parameters (members, numbers), from column `start`
    on.
    """

    def __init__(
        self, parameters: Tensor, start: int, matrices: tuple[Matrices, ...], dtype: torch.dtype
    ) -> None:
        self.start = start
        self.matrices = matrices
        self.dtype = dtype
        """What the steps of Newton and Schulz are computed in."""
        self.momentum = torch.zeros_like(parameters[:, start:])

    @torch.no_grad()
    def step(self, parameters: Tensor, gradient: Tensor, rates: Tensor, decay: Tensor) -> None:
        """One step in place. `rates` and `decay` (members, 1): learning rate, and its product with
        the weight decay.
        """
        gradient = gradient[:, self.start :]
        self.momentum.lerp_(gradient, 1 - MOMENTUM)
        ahead = gradient.lerp(self.momentum, MOMENTUM)
        parameters[:, self.start :].mul_(1 - decay)
        for group in self.matrices:
            # wide ones and the transposes of tall ones
            own = group._replace(start=group.start - self.start).of(ahead)
            tall = group.rows > group.columns
            flat = (own.mT if tall else own).flatten(0, 1).to(self.dtype)
            change = orthogonal(flat).to(own.dtype).unflatten(0, own.shape[:2])
            scale = 0.2 * max(group.rows, group.columns) ** 0.5
            target = group.of(parameters)
            target.sub_((change.mT if tall else change) * (scale * rates)[..., None, None])
