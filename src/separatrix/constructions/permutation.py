"""Permutations of k things in one layer that reflects its state: up to k - 1 exchanges of two of
them at a token (theory.md, section 10).
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.parts.reflections import reflections
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Permutation


def permutation(
    task: Permutation, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every prompt of every length in one layer (default: DeltaProduct)."""
    return reflections(task, architecture, "permutation", arithmetic)


RECIPE = Recipe(
    name="permutation",
    task=Permutation,
    build=permutation,
    theorem="state-tracking",
    takes="a deltaproduct layer with k - 1 updates, head_dim >= 2 k and value_dim >= k - 1",
)
