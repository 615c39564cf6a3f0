"""Step sizes of Mamba-2: a decay and a size per token and head, and a skip past the state.

    D_i = softplus(W u_i + c),   a_i = exp(-e^s D_i),   beside the state E v_i

u_i is the layer's input, s and E are numbers per head. Shapes: b batch, t tokens, w model width, h
heads, r queries, e value dimension.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from separatrix.mixers.base.heads import Projected
from separatrix.mixers.base.mixer import wide
from separatrix.mixers.base.recurrence import Terms
from separatrix.mixers.base.recurrent import RecurrentMixer, per_head
from separatrix.mixers.base.tensors import Reads, Tokens
from separatrix.mixers.ops.gates import draw_rates, draw_steps


class SteppedMixer(RecurrentMixer):
    """A recurrence with Mamba-2's step sizes, which a subclass adds after its own maps."""

    def _add_steps(self, width: int) -> None:
        self.dt = nn.Linear(width, self.heads)
        self.rate = nn.Parameter(torch.zeros(self.heads))
        self.skip = nn.Parameter(torch.ones(self.heads))

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        draw_steps(self.dt.bias, generator)
        draw_rates(self.rate, generator)
        with torch.no_grad():
            self.skip.fill_(1)

    def _terms(self, qkv: Projected, x: Tokens, start: int) -> Terms:
        q, k, v = qkv
        step = F.softplus(wide(self.dt(x)))
        return q, k, per_head(step) * v, per_head(-wide(self.rate).exp() * step)

    def _beside(self, v: Reads) -> Reads:
        return self.skip[:, None, None] * v
