"""Gated DeltaNet.

    S_i = a_i S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T,   y_i = S_i q_i

with q_i and k_i scaled to unit length (0 stays 0), and per head a_i = exp(-e^s softplus(A x_i + c))
in (0, 1) and b_i = sigmoid(B x_i) in (0, 1), or 2 sigmoid(B x_i) in (0, 2) with negative
eigenvalues. `reset` starts s at 0, where a_i = sigmoid(-A x_i - c). Released layers put SiLU on q,
k and v; here it comes with the short convolution (conv=1 with weights of 1 is that SiLU).
Source: Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464; negative eigenvalues: Grazzi et al. 2024,
arXiv 2411.12537. State: S^T (heads, head_dim, value_dim).
Parallel form: chunks (ops/delta_rule.py).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import linear
from separatrix.mixers.base.recurrence import Delta, Terms
from separatrix.mixers.base.recurrent import RecurrentMixer, per_head, unit
from separatrix.mixers.ops.gates import draw_steps, log_decay
from separatrix.stacks.mechanisms import GatedDeltaNet


class GDNMixer(RecurrentMixer):
    """Gated DeltaNet."""

    recurrence = Delta(scalar=True)

    def __init__(self, mechanism: GatedDeltaNet, *, width: int) -> None:
        super().__init__(mechanism, width=width, unit_queries=True)
        self.a = nn.Linear(width, self.heads)
        self.b = linear(width, self.heads)
        self.rate = nn.Parameter(torch.zeros(self.heads))
        self.largest = 2.0 if mechanism.negative else 1.0

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        draw_steps(self.a.bias, generator)
        with torch.no_grad():
            self.rate.zero_()

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        q, k, v = qkv
        log_a = per_head(log_decay(self.rate, self.a(x)))
        b = per_head(self.b(x)).sigmoid() * self.largest
        return unit(q), unit(k), v, log_a, b
