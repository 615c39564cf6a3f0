"""Parity in one layer that reflects its state: s becomes 1 - s at every bit 1 (theory.md, section
10).
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.parts.reflections import reflections
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Parity


def parity(
    task: Parity, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every prompt of every length in one layer (default: DeltaNet of one
    number).
    """
    return reflections(task, architecture, "parity", arithmetic)


RECIPE = Recipe(
    name="parity",
    task=Parity,
    build=parity,
    theorem="state-tracking",
    takes="a deltanet, gdn, kda or deltaproduct layer with negative=true",
)
