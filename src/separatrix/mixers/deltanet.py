"""DeltaNet.

    S_i = S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T,   y_i = S_i q_i

with q_i and k_i scaled to unit length (0 stays 0) and per head b_i = sigmoid(B x_i) in (0, 1), or 2
sigmoid(B x_i) in (0, 2) with negative eigenvalues.
Released layers put SiLU on q, k and v; here it comes with the short convolution (conv=1 with
weights of 1 is that SiLU).
Source: Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174; Yang et al. 2024, arXiv 2406.06484;
negative eigenvalues: arXiv 2411.12537. State: S^T (heads, head_dim, value_dim). Parallel form:
chunks (ops/delta_rule.py).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import linear
from separatrix.mixers.base.recurrence import Delta, Terms
from separatrix.mixers.base.recurrent import RecurrentMixer, per_head, unit
from separatrix.stacks.mechanisms import DeltaNet


class DeltaNetMixer(RecurrentMixer):
    """DeltaNet."""

    recurrence = Delta(scalar=True)

    def __init__(self, mechanism: DeltaNet, *, width: int) -> None:
        super().__init__(mechanism, width=width, unit_queries=True)
        self.b = linear(width, self.heads)
        self.largest = 2.0 if mechanism.negative else 1.0

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        q, k, v = qkv
        b = per_head(self.b(x)).sigmoid() * self.largest
        # no decay: the gated rule with log a = 0
        return unit(q), unit(k), v, torch.zeros_like(b), b
