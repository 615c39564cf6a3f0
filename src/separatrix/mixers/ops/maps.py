"""Small parts that several mixers share: the short convolution, rotation by place, low-rank maps
and gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers.base.mixer import linear, wide
from separatrix.mixers.base.tensors import Channels, Keys, SomeTokens


class Convolution(nn.Module):
    """The short causal convolution, channel by channel: y_i = sum_{r<K} c_r x_{i-r}, tokens before
    the first taken as 0. Kernels (c, K), the newest token's weight last; SiLU after them if `silu`,
    and then outputs in float32 at least. State after t tokens: the last min(t, K-1) inputs.
    """

    def __init__(self, channels: int, kernel: int, *, silu: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, kernel))
        self.silu = silu

    def shape(self, t: int) -> tuple[int, int]:
        """Of the state after t tokens: the last inputs that later tokens still see."""
        channels, kernel = self.weight.shape
        return min(t, kernel - 1), channels

    def forward(self, x: Channels) -> Channels:
        y: Tensor = _Convolved.apply(wide(x), wide(self.weight))
        return F.silu(y) if self.silu else y.to(x.dtype)

    def step(
        self, x: Float[Tensor, "b c"], before: Float[Tensor, "b s c"]
    ) -> tuple[Float[Tensor, "b c"], Float[Tensor, "b r c"]]:
        """One token; `before` and the second result are the state."""
        seen = torch.cat([before, x[:, None]], 1)
        # fewer inputs than weights at the start: those before the first token are 0
        y = (wide(seen) * wide(self.weight).T[-seen.shape[1] :]).sum(1)
        forgotten = max(0, seen.shape[1] - self.weight.shape[1] + 1)
        # a view would keep the forgotten input in memory
        return F.silu(y) if self.silu else y.to(x.dtype), seen[:, forgotten:].clone()


class _Convolved(torch.autograd.Function):
    """Of x (b, t, c) and kernels (c, K), with tokens and channels as one axis: forward and backward
    take 0.6 of the time that slices of tokens take.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        return _summed(x, weight.unbind(1), 0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        tokens, channels = x.shape[1:]
        by_x = _summed(grads[0], weight.flip(1).unbind(1), weight.shape[1] - 1)
        seen = F.pad(x, (0, 0, weight.shape[1] - 1, 0)).flatten(1)
        own = grads[0].flatten(1)
        by_weight = [
            (seen[:, first * channels :][:, : own.shape[1]] * own).sum(0).view(tokens, -1).sum(0)
            for first in range(weight.shape[1])
        ]
        return by_x, torch.stack(by_weight, 1)


def _summed(x: Tensor, weights: Sequence[Tensor], after: int) -> Tensor:
    """sum_r c_r x_{i-K+1+r+after} for every token i, of x (b, t, c) and K weights (c,)."""
    tokens, channels = x.shape[1:]
    padded = F.pad(x, (0, 0, len(weights) - 1 - after, after)).flatten(1)
    numbers = tokens * channels
    tiled = [weight.expand(tokens, channels).reshape(-1) for weight in weights]
    y = padded[:, :numbers] * tiled[0]
    for r in range(1, len(weights)):
        y = torch.addcmul(y, padded[:, r * channels :][:, :numbers], tiled[r])
    return y.unflatten(1, (tokens, channels))


def rotate(
    x: Keys, rotation: Rotation, *, start: int = 0, places: Int[Tensor, "b t"] | None = None
) -> Keys:
    """Rotary position embedding of tokens that stand at `places` or else at `start`, `start` + 1,
    ...: the pair (r, r + d/2) of the first d dimensions turns by the place times the angle of pair
    r (numbers/rotary.py); other dimensions stay. Halves instead of neighbours form the pairs, as in
    Llama and transformers. Angles in float32 at least. Source: Su et al. 2021, arXiv 2104.09864.
    """
    half = rotation.dims // 2
    # half formats hold every place only up to 2,048 (fp16) or 256 (bf16)
    dtype = torch.promote_types(x.dtype, torch.float32)
    if places is None:
        place = torch.arange(start, start + x.shape[2], dtype=dtype, device=x.device)
    else:
        place = places.to(dtype)[:, None]  # b 1 t
    angle = place[..., None] * torch.tensor(rotation.frequencies, dtype=dtype, device=x.device)
    cos = angle.cos()
    sin = angle.sin()
    one = x[..., :half]
    other = x[..., half : rotation.dims]
    turned = torch.cat([one * cos - other * sin, other * cos + one * sin], -1).to(x.dtype)
    return torch.cat([turned, x[..., rotation.dims :]], -1)


STEPS = (1e-3, 1e-1)
"""`draw_steps` draws softplus(c) log-uniformly between these, as the reference implementations
draw their step sizes.
"""
RATES = (1.0, 16.0)
"""`draw_rates` draws e^s uniformly between these."""


class LowRank(nn.Module):
    """x -> W_2 f(W_1 x) + c through `rank` numbers."""

    def __init__(self, width: int, rank: int, outputs: int, *, tanh: bool = False) -> None:
        super().__init__()
        self.down = linear(width, rank)
        self.up = nn.Linear(rank, outputs)
        self.tanh = tanh

    def forward(self, x: SomeTokens) -> Float[Tensor, "*b o"]:
        y = self.down(x)
        return self.up(y.tanh() if self.tanh else y)


def log_decay(rate: Float[Tensor, "*#b"], z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """log a = -e^rate softplus(z), in float32 at least."""
    return -wide(rate).exp() * F.softplus(wide(z))


@torch.no_grad()
def draw_steps(bias: Tensor, generator: torch.Generator) -> None:
    """Fills c so that softplus(c) is log-uniform between STEPS."""
    low, high = (torch.tensor(x, dtype=torch.float32).log() for x in STEPS)
    bias.copy_(before_softplus((low + (high - low) * uniform(bias, generator)).exp()))


@torch.no_grad()
def draw_rates(rate: Tensor, generator: torch.Generator) -> None:
    """Fills s so that e^s is uniform between RATES."""
    rate.copy_((RATES[0] + (RATES[1] - RATES[0]) * uniform(rate, generator)).log())


def before_softplus(x: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Its inverse, log(e^x - 1) = x + log(1 - e^-x), without e^x."""
    return x + torch.log(-torch.expm1(-x))


def uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    """In float32 whatever the default format is, so that a seed draws the same weights."""
    return torch.rand(like.shape, generator=generator, dtype=torch.float32)
