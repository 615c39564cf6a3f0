"""Mamba-2 (SSD).

    S_i = a_i S_{i-1} + D_i x_i B_i^T,   y_i = S_i C_i + E x_i,   D_i = softplus(W u_i + c),
    a_i = exp(-e^s D_i) per head

u_i is the layer's input; x_i (head_dim per head), B_i and C_i (`state` numbers per group of heads)
are maps of it, here `v`, `k` and `q`, through the short convolution where there is one; E is a
number per head. The released block's gate silu(z) and the norm after it are position-wise and left
out.
Source: Dao, Gu 2024, arXiv 2405.21060; their A = -e^s, D_i = Delta_i, E = D.
State: S^T (heads, state, head_dim). Parallel form: chunks (ops/decay.py).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mechanisms import Mamba2
from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import wide
from separatrix.mixers.base.recurrence import Decayed, Terms
from separatrix.mixers.base.recurrent import RecurrentMixer, per_head
from separatrix.mixers.ops.gates import draw_rates, draw_steps


class Mamba2Mixer(RecurrentMixer):
    """Mamba-2."""

    recurrence = Decayed()

    def __init__(self, mechanism: Mamba2, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.dt = nn.Linear(width, self.heads)
        self.rate = nn.Parameter(torch.zeros(self.heads))
        self.skip = nn.Parameter(torch.ones(self.heads))

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        draw_steps(self.dt.bias, generator)
        draw_rates(self.rate, generator)
        with torch.no_grad():
            self.skip.fill_(1)

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        q, k, v = qkv
        step, log_a = self._gates(x)
        return q, k, step * v, log_a

    def _beside(self, qkv: Projected) -> Tensor:
        q, _, v = qkv
        return self.skip[:, None, None] * v[:, :, -q.shape[2] :]

    def _gates(
        self, x: Float[Tensor, "b t w"]
    ) -> tuple[Float[Tensor, "b h t 1"], Float[Tensor, "b h t 1"]]:
        """The step size and log a."""
        step = F.softplus(wide(self.dt(x)))
        return per_head(step), per_head(-wide(self.rate).exp() * step)
