"""Lightning attention.

    S_i = a S_{i-1} + v_i k_i^T,   y_i = S_i q_i,
    a = exp(-2^(-8 (h+1) / H)) in head h = 0, ..., H-1

The released models weaken the decay layer by layer and put SiLU on q, k and v; here every layer
decays as their first one does, and a short convolution of conv=1 with weights of 1 is that SiLU.
Ring-linear's also rotate queries and keys (`rotated`), which is not built.
Source: Qin et al. 2024, arXiv 2401.04658; MiniMax 2025 (MiniMax-01), arXiv 2501.08313.
State: S^T (heads, head_dim, value_dim). Parallel form: chunks (ops/decay.py).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.errors import SizeError
from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.recurrence import Decayed, Terms
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.stacks.mechanisms import Lightning


class LightningMixer(RecurrentMixer):
    """Lightning attention."""

    recurrence = Decayed(scalar=True)

    def __init__(self, mechanism: Lightning, *, width: int) -> None:
        if mechanism.rotated:
            raise SizeError(
                "lightning: rotated=true: no mixer here rotates its keys; such layers can be"
                " judged, but not built"
            )
        super().__init__(mechanism, width=width)

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        k = qkv[1]
        head = torch.arange(1, self.heads + 1, dtype=k.dtype, device=k.device)
        log_a = -torch.exp2(-8.0 * head / self.heads)
        return *qkv, log_a[:, None, None].expand(*k.shape[:3], 1)
