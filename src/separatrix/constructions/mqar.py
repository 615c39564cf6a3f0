"""MQAR in one full layer behind a short convolution: parts/lookups.py derives the weights, with r =
0.

Every key behind the pairs asks, wherever it stands. What stands there itself is shut out: the place
behind it has a key of `shut` = D + 1, which no code outweighs. So filler may be anything.
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.lookups import Asked, lookup
from separatrix.constructions.parts.recipe import Recipe
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import MQAR


def mqar(
    task: MQAR, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every question of every input of `task` in one full layer with a
    convolution (default: a single layer that just holds it).

    Raises SizeError where no layer holds them, or float32 does not bear out the proof.
    """
    return built(
        task, lookup(task, of(task), architecture, arithmetic), name="mqar", arithmetic=arithmetic
    )


def of(task: MQAR) -> Asked:
    """What is looked up."""
    return Asked(
        keys=range(1, task.first_value),
        values=range(task.first_value, task.vocabulary),
        pairs=task.num_kv_pairs,
    )


RECIPE = Recipe(
    name="mqar",
    task=MQAR,
    build=mqar,
    theorem="recall",
    takes=(
        "one full layer with conv >= 2, and a key dimension for each bit of a key and one more, a"
        " value dimension for each bit of a value"
    ),
)
