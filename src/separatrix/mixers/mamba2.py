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

from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.recurrence import Decayed, Terms
from separatrix.mixers.base.stepped import SteppedMixer
from separatrix.stacks.mechanisms import Mamba2


class Mamba2Mixer(SteppedMixer):
    """Mamba-2."""

    recurrence = Decayed(scalar=True)

    def __init__(self, mechanism: Mamba2, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self._add_steps(width)

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        q, k, v = qkv
        step, log_a = self._steps(x)
        return q, k, step * v, log_a
