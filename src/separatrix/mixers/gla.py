"""Gated linear attention.

    S_i = S_{i-1} diag(a_i) + v_i k_i^T,   y_i = S_i q_i,
    a_i = sigmoid(W_2 W_1 x_i + c)^(1/16) per head and key dimension

W_1 maps to 16 numbers.
Source: Yang et al. 2023, arXiv 2312.06635, section 4.
State: S^T (heads, head_dim, value_dim). Parallel form: chunks (ops/decay.py).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.heads import Projected, split_heads
from separatrix.mixers.base.mixer import wide
from separatrix.mixers.base.recurrence import Decayed, Terms
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.ops.gates import LowRank
from separatrix.stacks.mechanisms import GLA

RANK = 16
TEMPERATURE = 16
"""tau of the paper: gates are raised to 1/tau."""


class GLAMixer(RecurrentMixer):
    """Gated linear attention."""

    recurrence = Decayed()

    def __init__(self, mechanism: GLA, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.a = LowRank(width, RANK, self.heads * self.head_dim)

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        with torch.no_grad():
            # gates then lie around 2^(-1/16) = 0.96
            self.a.up.bias.zero_()

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        log_a = F.logsigmoid(wide(split_heads(self.a(x), self.heads))) / TEMPERATURE
        return *qkv, log_a
