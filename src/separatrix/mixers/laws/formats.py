"""The laws on formats and on gradients: what holds in float64 holds in the formats that models run
in; and gradients are the derivatives of the outputs, measured by small differences. That both forms
have one gradient is not enough: they may share a backward pass that is wrong.
"""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.mixers import Mixer
from separatrix.mixers.laws import tools

TOKENS = 200
LONG = 600
SHORT = 40
"""Tokens compared in float32, outputs and gradients and outputs alone, and in half formats."""
SINGLE = 1e-4
"""How far the two forms may differ in float32, of the largest output: some thousand roundings."""
QUARTER = 0.25
CHOSEN = 0.9
"""The part of its tokens, those that differ least, at which a mixer that chooses is compared with
float64.
"""
AMPLIFIED = 30
"""How far they may differ, in changes of the outputs when inputs change by one rounding: a mixer
that divides by a number near 0 magnifies whatever is rounded.
"""


def formats_agree(mixer: Mixer) -> None:
    """In float32 `step` equals `forward`, and both what float64 gives over 600 tokens (nine of ten
    where the mixer chooses), to 1e-4, as gradients over 200 do; in bf16 and fp16 half of each
    channel's outputs are within a quarter of it.
    """
    agree_in_float32(mixer, tools.inputs(mixer, 2, LONG, seed=31))
    with torch.no_grad():
        for name, half in tools.casts(mixer):
            if name != "fp32":
                _about(half, name)


def agree_in_float32(mixer: Mixer, x: Tensor) -> None:
    """Raises LawBroken unless in float32 `step` equals `forward`, and both, and gradients over the
    first 200 tokens, what float64 gives, to 1e-4: of a mixer that chooses, float32 may tip the
    choice over at a tenth of the tokens, which gradients then leave out.
    """
    single = tools.cast(mixer, torch.float32)
    # the same rounded weights in float64
    double = tools.cast(single)
    x = x.float()
    with tools.asking(tolerance=max(SINGLE, tools.asked().tolerance)):
        with torch.no_grad():
            y, true = single(x), double(x.double())
            magnified = AMPLIFIED * tools.largest([double(_rounded(x)) - true])
            what = "outputs of step and forward in float32"
            tools.close(tools.stream(single, x)[0], y, what, more=magnified)
            some = _compared(y, true) if mixer.chooses else torch.ones_like(y)
            what = "outputs of forward in float32 and float64"
            tools.close(y * some, true * some, what, more=magnified)
        x, some = x[:, :TOKENS], some[:, :TOKENS]
        found, true, changed = (
            tools.run(one, z, some)[1]
            for one, z in ((single, x), (double, x.double()), (double, _rounded(x)))
        )
        scale = tools.largest(true.values())
        for name, gradient in found.items():
            magnified = AMPLIFIED * tools.largest([changed[name] - true[name]])
            what = f"the gradients by {name} of forward in float32 and float64"
            tools.close(gradient, true[name], what, scale, magnified)


def _compared(y: Tensor, true: Tensor) -> Tensor:
    """1 at so many tokens as a mixer that chooses is compared at, 0 at others."""
    gap = (y - true).abs().amax(-1, keepdim=True)
    # what is not a number stays so, times 0
    return (gap <= gap.nan_to_num(torch.inf).quantile(CHOSEN)).to(y.dtype)


def _rounded(x: Tensor) -> Tensor:
    """x, changed by about one rounding."""
    return x.double() * (1 + torch.finfo(torch.float32).eps * tools.normal(*x.shape, seed=34))


