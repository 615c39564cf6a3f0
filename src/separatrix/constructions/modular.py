"""Modular counting in one layer that reflects its state: every bit 1 turns a cycle for each power
of a prime in m (theory.md, section 10).
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.parts.reflections import reflections
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Modular


def modular(
    task: Modular, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every prompt of every length in one layer (default: DeltaProduct)."""
    return reflections(task, architecture, "modular", arithmetic)


RECIPE = Recipe(
    name="modular",
    task=Modular,
    build=modular,
    theorem="state-tracking",
    takes=(
        "a deltaproduct layer with q - 1 updates and 2 q key numbers for each power q of a prime"
        " in m"
    ),
)
