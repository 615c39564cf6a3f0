"""Associative recall in one full layer behind a short convolution: parts/lookups.py derives the
weights.

    present, independent   the key is there: its value wins
    absent                 the first place, whose key is 0, wins where nothing matches: "none"
    last                   the same, and of equal keys the last one wins by the number of its pair
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.lookups import Asked, lookup
from separatrix.constructions.parts.recipe import Recipe
from separatrix.core.errors import SizeError
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Recall
from separatrix.tasks.recall import PROMISED


def recall(
    task: Recall, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every input of `task` in one full layer with a convolution (default: a
    single layer that just holds it).

    Raises SizeError where no layer holds them, or float32 does not bear out the proof.
    """
    return built(
        task, lookup(task, of(task), architecture, arithmetic), name="recall", arithmetic=arithmetic
    )


def of(task: Recall) -> Asked:
    """What is looked up. Raises SizeError where the question stands before the pairs."""
    if task.question == "first":
        raise SizeError(
            f"{task.spec}: what keeps a key and waits for it is not built yet; leave out question"
        )
    return Asked(
        keys=range(task.V, task.vocabulary),
        values=range(task.V),
        pairs=task.n,
        absent=task.form not in PROMISED,
        rewritten=task.form == "last",
    )


RECIPE = Recipe(
    name="recall",
    task=Recall,
    build=recall,
    theorem="recall",
    takes=(
        "one full layer with conv >= 2, ceil(log2 K) + 1 key dimensions (form=last: ceil(log2 n)"
        " more) and ceil(log2 V) value dimensions (of V + 1 answers where keys may be missing)"
    ),
)
