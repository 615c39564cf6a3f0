"""The law on gradients: they are the derivatives of the outputs, measured by small differences.

That both forms have one gradient is not enough: they may share a backward pass that is wrong.
"""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.mixers import Mixer
from separatrix.mixers.laws.tools import asked, cast, demand, inputs, normal

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
    mixer = cast(mixer)
    for batch, tokens in SIZES:
        x = inputs(mixer, batch, tokens, seed=41).requires_grad_()
        wanted = {"the input": x, **{n: p for n, p in mixer.named_parameters() if p.requires_grad}}
        _check(mixer, wanted, f"T={tokens}, batch {batch}", apart=tokens == SIZES[0][1])


def _check(mixer: Mixer, wanted: dict[str, Tensor], where: str, *, apart: bool) -> None:
    y = mixer(wanted["the input"])
    demand(y.requires_grad, "the outputs of forward have no gradient, as autograd sees it")
    weights = normal(*y.shape, seed=42)
    found = torch.autograd.grad(
        (weights * y).sum(), list(wanted.values()), allow_unused=True, materialize_grads=True
    )
    directions = {n: normal(*v.shape, seed=43 + i) for i, (n, v) in enumerate(wanted.items())}
    slopes = {
        name: (gradient * directions[name]).sum().item()
        for name, gradient in zip(wanted, found, strict=True)
    }
    within = asked().tolerance
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
        demand(
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
