"""RG-LRU, the gated diagonal recurrence of Griffin.

    h_i = a_i h_{i-1} + sqrt(1 - a_i^2) (g_i u_i),   a_i = exp(-8 softplus(L) r_i),
    r_i = sigmoid(R u_i + c_r),   g_i = sigmoid(G u_i + c_g)

channel by channel; u_i = V x_i, through the short convolution where there is one, and the output is
O h_i. R and G are full matrices (block-diagonal in the released models). The released models also
leave out the root at the first token. L is the released parameter, minus the paper's Lambda.
Source: De et al. 2024, arXiv 2402.19427, section 2.4.
State: h (width). Parallel form: all chunks at once token by token, then chunk by chunk.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.mixer import Mixer, Shapes, State, linear, wide
from separatrix.mixers.base.tensors import Token, Tokens
from separatrix.mixers.kernels import chosen
from separatrix.mixers.ops.convolution import Convolution
from separatrix.mixers.ops.scan import scan
from separatrix.stacks.mechanisms import RGLRU

SCALE = 8.0
DECAY = (0.9, 0.999)
"""`reset` draws L so that a^2 is uniform between the squares of these where r = 1."""


class RGLRUMixer(Mixer):
    """RG-LRU."""

    def __init__(self, mechanism: RGLRU, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.channels = mechanism.width
        self.v = linear(width, self.channels)
        self.o = linear(self.channels, width)
        self.r = nn.Linear(self.channels, self.channels)
        self.g = nn.Linear(self.channels, self.channels)
        self.rate = nn.Parameter(torch.empty(self.channels))
        self.conv = (
            Convolution(self.channels, mechanism.conv, silu=False) if mechanism.conv else None
        )

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        with torch.no_grad():
            self.r.bias.zero_()
            self.g.bias.zero_()
            low, high = (x**2 for x in DECAY)
            squared = low + (high - low) * torch.rand(
                self.rate.shape, generator=generator, dtype=torch.float32
            )
            # a^2 = exp(-2 SCALE softplus(L)) where r = 1
            step = -squared.log() / (2 * SCALE)
            # the inverse of softplus
            self.rate.copy_(step + torch.log(-torch.expm1(-step)))

    def shapes(self, t: int) -> Shapes:
        conv: Shapes = {} if self.conv is None else {"conv": self.conv.shape(t)}
        return {"h": (self.channels,)} | conv

    def _forward(self, x: Tokens) -> Tokens:
        u = self.v(x)
        log_a, added = self._gates(u if self.conv is None else self.conv(u))
        kernel = chosen("hgrn", log_a[:, None], added[:, None], x.dtype)
        h = scan(log_a, added, chunk=self.chunk) if kernel is None else kernel(log_a, added)
        return self.o(h.to(x.dtype))

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        u = self.v(x)
        conv = {}
        if self.conv is not None:
            u, buffer = self.conv.step(u, state["conv"])
            conv = self._store(conv=buffer)
        log_a, added = self._gates(u)
        h = log_a.exp() * wide(self._summed(state)["h"]) + added
        return self.o(h.to(x.dtype)), self._store(h=h) | conv

    def _gates(
        self, u: Float[Tensor, "*b c"]
    ) -> tuple[Float[Tensor, "*b c"], Float[Tensor, "*b c"]]:
        """log a, and what is added to the state."""
        log_a = -SCALE * F.softplus(wide(self.rate)) * wide(self.r(u)).sigmoid()
        # the root's slope at 0 is infinite: below the smallest normal number it is taken as flat
        root = (-torch.expm1(2 * log_a)).clamp_min(torch.finfo(log_a.dtype).tiny).sqrt()
        return log_a, root * wide(self.g(u)).sigmoid() * wide(u)
