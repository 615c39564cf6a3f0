"""Mixers whose channels do not meet: Mamba's selective scan, RG-LRU, and a short convolution as a
layer's only mixer.

u_i = V x_i, through the short convolution where there is one; the output is O times what each
channel reads.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.mixer import Mixer, Shapes, State, fan_in_normal, linear, normed, wide
from separatrix.mixers.base.tensors import SomeTokens, Token, Tokens
from separatrix.mixers.kernels import chosen
from separatrix.mixers.ops.maps import Convolution, LowRank, before_softplus, draw_steps, uniform
from separatrix.mixers.ops.scan import scan, selective_scan
from separatrix.stacks.mechanisms import RGLRU, Mamba, ShortConvolution

Each = Float[Tensor, "*b c"]
Numbers = Float[Tensor, "*b n"]
"""Of every channel, and of its state."""
PER_RANK = 16
"""Numbers of the model width for each of the step size's rank, where no rank is given."""


class MambaMixer(Mixer):
    """Mamba (the selective scan).

        h_i = exp(D_i A) h_{i-1} + D_i u_i B_i,   y_i = <C_i, h_i> + E u_i,   A = -e^S,
        B_i = W^B u_i,   C_i = W^C u_i,   D_i = softplus(W_2 W_1 u_i + c)

    for every channel by itself, with h, A, B and C of `state` numbers and D, u and E of one; B
    and C are those of all channels, W_1 maps to `rank` numbers. The short convolution brings SiLU.
    With `norms`, as in Falcon Mamba and Jamba, B_i, C_i and W_1 u_i are divided by the root of
    their mean square + 1e-6, and C_i is scaled by learned numbers (Jamba's for B are a part of
    them, those for W_1 u_i one of W_2). The released block's gate silu(z) is left out.
    Source: Gu, Dao 2023, arXiv 2312.00752, algorithm 2; their Delta = D, D = E.
    State: h (width, state). Parallel form: ops/scan.py.
    """

    def __init__(self, mechanism: Mamba, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.channels, self.numbers = channels, state = mechanism.width, mechanism.state
        rank = -(-width // PER_RANK) if mechanism.rank is None else mechanism.rank
        self.v = linear(width, channels)
        self.o = linear(channels, width)
        self.b = linear(channels, state)
        self.c = linear(channels, state)
        self.dt = LowRank(channels, rank, channels)
        self.rate = nn.Parameter(torch.zeros(channels, state))
        self.skip = nn.Parameter(torch.ones(channels))
        self.read = nn.Parameter(torch.ones(state)) if mechanism.norms else None
        self.conv = Convolution(channels, mechanism.conv, silu=True) if mechanism.conv else None

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        fan_in_normal(self.c.weight, generator, gain=self.numbers**-0.5)
        draw_steps(self.dt.up.bias, generator)
        # the released layers' start: A = -1, -2, ... in every channel
        self.rate.copy_(torch.arange(1, self.numbers + 1).log())
        self.skip.fill_(1)
        if self.read is not None:
            self.read.fill_(self.numbers**-0.5)

    def shapes(self, t: int) -> Shapes:
        return {"h": (self.channels, self.numbers)} | self._conv_shapes(t)

    def _forward(self, x: Tokens) -> Tokens:
        u, step, b, c = self._terms(self._convolved(self.v(x)), x)
        y = selective_scan(step, self._rates(), step * u, b, c, chunk=self.chunk)
        return self._out(y, u, x)

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        u, conv = self._convolved_step(self.v(x), state)
        u, step, b, c = self._terms(u, x)
        kept = (step[..., None] * self._rates()).exp()
        h = kept * self._summed(state)["h"] + (step * u)[..., None] * b[:, None]
        return self._out((h * c[:, None]).sum(-1), u, x), self._store(h=h) | conv

    def _rates(self) -> Float[Tensor, "c n"]:
        """A."""
        return -wide(self.rate).exp()

    def _terms(self, u: Each, x: SomeTokens) -> tuple[Each, Each, Numbers, Numbers]:
        """u in float32 at least; D, B and C, which are mapped in the format of x."""
        own = u.to(x.dtype)
        b = wide(self.b(own))
        c = wide(self.c(own))
        low = self.dt.down(own)
        if self.read is not None:
            b = normed(b)
            c = normed(c) * self.read
            low = normed(wide(low)).to(x.dtype)
        step = F.softplus(wide(self.dt.up(low)))
        return wide(u), step, b, c

    def _out(self, y: Each, u: Each, x: Tensor) -> SomeTokens:
        return self.o((y + self.skip * u).to(x.dtype))


SCALE = 8.0
DECAY = (0.9, 0.999)
"""`reset` draws L so that a^2 is uniform between the squares of these where r = 1."""


class RGLRUMixer(Mixer):
    """RG-LRU, the gated diagonal recurrence of Griffin.

        h_i = a_i h_{i-1} + sqrt(1 - a_i^2) (g_i u_i),   a_i = exp(-8 softplus(L) r_i),
        r_i = sigmoid(R u_i + c_r),   g_i = sigmoid(G u_i + c_g)

    channel by channel; what is read is h_i. R and G are full matrices (block-diagonal in the
    released models, which also leave out the root at the first token). L is the released
    parameter, minus the paper's Lambda.
    Source: De et al. 2024, arXiv 2402.19427, section 2.4.
    State: h (width). Parallel form: all chunks at once token by token, then chunk by chunk.
    """

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

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        low, high = (x**2 for x in DECAY)
        squared = low + (high - low) * uniform(self.rate, generator)
        # a^2 = exp(-2 SCALE softplus(L)) where r = 1
        self.rate.copy_(before_softplus(-squared.log() / (2 * SCALE)))

    def shapes(self, t: int) -> Shapes:
        return {"h": (self.channels,)} | self._conv_shapes(t)

    def _forward(self, x: Tokens) -> Tokens:
        log_a, added = self._gates(self._convolved(self.v(x)))
        kernel = chosen("hgrn", log_a[:, None], added[:, None], x.dtype)
        h = scan(log_a, added, chunk=self.chunk) if kernel is None else kernel(log_a, added)
        return self.o(h.to(x.dtype))

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        u, conv = self._convolved_step(self.v(x), state)
        log_a, added = self._gates(u)
        h = log_a.exp() * wide(self._summed(state)["h"]) + added
        return self.o(h.to(x.dtype)), self._store(h=h) | conv

    def _gates(self, u: Each) -> tuple[Each, Each]:
        """log a, and what is added to the state."""
        log_a = -SCALE * F.softplus(wide(self.rate)) * wide(self.r(u)).sigmoid()
        # the root's slope at 0 is infinite: below the smallest normal number it is taken as flat
        root = (-torch.expm1(2 * log_a)).clamp_min(torch.finfo(log_a.dtype).tiny).sqrt()
        return log_a, root * wide(self.g(u)).sigmoid() * wide(u)


class ShortConvolutionMixer(Mixer):
    """The short convolution as a layer's only mixer, with a gate before and one after it.

        y_i = O (c_i * sum_{r<K} w_r (b_{i-r} * u_{i-r})),
        u_i = V x_i,   b_i = B x_i,   c_i = C x_i,   * channel by channel

    Source: Liquid AI 2025 (LFM2), arXiv 2511.23404; without the gates, transformers' other conv
    layers.
    State after t tokens: the last min(t, K-1) products b * u (width).
    """

    def __init__(self, mechanism: ShortConvolution, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.channels = mechanism.width
        self.v = linear(width, self.channels)
        self.b = linear(width, self.channels)
        self.c = linear(width, self.channels)
        self.o = linear(self.channels, width)
        self.conv = Convolution(self.channels, mechanism.conv, silu=False)

    def shapes(self, t: int) -> Shapes:
        return self._conv_shapes(t)

    def _forward(self, x: Tokens) -> Tokens:
        return self.o(self.c(x) * self._convolved(self.b(x) * self.v(x)))

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        y, conv = self._convolved_step(self.b(x) * self.v(x), state)
        return self.o(self.c(x) * y), conv
