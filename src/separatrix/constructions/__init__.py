"""Constructions: explicit weights, inside the ordinary `Model`, that answer every input of a
task; each with a proof object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from separatrix.architecture import Architecture
from separatrix.constructions.carried import carried
from separatrix.constructions.match2 import match2
from separatrix.constructions.parts.built import Built, load
from separatrix.constructions.retrieval import retrieval
from separatrix.constructions.seqcomp import seqcomp
from separatrix.constructions.sparse_retrieval import sparse_retrieval
from separatrix.errors import SizeError
from separatrix.tasks import Eva, SeqComp, Task, TwoSum

__all__ = ["CONSTRUCTIONS", "Built", "construct", "load"]

CONSTRUCTIONS: dict[str, Callable[[Any, Architecture | None], Built]] = {
    "retrieval": retrieval,
    "sparse-retrieval": sparse_retrieval,
    "seqcomp": seqcomp,
    "carried": carried,
    "match2": match2,
}

_FOR: dict[type[Task], tuple[str, ...]] = {
    Eva: ("retrieval", "sparse-retrieval"),
    SeqComp: ("seqcomp", "carried"),
    TwoSum: ("match2",),
}
"""Task -> the constructions that solve it, the first that fits wins."""


def construct(task: Task, architecture: Architecture | None = None) -> Built:
    """Weights that answer every input of the task, in float32, placed in `architecture` (default:
    the smallest stack that holds them).

    Layers that the construction does not use add zero. Raises SizeError, saying what is needed,
    when no known construction fits.
    """
    reasons = []
    for name in _FOR.get(type(task), ()):
        try:
            return CONSTRUCTIONS[name](task, architecture)
        except SizeError as error:
            reasons.append(str(error))
    raise SizeError("; or ".join(reasons) or f"no construction is known for the task '{task.name}'")
