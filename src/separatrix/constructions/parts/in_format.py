"""Constructions in stacks that declare another number format than float32.

A builder is told the arithmetic, which matters to weights; what format a layer declares matters to
none of them. So weights are placed in the same stack of float32, and then put into the stack that
declares the format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from separatrix.constructions.parts.built import Built, built
from separatrix.core.errors import SizeError
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic, narrowest
from separatrix.stacks.architecture import Architecture, Mechanism
from separatrix.tasks import Task

Build = Callable[[Any, Architecture | None, Arithmetic], Built]


def declared_by(architecture: Architecture) -> Arithmetic | None:
    """The arithmetic of a stack as it is declared; None where no program computes in one of its
    formats.
    """
    parts = [part for layer in architecture for part in layer if part.mixes_tokens]
    names = {part.format for part in parts}
    names |= {part.sizes().get("state_format") or part.format for part in parts}
    try:
        return narrowest(sorted(names)) if names else None
    except SizeError:
        return None


def in_format(
    build: Build, task: Task, architecture: Architecture | None, arithmetic: Arithmetic
) -> Built:
    """The construction in the stack, or in the smallest one, which then declares the format.
    Raises SizeError as the builder does, and where a layer that is used declares a format that does
    not hold the numbers of the arithmetic.
    """
    if arithmetic.name == FP32.name:
        return build(task, architecture, arithmetic)
    if architecture is None:
        made = build(task, None, replace(arithmetic, later=True))
        return moved(made, in_numbers(made.model.architecture, arithmetic), arithmetic)
    made = build(task, in_numbers(architecture, FP32), replace(arithmetic, later=True))
    return moved(made, architecture, arithmetic)


def in_numbers(architecture: Architecture, arithmetic: Arithmetic) -> Architecture:
    """The same stack with every layer in one format, its states in that of sums."""
    layers = tuple(tuple(_in(part, arithmetic) for part in layer) for layer in architecture)
    return replace(architecture, layers=layers, name="")


def _in(part: Mechanism, arithmetic: Arithmetic) -> Mechanism:
    if not part.mixes_tokens:
        return part
    kept = arithmetic.inner.name if arithmetic.narrowed else None
    formats = {"format": arithmetic.name, "state_format": kept, "accumulator": None}
    sizes = part.sizes()
    return replace(part, **{key: name for key, name in formats.items() if key in sizes})


def moved(made: Built, architecture: Architecture, arithmetic: Arithmetic) -> Built:
    """The same weights in a stack that differs in declared formats alone."""
    config = replace(made.model.config, architecture=architecture.spec)
    with torch.device("meta"):
        model = Model(config)
    model = model.to_empty(device="cpu").requires_grad_(False)
    for tensor in model.buffers():
        tensor.zero_()
    model.load_state_dict(made.model.state_dict(), assign=True)
    return built(made.task, model, name=made.record.name, arithmetic=arithmetic)
