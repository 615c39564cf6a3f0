"""The law on formats: what holds in float64 holds in the formats that models run in."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from separatrix.mixers import Mixer
from separatrix.mixers.laws.tools import (
    LawBroken,
    demand,
    drawn_like,
    formats_asked,
    gradients,
    inputs,
    keeps_past,
    largest,
    stream,
    within,
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
ULPS = 16
"""Roundings of the format by which a change of the future may move earlier outputs."""


def formats_agree(mixer: Mixer) -> None:
    """In float32 `step` equals `forward`, and both outputs and gradients what float64 gives, to
    1e-4, outputs over 600 tokens too; in bf16 and fp16 half of each channel's outputs are within a
    quarter of it. In none of them a future token moves an earlier output.
    """
    agree_in_float32(mixer, inputs(mixer, 2, TOKENS, seed=31), inputs(mixer, 1, LONG, seed=36))
    for dtype in formats_asked().values():
        if dtype != torch.float32:
            _about(copy.deepcopy(mixer).to(dtype))
        half = copy.deepcopy(mixer).to(dtype)
        for tokens in (TOKENS, LONG):
            x, other = (inputs(mixer, 1, tokens, seed).to(dtype) for seed in (32, 33))
            with torch.no_grad():
                rounding = ULPS * torch.finfo(dtype).eps
                keeps_past(half, x, other, CHANGED, f"{_name(dtype)}: ", rounding=rounding)


def agree_in_float32(mixer: Mixer, x: Tensor, *more: Tensor) -> None:
    """Raises LawBroken unless in float32 `step` equals `forward`, and both, and gradients for x,
    what float64 gives, to 1e-4.
    """
    single = copy.deepcopy(mixer).float()
    # the same rounded weights in float64
    double = copy.deepcopy(single).double()
    for part in (x, *more):
        _values(single, double, part.float())
    _gradients(single, double, x.float())


@torch.no_grad()
def _values(single: Mixer, double: Mixer, x: Tensor) -> None:
    y = single(x)
    steps, _ = stream(single, x)
    true = double(x.double())
    magnified = largest([double(_rounded(x)) - true])
    for a, b, what in (
        (steps, y, "outputs of step and forward in float32"),
        (y, true, "outputs of forward in float32 and float64"),
    ):
        _near(a, b, what, magnified)


def _gradients(single: Mixer, double: Mixer, x: Tensor) -> None:
    def of(one: Mixer, x: Tensor) -> dict[str, Tensor]:
        x = x.detach().requires_grad_()
        return {name: grad.double() for name, grad in gradients(one, x, [one(x)]).items()}

    true = of(double, x.double())
    moved = of(double, _rounded(x))
    scale = largest(true.values())
    for name, gradient in of(single, x).items():
        magnified = largest([moved[name] - true[name]])
        what = f"the gradients by {name} of forward in float32 and float64"
        _near(gradient, true[name], what, magnified, scale)


def _rounded(x: Tensor) -> Tensor:
    """x, changed by about one rounding."""
    return x.double() * (1 + torch.finfo(torch.float32).eps * drawn_like(x.double(), seed=34))


def _near(a: Tensor, b: Tensor, what: str, magnified: float, scale: float = 0.0) -> None:
    gap = largest([a.double() - b.double()])
    scale = max(scale, largest([a.double(), b.double()]))
    demand(
        gap <= max(max(SINGLE, within()) * scale, AMPLIFIED * magnified),
        f"{what} differ by {gap:.3g}, of {scale:.3g}",
    )


@torch.no_grad()
def _about(half: Mixer) -> None:
    """The middle of all differences: a few outputs may be far off, where a choice tips over."""
    x = inputs(half, 2, SHORT, seed=35).to(half._like.dtype)
    true = copy.deepcopy(half).double()(x.double())
    # a channel that is small beside the others is measured at these
    middle = true.flatten(0, 1).abs().median(0).values.clamp_min(true.abs().median())
    name = _name(x.dtype)
    for form, y in (("forward", half(x)), ("step", stream(half, x)[0])):
        gap = (y.double() - true).flatten(0, 1).abs().median(0).values
        # what the format cannot hold, and NaN, are for the law on finite outputs
        for channel in (gap > QUARTER * middle).nonzero()[:, 0].tolist():
            raise LawBroken(
                f"half of the outputs of {form} in {name}, channel {channel}, differ from float64"
                f" by {gap[channel]:.3g} or more, of {middle[channel]:.3g}"
            )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
