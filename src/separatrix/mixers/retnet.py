"""Retention.

    S_i = a S_{i-1} + v_i k_i^T,   y_i = S_i q_i,
    a = 1 - 2^(-5-h) in head h = 0, 1, ..., q_i and k_i rotated by their places

The rotation is that of ops/rope.py with base 10,000: only differences of places enter, as e^{i n
theta} does in the paper. head_dim is even.
Source: Sun et al. 2023, arXiv 2307.08621, section 2.
State: S^T (heads, head_dim, value_dim). Parallel form: chunks (ops/decay.py).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.recurrence import Decayed, Terms
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.ops.rope import rotate

BASE = 10_000


class RetNetMixer(RecurrentMixer):
    """Retention."""

    recurrence = Decayed()

    def _terms(self, qkv: Projected, x: Float[Tensor, "b t w"], start: int) -> Terms:
        q, k, v = qkv
        head = torch.arange(self.heads, dtype=k.dtype, device=k.device)
        # log1p keeps the digits of a decay close to 1
        log_a = torch.log1p(-torch.exp2(-5.0 - head))
        # the last of the keys stands where the last query does
        rotation = Rotation(BASE, k.shape[3])
        q = rotate(q, rotation, start=start + k.shape[2] - q.shape[2])
        k = rotate(k, rotation, start=start)
        return q, k, v, log_a[:, None, None].expand(*k.shape[:3], 1)