def _about(half: Mixer, name: str) -> None:
    """The middle of all differences: a few outputs may be far off, where a choice tips over."""
    x = tools.inputs(half, 2, SHORT, seed=35).to(half._like.dtype)
    true = tools.cast(half)(x.double())
    # a channel that is small beside the others is measured at these
    middle = true.flatten(0, 1).abs().median(0).values.clamp_min(true.abs().median())
    for form, y in (("forward", half(x)), ("step", tools.stream(half, x)[0])):
        gap = (y.double() - true).flatten(0, 1).abs().median(0).values
        # what the format cannot hold, and NaN, are for the law on finite outputs
        for channel in (gap > QUARTER * middle).nonzero()[:, 0].tolist():
            raise tools.LawBroken(
                f"half of the outputs of {form} in {name}, channel {channel}, differ from float64"
                f" by {gap[channel]:.3g} or more, of {middle[channel]:.3g}"
            )


SIZES = ((5, 70), (2, 600), (1, 1100))
"""(batch, tokens): every parameter by itself in the first, all of them at once in the others."""
STEPS = (1e-5, 1e-6, 1e-7, 1e-8)
COARSE = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
"""Relative sizes of the differences; the coarse ones for a layer that computes in float32 inside,
as below its rounding nothing moves. A kink or a choice that lies between two points makes one of
them wrong, a wrong gradient makes all of them wrong.
"""
ACCURACY = 1e-6
"""How close difference and gradient are, of the larger of them."""
NOISE = 1e-9
"""Of the sum of all outputs: rounding of a difference, divided by the step."""


def gradients_are_derivatives(mixer: Mixer) -> None:
    """Gradients of `forward` by the input and by each parameter equal differences of its outputs
    along random directions, to 1e-6; over 600 and 1,100 tokens all of them together.
    """
    mixer = tools.cast(mixer)
    for batch, tokens in SIZES:
        x = tools.inputs(mixer, batch, tokens, seed=41).requires_grad_()
        wanted = {"the input": x, **{n: p for n, p in mixer.named_parameters() if p.requires_grad}}
        _check(mixer, wanted, f"T={tokens}, batch {batch}", apart=tokens == SIZES[0][1])


def _check(mixer: Mixer, wanted: dict[str, Tensor], where: str, *, apart: bool) -> None:
    y = mixer(wanted["the input"])
    found = tools.gradients(mixer, wanted["the input"], [y])
    weights = tools.summed_with(y)
    directions = {n: tools.normal(*v.shape, seed=43 + i) for i, (n, v) in enumerate(wanted.items())}
    slopes = {name: (found[name] * v).sum().item() for name, v in directions.items()}
    within = tools.asked().tolerance
    coarse = within > 1e-7
    accuracy = max(1e-3, within) if coarse else ACCURACY
    rounding = max(NOISE, within) * (weights * y).detach().abs().sum().item()
    for names in [[name] for name in wanted] if apart else [list(wanted)]:
        slope = sum(slopes[name] for name in names)
        gap, measured = float("inf"), float("nan")
        for step in COARSE if coarse else STEPS:
            quotient = _quotient(mixer, wanted, {n: directions[n] for n in names}, weights, step)
            # NaN is never the closest
            if abs(quotient - slope) < gap:
                gap, measured = abs(quotient - slope), quotient
            if gap <= accuracy * abs(slope):
                break
        what = names[0] if len(names) == 1 else "the input and all parameters"
        tools.demand(
            gap <= accuracy * max(abs(slope), abs(measured)) + rounding,
            f"{where}: the gradient by {what} says {slope:.6g} along a random direction,"
            f" differences of the outputs say {measured:.6g}",
        )


@torch.no_grad()
def _quotient(
    mixer: Mixer,
    wanted: dict[str, Tensor],
    directions: dict[str, Tensor],
    weights: Tensor,
    step: float,
) -> float:
    """By how much outputs change along directions, over the step."""
    kept = {name: wanted[name].clone() for name in directions}
    ends = []
    for sign in (1, -1):
        for name, direction in directions.items():
            wanted[name].copy_(kept[name] + sign * step * direction)
        # rounded numbers are summed as differences, not each by itself
        ends.append(mixer(wanted["the input"]))
    for name, value in kept.items():
        wanted[name].copy_(value)
    return (weights * (ends[0] - ends[1])).sum().item() / (2 * step)
