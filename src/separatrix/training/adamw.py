"""AdamW for several models at once, each with a learning rate and a weight decay of its own.

    m = b_1 m + (1 - b_1) g,   v = b_2 v + (1 - b_2) g^2
    p = p - rate (decay p + (m / (1 - b_1^t)) / (sqrt(v / (1 - b_2^t)) + eps))

Source: Loshchilov and Hutter 2019, arXiv 1711.05101. `torch.optim.AdamW` has one rate for all
models of a stack; tests compare both, model by model.
"""

from __future__ import annotations

import torch
from torch import Tensor

BETAS = (0.9, 0.98)
_EPS = 1e-8


class AdamW:
    """The running moments of parameters (members, numbers), of which the first `decayed` decay."""

    def __init__(self, parameters: Tensor, decayed: int) -> None:
        self.decayed = decayed
        self.first = torch.zeros_like(parameters)
        self.second = torch.zeros_like(parameters)

    @staticmethod
    def corrections(step: int) -> tuple[float, float]:
        """1 / (1 - b_1^t) and sqrt(1 - b_2^t) of step t, which counts from 1."""
        return 1 / (1 - BETAS[0] ** step), (1 - BETAS[1] ** step) ** 0.5

    @torch.no_grad()
    def step(
        self, parameters: Tensor, gradient: Tensor, rates: Tensor, decay: Tensor, clock: Tensor
    ) -> None:
        """One step in place. `rates` and `decay` (members, 1): learning rate, and its product with
        the weight decay; `clock` (2,) holds `corrections`.
        """
        self.first.lerp_(gradient, 1 - BETAS[0])
        self.second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        # sqrt(v) + eps c instead of sqrt(v)/c + eps: the same quotient, a pass less
        lower = self.second.sqrt().add_(clock[1] * _EPS)
        change = torch.div(self.first, lower, out=lower).mul_(rates * (clock[0] * clock[1]))
        parameters[:, : self.decayed].mul_(1 - decay)
        parameters.sub_(change)
