"""Gated DeltaProduct: n_h updates of the delta rule per token, so that a token may apply any
product of n_h reflections.

    S_{i,0} = a_i S_{i-1},
    S_{i,j} = S_{i,j-1} (I - b_ij k_ij k_ij^T) + b_ij v_ij k_ij^T  for j = 1, ..., n_h,
    S_i = S_{i,n_h},   y_i = S_i q_i

with q_i and k_ij scaled to unit length (0 stays 0), a_i = exp(-e^s softplus(A x_i + c)) per head as
in gdn.py, and b_ij = 2 sigmoid(B_j x_i) in (0, 2), or sigmoid(B_j x_i) without negative
eigenvalues. Channels of k, v and b: update first, then head. Released layers put SiLU on q, k and
v; here it comes with the short convolution (conv=1 with weights of 1 is that SiLU).
Source: Siems et al. 2025, arXiv 2502.10297.
State: S^T (heads, head_dim, value_dim). Parallel form: that of gdn.py on n_h T updates.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import linear
from separatrix.mixers.base.recurrence import Delta, Terms
from separatrix.mixers.base.recurrent import RecurrentMixer, per_head, unit
from separatrix.mixers.ops.gates import draw_steps, log_decay
from separatrix.stacks.mechanisms import DeltaProduct


class DeltaProductMixer(RecurrentMixer):
    """Gated DeltaProduct."""

    recurrence = Delta(scalar=True)

    def __init__(self, mechanism: DeltaProduct, *, width: int) -> None:
        super().__init__(mechanism, width=width, updates=mechanism.householders, unit_queries=True)
        self.a = nn.Linear(width, self.heads)
        self.b = linear(width, self.updates * self.heads)
        self.rate = nn.Parameter(torch.zeros(self.heads))
        self.largest = 2.0 if mechanism.negative else 1.0

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        draw_steps(self.a.bias, generator)
        with torch.no_grad():
            self.rate.zero_()

    def _forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        q, *updates = self._terms(self._heads_of(self._project(x)), x, 0)
        # a token reads after the last of its updates: queries of 0 stand at the others
        last = self.updates - 1
        spread = F.pad(q[:, :, :, None], (0, 0, last, 0))
        q = rearrange(spread, "b h t n d -> b h (t n) d")
        y = self.recurrence.outputs((q, *updates), chunk=self.chunk, dtype=x.dtype)
        return self._out(y[:, :, last :: self.updates], x)

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        q, k, v = qkv
        # the decay comes with the first update of a token
        first = log_decay(self.rate, self.a(x))[:, :, None]  # b t 1 h
        log_a = F.pad(first, (0, 0, 0, self.updates - 1)).flatten(1, 2)
        b = rearrange(self.b(x), "b t (n h) -> b (t n) h", n=self.updates)
        return unit(q), unit(k), v, per_head(log_a), per_head(b).sigmoid() * self.largest
