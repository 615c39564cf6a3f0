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
    # the factor squares what is small, for which bfloat16 is too coarse
    if x.shape[2] >= 2 * x.shape[1] and x.dtype == torch.float32:
        return torch.bmm(_factor(torch.bmm(x, x.mT)), x)
    for _ in range(_STEPS):
        square = torch.bmm(x, x.mT)
        step = torch.baddbmm(square, square, square, beta=_B, alpha=_C)
        x = torch.baddbmm(x, step, x, beta=_A)
    return x


def _factor(square: Tensor) -> Tensor:
    """F with F x what the steps make of x, from x x^T alone: for x that is much wider than high.

    A step is x -> P x with P = A + B x x^T + C (x x^T)^2, so that x x^T becomes P x x^T P, and all
    of these commute.
    """
    factor = None
    for number in range(_STEPS):
        step = torch.baddbmm(square, square, square, beta=_B, alpha=_C)
        step.diagonal(dim1=1, dim2=2).add_(_A)
        factor = step if factor is None else torch.bmm(step, factor)
        if number < _STEPS - 1:
            square = torch.bmm(step, torch.bmm(square, step))
    assert factor is not None
    return factor


class Muon:
    """The momentum of the hidden matrices in parameters (members, numbers), from column `start`
    on.
    """

    def __init__(
        self, parameters: Tensor, start: int, matrices: tuple[Matrices, ...], dtype: torch.dtype
    ) -> None:
        self.start = start
        self.dtype = dtype
        """What the steps of Newton and Schulz are computed in."""
        self.momentum = torch.zeros_like(parameters[:, start:])
        alike: dict[tuple[int, int], list[Matrices]] = {}
        for group in matrices:
            sides = (min(group.rows, group.columns), max(group.rows, group.columns))
            alike.setdefault(sides, []).append(group)
        self._alike = tuple(alike.items())
        """The matrices by their sides: wide ones and the transposes of tall ones together."""

    @torch.no_grad()
    def step(self, parameters: Tensor, gradient: Tensor, rates: Tensor, decay: Tensor) -> None:
        """One step in place. `rates` and `decay` (members, 1): learning rate, and its product with
        the weight decay.
        """
        gradient = gradient[:, self.start :]
        self.momentum.lerp_(gradient, 1 - MOMENTUM)
        ahead = gradient.lerp(self.momentum, MOMENTUM)
        parameters[:, self.start :].mul_(1 - decay)
        for (_, longer), groups in self._alike:
            own = [_wide(group, group.before(self.start).of(ahead)) for group in groups]
            together = torch.cat(own, 1)
            change = orthogonal(together.flatten(0, 1).to(self.dtype)).to(ahead.dtype)
            scaled = change.unflatten(0, together.shape[:2]) * (
                (0.2 * longer**0.5) * rates[..., None, None]
            )
            parts = scaled.split([group.count for group in groups], 1)
            for group, part in zip(groups, parts, strict=True):
                group.of(parameters).sub_(_wide(group, part))


def _wide(group: Matrices, matrices: Tensor) -> Tensor:
    """Matrices of a group, or their transposes where it has tall ones; the same way back."""
    return matrices.mT if group.rows > group.columns else matrices
