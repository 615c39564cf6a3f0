"""HGRN-2.

    S_i = S_{i-1} diag(f_i) + v_i (1 - f_i)^T,   y_i = S_i silu(Q x_i),
    f_i = sigmoid(K x_i) per head and key dimension

f_i is the forget gate without a lower bound (that of the first layer); a short convolution, where
there is one, comes before the functions and has none of its own.
Source: Qin et al. 2024, arXiv 2404.07904.
State: S^T (heads, head_dim, value_dim). Parallel form: chunks (ops/decay.py).
"""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.recurrence import Decayed, Terms
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.stacks.mechanisms import HGRN2


class HGRN2Mixer(RecurrentMixer):
    """HGRN-2."""

    recurrence = Decayed()

    def __init__(self, mechanism: HGRN2, *, width: int) -> None:
        super().__init__(mechanism, width=width, silu=False)

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        q, f, v = qkv
        # 1 - sigmoid(f) as sigmoid(-f), which keeps its digits where it is small
        return F.silu(q), (-f).sigmoid(), v, F.logsigmoid(f)
