"""Gates that several recurrences share. Shapes: b batch, t tokens, w model width, h heads."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.mixer import linear, wide
from separatrix.mixers.base.tensors import SomeTokens

STEPS = (1e-3, 1e-1)
"""`draw_steps` draws softplus(c) log-uniformly between these, as the reference implementations
draw their step sizes.
"""
RATES = (1.0, 16.0)
"""`draw_rates` draws e^s uniformly between these."""


class LowRank(nn.Module):
    """x -> W_2 f(W_1 x) + c through `rank` numbers."""

    def __init__(self, width: int, rank: int, outputs: int, *, tanh: bool = False) -> None:
        super().__init__()
        self.down = linear(width, rank)
        self.up = nn.Linear(rank, outputs)
        self.tanh = tanh

    def forward(self, x: SomeTokens) -> Float[Tensor, "*b o"]:
        y = self.down(x)
        return self.up(y.tanh() if self.tanh else y)


def log_decay(rate: Float[Tensor, "*#b"], z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """log a = -e^rate softplus(z), in float32 at least."""
    return -wide(rate).exp() * F.softplus(wide(z))


@torch.no_grad()
def draw_steps(bias: Tensor, generator: torch.Generator) -> None:
    """Fills c so that softplus(c) is log-uniform between STEPS."""
    low, high = (torch.tensor(x, dtype=torch.float32).log() for x in STEPS)
    step = (low + (high - low) * _uniform(bias, generator)).exp()
    # the inverse of softplus: log(e^s - 1) = s + log(1 - e^-s), without e^s
    bias.copy_(step + torch.log(-torch.expm1(-step)))


@torch.no_grad()
def draw_rates(rate: Tensor, generator: torch.Generator) -> None:
    """Fills s so that e^s is uniform between RATES."""
    rate.copy_((RATES[0] + (RATES[1] - RATES[0]) * _uniform(rate, generator)).log())


def _uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    """In float32 whatever the default format is, so that a seed draws the same weights."""
    return torch.rand(like.shape, generator=generator, dtype=torch.float32)
