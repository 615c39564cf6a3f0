"""Words of an alternating or cyclic group in one layer that reflects its state: every element as
exchanges of two things (theory.md, section 10).
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.parts.reflections import reflections
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Group


def group(
    task: Group, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every prompt of every length in one layer (default: DeltaProduct)."""
    return reflections(task, architecture, "group", arithmetic)


RECIPE = Recipe(
    name="group",
    task=Group,
    build=group,
    theorem="state-tracking",
    takes=(
        "a deltaproduct layer with an update for each exchange of an element, and two key numbers"
        " for each thing"
    ),
)
