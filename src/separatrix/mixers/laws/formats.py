"""The law on formats: what holds in float64 holds in the formats that models run in."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.mixers import Mixer
from separatrix.mixers.laws.tools import (
    LawBroken,
    asked,
    cast,
    casts,
    demand,
    gradients,
    inputs,
    keeps_past,
    largest,
    normal,
    stream,
)

TOKENS = 200
LONG = 600
SHORT = 40
"""Tokens compared in float32, outputs and gradients and outputs alone, and in half formats."""
CHANGED = (1, 63, 64, 65, 128, 199, 257, 512)
SINGLE = 1e-4
"""How far the two forms may differ in float32, of the largest output: some thousand roundings."""
QUARTER = 0.25
AMPLIFIED = 30
"""How far they may differ, in changes of the outputs when inputs change by one rounding: a mixer
that divides by a number near 0 magnifies whatever is rounded.
"""


def formats_agree(mixer: Mixer) -> None:
    """In float32 `step` equals `forward`, and both outputs and gradients what float64 gives, to
    1e-4, outputs over 600 tokens too; in bf16 and fp16 half of each channel's outputs are within a
    quarter of it. In none of them a future token moves an earlier output.
    """
    agree_in_float32(mixer, inputs(mixer, 2, TOKENS, seed=31), inputs(mixer, 1, LONG, seed=36))
    for name, half in casts(mixer):
        with torch.no_grad():
            if name != "fp32":
                _about(half, name)
            for tokens in (TOKENS, LONG):
                x, other = (inputs(mixer, 1, tokens, s).to(half._like.dtype) for s in (32, 33))
                keeps_past(half, x, other, CHANGED, lambda cut, name=name: f"{name}: ")


def agree_in_float32(mixer: Mixer, x: Tensor, *more: Tensor) -> None:
    """Raises LawBroken unless in float32 `step` equals `forward`, and both, and gradients for x,
    what float64 gives, to 1e-4.
    """
    single = cast(mixer, torch.float32)
    # the same rounded weights in float64
    double = cast(single)
    with torch.no_grad():
        for part in (x.float(), *(other.float() for other in more)):
            y, (steps, _) = single(part), stream(single, part)
            true = double(part.double())
            magnified = largest([double(_rounded(part)) - true])
            _near(steps, y, "outputs of step and forward in float32", magnified)
            _near(y, true, "outputs of forward in float32 and float64", magnified)
    x = x.float()
    found, true, moved = (
        _gradients(one, z) for one, z in ((single, x), (double, x.double()), (double, _rounded(x)))
    )
    scale = largest(true.values())
    for name, gradient in found.items():
        magnified = largest([moved[name] - true[name]])
        what = f"the gradients by {name} of forward in float32 and float64"
        _near(gradient, true[name], what, magnified, scale)


def _gradients(one: Mixer, x: Tensor) -> dict[str, Tensor]:
    x = x.detach().requires_grad_()
    return gradients(one, x, [one(x)])


def _rounded(x: Tensor) -> Tensor:
    """x, changed by about one rounding."""
    return x.double() * (1 + torch.finfo(torch.float32).eps * normal(*x.shape, seed=34))


def _near(a: Tensor, b: Tensor, what: str, magnified: float, scale: float = 0.0) -> None:
    a, b = a.double(), b.double()
    gap = largest([a - b])
    scale = max(scale, largest([a, b]))
    demand(
        gap <= max(max(SINGLE, asked().tolerance) * scale, AMPLIFIED * magnified),
        f"{what} differ by {gap:.3g}, of {scale:.3g}",
    )


def _about(half: Mixer, name: str) -> None:
    """The middle of all differences: a few outputs may be far off, where a choice tips over."""
    x = inputs(half, 2, SHORT, seed=35).to(half._like.dtype)
    true = cast(half)(x.double())
    # a channel that is small beside the others is measured at these
    middle = true.flatten(0, 1).abs().median(0).values.clamp_min(true.abs().median())
    for form, y in (("forward", half(x)), ("step", stream(half, x)[0])):
        gap = (y.double() - true).flatten(0, 1).abs().median(0).values
        # what the format cannot hold, and NaN, are for the law on finite outputs
        for channel in (gap > QUARTER * middle).nonzero()[:, 0].tolist():
            raise LawBroken(
                f"half of the outputs of {form} in {name}, channel {channel}, differ from float64"
                f" by {gap[channel]:.3g} or more, of {middle[channel]:.3g}"
            )
