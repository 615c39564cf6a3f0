"""What the mixers with a matrix state share: projections, where several value heads may share one query-key head.

Shapes: b batch, t tokens, w model width, h heads, d key dimension, e value dimension.
"""

from __future__ import annotations

import torch
from einops import rearrange, repeat
from jaxtyping import Float
from torch import Tensor

from separatrix.architecture.mechanisms import GatedDeltaNet, Linear, LogLinear
from separatrix.mixers._base import Mixer, fan_in_normal, linear, no_convolution


class RecurrentMixer(Mixer):
    """Queries, keys, values and the output map."""

    def __init__(self, mechanism: Linear | GatedDeltaNet | LogLinear, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        no_convolution(mechanism)
        self.heads, self.qk, self.head_dim, self.dv = mechanism.heads, mechanism.qk, mechanism.head_dim, mechanism.dv
        self.q = linear(width, self.qk * self.head_dim)
        self.k = linear(width, self.qk * self.head_dim)
        self.v = linear(width, self.heads * self.dv)
        self.o = linear(self.heads * self.dv, width)

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        fan_in_normal(self.q.weight, generator, gain=self.head_dim**-0.5)

    def _queries(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b h t d"]:
        return self._split(self.q(x))

    def _keys_values(self, x: Float[Tensor, "b t w"]) -> tuple[Float[Tensor, "b h t d"], Float[Tensor, "b h t e"]]:
        return self._split(self.k(x)), rearrange(self.v(x), "b t (h e) -> b h t e", h=self.heads)

    def _split(self, x: Float[Tensor, "b t c"]) -> Float[Tensor, "b h t d"]:
        return repeat(x, "b t (g d) -> b (g r) t d", g=self.qk, r=self.heads // self.qk)

    def _out(self, y: Float[Tensor, "b h t e"]) -> Float[Tensor, "b t w"]:
        return self.o(rearrange(y, "b h t e -> b t (h e)"))
