"""DeltaNet.

    S_i = S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T,   y_i = S_i q_i

with q_i and k_i scaled to unit length (0 stays 0) and per head b_i = sigmoid(B x_i) in (0, 1), or 2
sigmoid(B x_i) in (0, 2) with negative eigenvalues.
Released layers put SiLU on q, k and v; here it comes with the short convolution (conv=1 with
weights of 1 is that SiLU).
Source: Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174; Yang et al. 2024, arXiv 2406.06484;
negative eigenvalues: arXiv 2411.12537. State: S^T (heads, head_dim, value_dim). Parallel form:
chunks (_delta.py).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.mechanisms import DeltaNet
from separatrix.mixers.base.mixer import State, linear, wide
from separatrix.mixers.base.recurrent import RecurrentMixer, per_head, unit
from separatrix.mixers.kernels import delta
from separatrix.mixers.ops.delta_rule import delta_step


class DeltaNetMixer(RecurrentMixer):
    """DeltaNet."""

    def __init__(self, mechanism: DeltaNet, *, width: int) -> None:
        super().__init__(mechanism, width=width, unit_queries=True)
        self.b = linear(width, self.heads)
        self.largest = 2.0 if mechanism.negative else 1.0

    def _forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        q, k, v = self._qkv(x)
        return self._out(
            delta(unit(q), unit(k), v, *self._gates(x), chunk=self.chunk, dtype=x.dtype), x
        )

    def _last(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b w"]:
        q, k, v = self._qkv_last(x)
        return self._out(
            delta(unit(q), unit(k), v, *self._gates(x), chunk=self.chunk, dtype=x.dtype), x[:, -1:]
        )[:, 0]

    def _step(
        self, x: Float[Tensor, "b w"], state: State, t: int
    ) -> tuple[Float[Tensor, "b w"], State]:
        (q, k, v), conv = self._qkv_step(x, state)
        new = delta_step(wide(state["S"]), unit(k), v, *self._gates(x[:, None]))
        return self._out(unit(q) @ new, x[:, None])[:, 0], self._store(S=new) | conv

    def _gates(
        self, x: Float[Tensor, "b t w"]
    ) -> tuple[Float[Tensor, "b h t 1"], Float[Tensor, "b h t 1"]]:
        """log a = 0, and b."""
        b = per_head(self.b(x)).sigmoid() * self.largest
        return torch.zeros_like(b), b
