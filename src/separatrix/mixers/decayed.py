"""Matrix states that decay: gated linear attention, HGRN-2, lightning attention, retention and
Mamba-2.

    S_i = S_{i-1} diag(a_i) + v_i k_i^T,   y_i = S_i q_i

State: S^T (heads, head_dim, value_dim), of Mamba-2 (heads, state, head_dim). Parallel form: chunks
(ops/decay.py). A short convolution comes before the functions that are named here.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers.base.heads import Projected, split_heads
from separatrix.mixers.base.mixer import unbuilt, wide
from separatrix.mixers.base.recurrent import Decayed, RecurrentMixer, Terms, per_head
from separatrix.mixers.base.tensors import Places, Reads, Tokens
from separatrix.mixers.ops.maps import LowRank, draw_rates, draw_steps, rotate
from separatrix.stacks.mechanisms import GLA, HGRN2, Lightning, Mamba2


class SteppedMixer(RecurrentMixer):
    """A recurrence with Mamba-2's step sizes, which a subclass adds after its own maps."""

    def _add_steps(self, width: int) -> None:
        self.dt = nn.Linear(width, self.heads)
        self.rate = nn.Parameter(torch.zeros(self.heads))
        self.skip = nn.Parameter(torch.ones(self.heads))

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        draw_steps(self.dt.bias, generator)
        draw_rates(self.rate, generator)
        self.skip.fill_(1)

    def _terms(self, qkv: Projected, x: Tokens, start: int) -> Terms:
        q, k, v = qkv
        step = F.softplus(wide(self.dt(x)))
        return q, k, per_head(step) * v, per_head(-wide(self.rate).exp() * step)

    def _beside(self, v: Reads) -> Reads:
        return self.skip[:, None, None] * v


RANK = 16
"""Numbers that the gates of gated linear attention come through."""
TEMPERATURE = 16
"""tau of its paper: gates are raised to 1/tau."""
BASE = 10_000
"""Of the rotation in retention."""


class GLAMixer(RecurrentMixer):
    """Gated linear attention: a_i = sigmoid(W_2 W_1 x_i + c)^(1/16) per head and key dimension.
    `reset` starts c at 0, where a_i = 2^(-1/16) = 0.96.

    Source: Yang et al. 2023, arXiv 2312.06635, section 4.
    """

    recurrence = Decayed()

    def __init__(self, mechanism: GLA, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.a = LowRank(width, RANK, self.heads * self.head_dim)

    def _terms(self, qkv: Projected, x: Tokens, start: int) -> Terms:
        log_a = F.logsigmoid(wide(split_heads(self.a(x), self.heads))) / TEMPERATURE
        return *qkv, log_a


class HGRN2Mixer(RecurrentMixer):
    """HGRN-2: a_i = f_i = sigmoid(K x_i) per head and key dimension, keys 1 - f_i, queries
    silu(Q x_i).

    f_i is the forget gate without a lower bound (that of the first layer); a short convolution has
    no function of its own.
    Source: Qin et al. 2024, arXiv 2404.07904.
    """

    recurrence = Decayed()

    def __init__(self, mechanism: HGRN2, *, width: int) -> None:
        super().__init__(mechanism, width=width, silu=False)

    def _terms(self, qkv: Projected, x: Tokens, start: int) -> Terms:
        q, f, v = qkv
        # 1 - sigmoid(f) as sigmoid(-f), which keeps its digits where it is small
        return F.silu(q), (-f).sigmoid(), v, F.logsigmoid(f)


class LightningMixer(RecurrentMixer):
    """Lightning attention: a = exp(-2^(-8 (h+1) / H)) in head h = 0, ..., H-1.

    The released models weaken the decay layer by layer and put SiLU on q, k and v; here every layer
    decays as their first one does, and a short convolution of conv=1 with weights of 1 is that
    SiLU. Ring-linear's also rotate queries and keys (`rotated`), which is not built.
    Source: Qin et al. 2024, arXiv 2401.04658; MiniMax 2025 (MiniMax-01), arXiv 2501.08313.
    """

    recurrence = Decayed(scalar=True)

    def __init__(self, mechanism: Lightning, *, width: int) -> None:
        unbuilt(mechanism, rotated=mechanism.rotated)
        super().__init__(mechanism, width=width)

    def _terms(self, qkv: Projected, x: Tokens, start: int) -> Terms:
        k = qkv[1]
        head = torch.arange(1, self.heads + 1, dtype=k.dtype, device=k.device)
        log_a = -torch.exp2(-8.0 * head / self.heads)
        return *qkv, log_a[:, None, None].expand(*k.shape[:3], 1)


class RetNetMixer(RecurrentMixer):
    """Retention: a = 1 - 2^(-5-h) in head h = 0, 1, ..., q_i and k_i rotated by their places, as in
    ops/maps.py: only differences of places enter, as e^{i n theta} does in the paper.

    Source: Sun et al. 2023, arXiv 2307.08621, section 2.
    """

    recurrence = Decayed(scalar=True)

    def _heads_of(
        self, projected: Projected, start: int = 0, places: Places | None = None
    ) -> Projected:
        q, k, v = super()._heads_of(projected)
        rotation = Rotation(BASE, k.shape[3])
        q = rotate(q, rotation, start=start, places=places)
        return q, rotate(k, rotation, start=start), v

    def _terms(self, qkv: Projected, x: Tokens, start: int) -> Terms:
        k = qkv[1]
        head = torch.arange(self.heads, dtype=k.dtype, device=k.device)
        # log1p keeps the digits of a decay close to 1
        log_a = torch.log1p(-torch.exp2(-5.0 - head))
        return *qkv, log_a[:, None, None].expand(*k.shape[:3], 1)


class Mamba2Mixer(SteppedMixer):
    """Mamba-2 (SSD): S_i = a_i S_{i-1} + D_i x_i B_i^T, y_i = S_i C_i + E x_i, steps D_i and a_i as
    in `SteppedMixer`.

    x_i (head_dim per head), B_i and C_i (`state` numbers per group of heads) are maps of the
    layer's input, here `v`, `k` and `q`; E is a number per head. The released block's gate silu(z)
    and the norm after it are position-wise and left out.
    Source: Dao, Gu 2024, arXiv 2405.21060; their A = -e^s, D_i = Delta_i, E = D.
    """

    recurrence = Decayed(scalar=True)

    def __init__(self, mechanism: Mamba2, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self._add_steps(width)
