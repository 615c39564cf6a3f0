"""The short convolution as a layer's only mixer, with a gate before and one after it.

    y_i = O (c_i * sum_{r<K} w_r (b_{i-r} * u_{i-r})),   u_i = V x_i,   b_i = B x_i,   c_i = C x_i,
    * channel by channel

Source: Liquid AI 2025 (LFM2), arXiv 2511.23404; without the gates, transformers' other conv layers.
State after t tokens: the last min(t, K-1) products b * u (width).
"""

from __future__ import annotations

from separatrix.mixers.base.mixer import Mixer, Shapes, State, linear
from separatrix.mixers.base.tensors import Token, Tokens
from separatrix.mixers.ops.convolution import Convolution
from separatrix.stacks.mechanisms import ShortConvolution


class ShortConvolutionMixer(Mixer):
    """A gated short convolution."""

    def __init__(self, mechanism: ShortConvolution, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.channels = mechanism.width
        self.v = linear(width, self.channels)
        self.b = linear(width, self.channels)
        self.c = linear(width, self.channels)
        self.o = linear(self.channels, width)
        self.conv = Convolution(self.channels, mechanism.conv, silu=False)

    def shapes(self, t: int) -> Shapes:
        return {"conv": self.conv.shape(t)}

    def _forward(self, x: Tokens) -> Tokens:
        return self.o(self.c(x) * self.conv(self.b(x) * self.v(x)))

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        y, buffer = self.conv.step(self.b(x) * self.v(x), state["conv"])
        return self.o(self.c(x) * y), self._store(conv=buffer)
