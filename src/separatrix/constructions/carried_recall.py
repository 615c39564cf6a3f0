"""Associative recall in one plain full layer at the end of a stack, behind a layer of short
convolutions that brings every place the token before: parts/lookups.py derives the weights [Wen25].
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.lookups import carried_lookup
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.recall import of
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Recall


def carried_recall(
    task: Recall, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every input of `task` in a short convolution and one plain full
    layer (default: a stack of just these).

    Raises SizeError where no layers hold them, or float32 does not bear out the proof.
    """
    model = carried_lookup(task, of(task), architecture, arithmetic)
    return built(task, model, name="carried-recall", arithmetic=arithmetic)


RECIPE = Recipe(
    name="carried-recall",
    task=Recall,
    build=carried_recall,
    theorem="last-layer",
    takes=(
        "one full layer behind a layer of short convolutions with conv >= 2 and a channel for each"
        " key dimension: ceil(log2 K) + 1 key dimensions (form=last: ceil(log2 n)"
        " more) and ceil(log2 V) value dimensions (of V + 1 answers where keys may be missing)"
    ),
)
