"""Kimi Delta Attention: Gated DeltaNet with a decay per key dimension.

    S_i = S_{i-1} diag(a_i) (I - b_i k_i k_i^T) + b_i v_i k_i^T,   y_i = S_i q_i

with q_i and k_i scaled to unit length (0 stays 0), b_i = sigmoid(B x_i) per head, and a_i =
exp(-e^s softplus(W_2 W_1 x_i + c)) per head and key dimension, s per head, through head_dim
numbers. Released layers put SiLU on q, k and v; here it comes with the short convolution (conv=1
with weights of 1 is that SiLU).
Source: Kimi Team 2025 (Kimi Linear), arXiv 2510.26692.
State: S^T (heads, head_dim, value_dim). Parallel form: chunks (_delta.py).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mechanisms import KDA
from separatrix.mixers.base.heads import split_heads
from separatrix.mixers.base.mixer import State, linear, wide
from separatrix.mixers.base.recurrent import RecurrentMixer, per_head, unit
from separatrix.mixers.kernels import delta
from separatrix.mixers.ops.delta_rule import delta_step
from separatrix.mixers.ops.gates import LowRank, draw_rates, draw_steps, log_decay


class KDAMixer(RecurrentMixer):
    """Kimi Delta Attention."""

    def __init__(self, mechanism: KDA, *, width: int) -> None:
        super().__init__(mechanism, width=width, unit_queries=True)
        self.a = LowRank(width, self.head_dim, self.heads * self.head_dim)
        self.b = linear(width, self.heads)
        self.rate = nn.Parameter(torch.zeros(self.heads))

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        draw_steps(self.a.up.bias, generator)
        draw_rates(self.rate, generator)

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
    ) -> tuple[Float[Tensor, "b h t d"], Float[Tensor, "b h t 1"]]:
        """log a and b."""
        return (
            log_decay(self.rate[:, None, None], split_heads(self.a(x), self.heads)),
            per_head(self.b(x)).sigmoid(),
        )
