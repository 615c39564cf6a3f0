"""Maps of heads: queries, keys, values with an optional short convolution, and the output map."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.mixers.base.mixer import Mixer, State, fan_in_normal, linear, taken
from separatrix.mixers.base.tensors import Channels, Keys, Places, Tokens, Values
from separatrix.mixers.ops.maps import Convolution

Projected = tuple[Tensor, Tensor, Tensor]
"""Queries, keys and values (b, t, channels), heads side by side."""


class Projections(Mixer):
    """Maps q, k, v, o, and the convolution `conv` on q, k, v in this order.

    Subclasses call `_add_maps` when they are made, or add them themselves.
    """

    scale: float
    heads: int
    head_dim: int
    dv: int

    def _add_maps(self, queries: int, keys: int, values: int, *, kernel: int, silu: bool) -> None:
        """For so many heads of each, and a convolution of that kernel (0: none)."""
        self.scale = self.head_dim**-0.5
        self.channels = [queries * self.head_dim, keys * self.head_dim, values * self.dv]
        self.q, self.k, self.v = (linear(self.width, channels) for channels in self.channels)
        self.o = linear(self.heads * self.dv, self.width)
        self.conv = Convolution(sum(self.channels), kernel, silu=silu) if kernel else None

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        # there is no 1/sqrt(d) in the scores of [Ye26]: Q is drawn smaller by that factor
        fan_in_normal(self.q.weight, generator, gain=self.scale)

    def _maps(self, asking: Tensor, x: Tensor) -> Projected:
        """Queries of some tokens, keys and values of others."""
        return self.q(asking), self.k(x), self.v(x)

    def _project(self, x: Tokens, places: Places | None = None) -> Projected:
        if self.conv is None:
            return self._maps(x if places is None else taken(x, places), x)
        # convolved queries read the tokens before them
        q, k, v = self._convolve(*self._maps(x, x))
        return q if places is None else taken(q, places), k, v

    def _convolve(self, q: Tensor, k: Tensor, v: Tensor) -> Projected:
        if self.conv is not None:
            q, k, v = self.conv(torch.cat([q, k, v], -1)).split(self.channels, -1)
        return q, k, v

    def _convolve_step(self, projected: Projected, state: State) -> tuple[Projected, State]:
        """Queries, keys and values of one token (b, 1, channels), and the convolution's part of
        the new state.
        """
        q, k, v = projected
        if self.conv is None:
            return (q[:, None], k[:, None], v[:, None]), {}
        y, conv = self._convolved_step(torch.cat([q, k, v], -1), state)
        q, k, v = y[:, None].split(self.channels, -1)
        return (q, k, v), conv


def split_heads(x: Channels, heads: int, copies: int = 1) -> Keys:
    """Heads side by side -> heads apart, each of them `copies` times."""
    apart = x.unflatten(-1, (heads, -1)).transpose(1, 2)
    return apart if copies == 1 else apart.repeat_interleave(copies, 1)


def merge_heads(y: Values) -> Channels:
    """Heads apart -> side by side."""
    return y.transpose(1, 2).flatten(2)
