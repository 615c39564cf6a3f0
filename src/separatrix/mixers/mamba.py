"""Mamba (the selective scan).

    h_i = exp(D_i A) h_{i-1} + D_i u_i B_i,   y_i = <C_i, h_i> + E u_i,   A = -e^S,
    B_i = W^B u_i,   C_i = W^C u_i,   D_i = softplus(W_2 W_1 u_i + c)

for every channel by itself, with h, A, B and C of `state` numbers and D, u and E of one; B and C
are those of all channels. u_i = V x_i, through the short convolution (which brings SiLU) where
there is one; W_1 maps to `rank` numbers; the output is O y_i. With `norms`, as in Falcon Mamba and
Jamba, B_i, C_i and W_1 u_i are divided by the root of their mean square + 1e-6, and C_i is scaled
by learned numbers (Jamba's for B are a part of them, those for W_1 u_i one of W_2). The released
block's gate silu(z) is position-wise and left out.
Source: Gu, Dao 2023, arXiv 2312.00752, algorithm 2; their Delta = D, D = E.
State: h (width, state). Parallel form: ops/scan.py.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.mixers.base.mixer import Mixer, Shapes, State, fan_in_normal, linear, wide
from separatrix.mixers.base.tensors import SomeTokens, Token, Tokens
from separatrix.mixers.ops.convolution import Convolution
from separatrix.mixers.ops.gates import LowRank, draw_steps
from separatrix.mixers.ops.scan import final_state, selective_scan
from separatrix.stacks.mechanisms import Mamba

PER_RANK = 16
"""Numbers of the model width for each of the step size's rank, where no rank is given."""
EPSILON = 1e-6


class MambaMixer(Mixer):
    """Mamba."""

    def __init__(self, mechanism: Mamba, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        channels = mechanism.width
        state = mechanism.state
        rank = -(-width // PER_RANK) if mechanism.rank is None else mechanism.rank
        self.channels = channels
        self.numbers = state
        self.v = linear(width, channels)
        self.o = linear(channels, width)
        self.b = linear(channels, state)
        self.c = linear(channels, state)
        self.dt = LowRank(channels, rank, channels)
        self.rate = nn.Parameter(torch.zeros(channels, state))
        self.skip = nn.Parameter(torch.ones(channels))
        self.read = nn.Parameter(torch.ones(state)) if mechanism.norms else None
        self.conv = Convolution(channels, mechanism.conv, silu=True) if mechanism.conv else None

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        fan_in_normal(self.c.weight, generator, gain=self.numbers**-0.5)
        draw_steps(self.dt.up.bias, generator)
        with torch.no_grad():
            # the released layers' start: A = -1, -2, ... in every channel
            self.rate.copy_(torch.arange(1, self.numbers + 1).log())
            self.skip.fill_(1)
            if self.read is not None:
                self.read.fill_(self.numbers**-0.5)

    def shapes(self, t: int) -> Shapes:
        conv: Shapes = {} if self.conv is None else {"conv": self.conv.shape(t)}
        return {"h": (self.channels, self.numbers)} | conv

    def _forward(self, x: Tokens) -> Tokens:
        u = self.v(x) if self.conv is None else self.conv(self.v(x))
        step, b, c = self._gates(u.to(x.dtype))
        u = wide(u)
        y = selective_scan(step, self._rates(), step * u, b, c, chunk=self.chunk)
        return self._out(y, u, x)

    def _last(self, x: Tokens) -> Token:
        u = self.v(x) if self.conv is None else self.conv(self.v(x))
        step, b, c = self._gates(u.to(x.dtype))
        u = wide(u)
        h = final_state(step, self._rates(), step * u, b, chunk=self.chunk)
        return self._out((h * c[:, -1, None]).sum(-1), u[:, -1], x)

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        u = self.v(x)
        conv = {}
        if self.conv is not None:
            u, buffer = self.conv.step(u, state["conv"])
            conv = self._store(conv=buffer)
        step, b, c = self._gates(u.to(x.dtype))
        u = wide(u)
        kept = (step[..., None] * self._rates()).exp()
        h = kept * self._summed(state)["h"] + (step * u)[..., None] * b[:, None]
        return self._out((h * c[:, None]).sum(-1), u, x), self._store(h=h) | conv

    def _rates(self) -> Float[Tensor, "c n"]:
        """A."""
        return -wide(self.rate).exp()

    def _gates(
        self, u: Float[Tensor, "*b c"]
    ) -> tuple[Float[Tensor, "*b c"], Float[Tensor, "*b n"], Float[Tensor, "*b n"]]:
        """D, B and C."""
        b = wide(self.b(u))
        c = wide(self.c(u))
        low = self.dt.down(u)
        if self.read is not None:
            b = _normed(b)
            c = _normed(c) * self.read
            low = _normed(wide(low)).to(u.dtype)
        return F.softplus(wide(self.dt.up(low))), b, c

    def _out(self, y: Float[Tensor, "*b c"], u: Float[Tensor, "*b c"], x: Tensor) -> SomeTokens:
        """The output map, after the skip; in the format of x."""
        return self.o((y + self.skip * u).to(x.dtype))


def _normed(x: Float[Tensor, "*b n"]) -> Float[Tensor, "*b n"]:
    """x / rms(x)."""
    return x * (x.square().mean(-1, keepdim=True) + EPSILON).rsqrt()
