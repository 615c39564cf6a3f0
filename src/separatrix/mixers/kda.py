"""Kimi Delta Attention: Gated DeltaNet with a decay per key dimension.

    S_i = S_{i-1} diag(a_i) (I - b_i k_i k_i^T) + b_i v_i k_i^T,   y_i = S_i q_i

with q_i and k_i scaled to unit length (0 stays 0), b_i = sigmoid(B x_i) per head in (0, 1), or 2
sigmoid(B x_i) in (0, 2) with negative eigenvalues, and a_i = exp(-e^s softplus(W_2 W_1 x_i + c))
per head and key dimension, s per head, through head_dim numbers. Released layers put SiLU on q, k
and v; here it comes with the short convolution (conv=1 with weights of 1 is that SiLU).
Source: Kimi Team 2025 (Kimi Linear), arXiv 2510.26692; negative eigenvalues: Grazzi et al. 2024,
arXiv 2411.12537. State: S^T (heads, head_dim, value_dim).
Parallel form: chunks (ops/delta_rule.py).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.heads import Projected, split_heads
from separatrix.mixers.base.mixer import linear
from separatrix.mixers.base.recurrence import Delta, Terms
from separatrix.mixers.base.recurrent import RecurrentMixer, per_head, unit
from separatrix.mixers.ops.gates import LowRank, draw_rates, draw_steps, log_decay
from separatrix.stacks.mechanisms import KDA


class KDAMixer(RecurrentMixer):
    """Kimi Delta Attention."""

    recurrence = Delta()

    def __init__(self, mechanism: KDA, *, width: int) -> None:
        super().__init__(mechanism, width=width, unit_queries=True)
        self.a = LowRank(width, self.head_dim, self.heads * self.head_dim)
        self.b = linear(width, self.heads)
        self.rate = nn.Parameter(torch.zeros(self.heads))
        self.largest = 2.0 if mechanism.negative else 1.0

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        draw_steps(self.a.up.bias, generator)
        draw_rates(self.rate, generator)

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        q, k, v = qkv
        log_a = log_decay(self.rate[:, None, None], split_heads(self.a(x), self.heads))
        return unit(q), unit(k), v, log_a, per_head(self.b(x)).sigmoid() * self.largest
