"""The laws on formats and on gradients: what holds in float64 holds in the formats that models run
in; and gradients are the derivatives of the outputs, measured by small differences. That both forms
have one gradient is not enough: they may share a backward pass that is wrong.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.func import functional_call

from separatrix.mixers import Mixer
from separatrix.mixers.laws import tools
from separatrix.mixers.plugins.probe import apart

TOKENS = 200
LONG = 600
SHORT = 40
"""Tokens compared in float32, outputs and gradients and outputs alone, and in half formats."""
SINGLE = 1e-4
"""How far the two forms may differ in float32, of the largest output: some thousand roundings."""
QUARTER = 0.25
JITTER = 16 * torch.finfo(torch.float32).eps
AMPLIFIED = 2.0
"""As of `Near`, of inputs in float32."""
ROUNDINGS = 30
"""Changes of the inputs by one rounding that gradients may be off by."""
FLAT = 1e-2
"""Gradients that are smaller than this part of the largest are measured at it."""


def formats_agree(mixer: Mixer) -> None:
    """In float32 `step` and `forward` are what float64 gives over 600 tokens, to 1e-4, as gradients
    over 200 are; in bf16 and fp16 half of each channel's outputs are within a quarter of it, and
    every gradient is as a whole.
    """
    agree_in_float32(mixer, tools.inputs(mixer, 2, LONG, seed=31))
    for name, half in tools.casts(mixer):
        if name != "fp32":
            _about(half, name)


def agree_in_float32(mixer: Mixer, x: Tensor) -> None:
    """Raises LawBroken unless in float32 `step` and `forward`, and gradients over the first 200
    tokens, are what float64 gives, to 1e-4; of a token whose outputs a rounding of the inputs moves
    further, as where it chooses between equal scores, gradients are left out.
    """
    single = tools.cast(mixer, torch.float32)
    # the same rounded weights in float64
    double = tools.cast(single)
    x = x.float()
    within = max(SINGLE, tools.asked().tolerance)
    with torch.no_grad():
        near = tools.Near(
            run=double,
            x=x.double(),
            y=double(x.double()),
            tolerance=within,
            jitter=JITTER,
            amplified=AMPLIFIED,
        )
        for form, y in (("forward", single(x)), ("step", tools.stream(single, x)[0])):
            what = f"outputs of {form} in float32 and of forward in float64 differ"
            gap = near.excess(y)
            tools.demand(gap == 0, f"{what} by {gap:.3g} more than rounding")
        some = near.steady()[:, :TOKENS]
    _slopes(single, double, x[:, :TOKENS], "float32", within, some)


def _rounded(x: Tensor) -> Tensor:
    return x.double() * (1 + torch.finfo(x.dtype).eps * tools.normal(*x.shape, seed=34))


def _slopes(mixer: Mixer, exact: Mixer, x: Tensor, name: str, within: float, some: Tensor) -> None:
    """Raises LawBroken unless gradients in a format, of outputs at some tokens, are what float64
    gives, each as a whole.
    """
    weights = some.to(x.dtype)
    _, found = tools.run(mixer, x, weights)
    _, slopes = tools.run(exact, x.double(), weights.double())
    _, changed = tools.run(exact, _rounded(x), weights.double())
    least = FLAT * max(slope.norm() for slope in slopes.values())
    for what, slope in slopes.items():
        gap, moved = ((one[what].double() - slope).norm() for one in (found, changed))
        # what is not finite is for the law on that
        tools.demand(
            not gap.isfinite() or gap <= within * slope.norm().clamp(min=least) + ROUNDINGS * moved,
            f"the gradients by {what} of forward in {name} and float64 differ by {gap:.3g}, of"
            f" {slope.norm():.3g}",
        )


def _about(half: Mixer, name: str) -> None:
    """The middle of all differences: a few outputs may be far off, where a choice tips over."""
    x = tools.inputs(half, 2, SHORT, seed=35).to(half._like.dtype)
    exact = tools.cast(half)
    with torch.no_grad():
        true = exact(x.double())
        forms = {"forward": half(x), "step": tools.stream(half, x)[0]}
    # gradients where nothing tips over
    near = (forms["forward"].double() - true).norm(dim=-1) <= QUARTER * true.norm(dim=-1)
    _slopes(half, exact, x, name, QUARTER, near[..., None])
    # a channel that is small beside the others is measured at these
    middle = true.flatten(0, 1).abs().median(0).values.clamp_min(true.abs().median())
    for form, y in forms.items():
        gap = (y.double() - true).flatten(0, 1).abs().median(0).values
        # what the format cannot hold, and NaN, are for the law on finite outputs
        for channel in (gap > QUARTER * middle).nonzero()[:, 0].tolist():
            raise tools.LawBroken(
                f"half of the outputs of {form} in {name}, channel {channel}, differ from float64"
                f" by {gap[channel]:.3g} or more, of {middle[channel]:.3g}"
            )


SIZES = ((5, 70), (2, 600), (1, 1100))
"""(batch, tokens): every parameter by itself in the first, all of them at once in the others."""
ROWS = (6, 200)
FEW = 12
"""A larger batch is drawn from and to so many rows, of so few tokens."""
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
    along random directions, to 1e-6; over 600 and 1,100 tokens and in a larger batch all of them
    together; and where train mode gives the same outputs, it gives these gradients.
    """
    mixer = tools.cast(mixer)
    x = tools.inputs(mixer, *SIZES[0], seed=42)
    found = []
    for one in (mixer, copy.deepcopy(mixer).train()):
        with apart(0):
            found.append(tools.run(one, x))
    (y, slopes), (z, training) = found
    if torch.equal(y, z):
        tools.all_close(slopes, training, "in eval mode and in train mode")
    for batch, tokens in (*SIZES, (tools.draws("derivatives").randint(*ROWS), FEW)):
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

        def quotient(step: float, names: list[str] = names) -> float:
            ends = []
            for size in (step, -step):
                at = {n: wanted[n].detach() + size * directions[n] for n in names}
                x = at.pop("the input", wanted["the input"].detach())
                ends.append(functional_call(mixer, at, (x,)))
            # rounded numbers are summed as differences, not each by itself
            return (weights * (ends[0] - ends[1])).sum().item() / (2 * step)

        gap, measured = float("inf"), float("nan")
        for step in COARSE if coarse else STEPS:
            with torch.no_grad():
                found_ = quotient(step)
            # NaN is never the closest
            if abs(found_ - slope) < gap:
                gap, measured = abs(found_ - slope), found_
            if gap <= accuracy * abs(slope):
                break
        what = names[0] if len(names) == 1 else "the input and all parameters"
        tools.demand(
            gap <= accuracy * max(abs(slope), abs(measured)) + rounding,
            f"{where}: the gradient by {what} says {slope:.6g} along a random direction,"
            f" differences of the outputs say {measured:.6g}",
        )
