"""The law on gradients: they are the derivatives of the outputs, measured by small differences.

That both forms have one gradient is not enough: they may share a backward pass that is wrong.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from separatrix.mixers import Mixer
from separatrix.mixers.laws.tools import LawBroken, demand, drawn_like, inputs, within

SIZES = ((5, 70), (2, 600), (1, 1100))
"""(batch, tokens): every parameter by itself in the first, all of them at once in the others."""
STEPS = (1e-5, 1e-6, 1e-7, 1e-8)
"""Relative sizes of the differences. A kink or a choice that lies between two points makes one of
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
    mixer = copy.deepcopy(mixer)
    for batch, tokens in SIZES:
        x = inputs(mixer, batch, tokens, seed=41)
        wanted: dict[str, Tensor] = {
            "the input": x,
            **{name: p for name, p in mixer.named_parameters() if p.requires_grad},
        }
        _check(mixer, x, wanted, f"T={tokens}, batch {batch}", apart=tokens == SIZES[0][1])


def _check(mixer: Mixer, x: Tensor, wanted: dict[str, Tensor], where: str, *, apart: bool) -> None:
    # leaves that are moved below, apart from the graph of this pass
    inner = x.detach().clone().requires_grad_()
    y = mixer(inner)
    weights = drawn_like(y, seed=42)
    if not y.requires_grad:
        raise LawBroken("the outputs of forward have no gradient, as autograd sees it")
    leaves = [inner, *(p for name, p in wanted.items() if name != "the input")]
    found = torch.autograd.grad(
        (weights * y).sum(), leaves, allow_unused=True, materialize_grads=True
    )
    directions = {
        name: drawn_like(value, seed=43 + place)
        for place, (name, value) in enumerate(wanted.items())
    }
    slopes = {
        name: (gradient * directions[name]).sum().item()
        for name, gradient in zip(wanted, found, strict=True)
    }
    size = (weights * y).detach().abs().sum().item()
    groups = [[name] for name in wanted] if apart else [list(wanted)]
    for names in groups:
        slope = sum(slopes[name] for name in names)
        gap, measured = _closest(mixer, x, wanted, directions, names, weights, slope)
        allowed = _accuracy() * max(abs(slope), abs(measured)) + _noise() * size
        what = names[0] if len(names) == 1 else "the input and all parameters"
        demand(
            gap <= allowed,
            f"{where}: the gradient by {what} says {slope:.6g} along a random direction,"
            f" differences of the outputs say {measured:.6g}",
        )


@torch.no_grad()
def _closest(
    mixer: Mixer,
    x: Tensor,
    wanted: dict[str, Tensor],
    directions: dict[str, Tensor],
    names: list[str],
    weights: Tensor,
    slope: float,
) -> tuple[float, float]:
    """(gap, difference quotient) of the step whose quotient is the closest to the gradient."""
    moved = x.clone()
    tensors = {name: moved if name == "the input" else wanted[name] for name in names}
    kept = {name: tensor.clone() for name, tensor in tensors.items()}
    best = (float("inf"), float("nan"))
    for step in _steps():
        ends = []
        for sign in (1, -1):
            for name, tensor in tensors.items():
                tensor.copy_(kept[name] + sign * step * directions[name])
            # rounded numbers are summed as differences, not each by itself
            ends.append(mixer(moved))
        measured = (weights * (ends[0] - ends[1])).sum().item() / (2 * step)
        # NaN is never the closest
        best = min(best, (abs(measured - slope), measured)) if measured == measured else best
        if best[0] <= _accuracy() * abs(slope):
            break
    for name, tensor in tensors.items():
        tensor.copy_(kept[name])
    return best


def _steps() -> tuple[float, ...]:
    """Larger for a layer that computes in float32 inside: below its rounding nothing moves."""
    return STEPS if within() <= 1e-7 else (1e-3, 3e-4, 1e-4, 3e-5, 1e-5)


def _accuracy() -> float:
    return ACCURACY if within() <= 1e-7 else max(1e-3, within())


def _noise() -> float:
    return max(NOISE, within())
