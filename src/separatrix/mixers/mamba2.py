"""Mamba-2 (SSD).

    S_i = a_i S_{i-1} + D_i x_i B_i^T,   y_i = S_i C_i + E x_i,   D_i = softplus(W u_i + c),
    a_i = exp(-e^s D_i) per head

u_i is the layer's input; x_i (head_dim per head), B_i and C_i (`state` numbers per group of heads)
are maps of it, here `v`, `k` and `q`, through the short convolution where there is one; E is a
number per head. The released block's gate silu(z) and the norm after it are position-wise and left
out.
Source: Dao, Gu 2024, arXiv 2405.21060; their A = -e^s, D_i = Delta_i, E = D.
State: S^T (heads, state, head_dim). Parallel form: chunks (_decay.py).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mechanisms import Mamba2
from separatrix.mixers.base.mixer import State, wide
from separatrix.mixers.base.recurrent import RecurrentMixer, per_head
from separatrix.mixers.kernels import decayed
from separatrix.mixers.ops.gates import draw_rates, draw_steps


class Mamba2Mixer(RecurrentMixer):
    """Mamba-2."""

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

    def _forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        (q, k, v), (step, log_a) = self._qkv(x), self._gates(x)
        return self._out(
            decayed(q, k, step * v, log_a, chunk=self.chunk, dtype=x.dtype)
            + self.skip[:, None, None] * v,
            x,
        )

    def _last(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b w"]:
        (q, k, v), (step, log_a) = self._qkv_last(x), self._gates(x)
        y = decayed(q, k, step * v, log_a, chunk=self.chunk, dtype=x.dtype)
        return self._out(y + self.skip[:, None, None] * v[:, :, -1:], x[:, -1:])[:, 0]

    def _step(
        self, x: Float[Tensor, "b w"], state: State, t: int
    ) -> tuple[Float[Tensor, "b w"], State]:
        ((q, k, v), conv), (step, log_a) = self._qkv_step(x, state), self._gates(x[:, None])
        new = log_a.exp() * wide(state["S"]) + k.transpose(-1, -2) * (step * v)
        return (
            self._out(q @ new + self.skip[:, None, None] * v, x[:, None])[:, 0],
            self._store(S=new) | conv,
        )

    def _gates(
        self, x: Float[Tensor, "b t w"]
    ) -> tuple[Float[Tensor, "b h t 1"], Float[Tensor, "b h t 1"]]:
        """The step size and log a."""
        step = F.softplus(wide(self.dt(x)))
        return per_head(step), per_head(-wide(self.rate).exp() * step)
