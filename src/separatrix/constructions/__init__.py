"""Constructions: explicit weights, inside the ordinary `Model`, that answer every input of a
task; each with a proof object.

Each is a recipe of its file, or of that of its family. Its proof is derived from the weights by
`separatrix.proofs.derivations`, for the record here and again by the checker.
"""

from __future__ import annotations

from typing import Any

from separatrix.constructions import (
    brackets,
    copying,
    counting,
    flags,
    khop,
    lookups,
    multiplied,
    retrieval,
    seqcomp,
    thought,
    tracked,
)
from separatrix.constructions.parts.built import Built, Recipe, declared_by, load
from separatrix.core.errors import SizeError, UnknownNameError
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Questions, Task

__all__ = ["CONSTRUCTIONS", "Built", "Recipe", "construct", "load"]

CONSTRUCTIONS: dict[str, Recipe[Any]] = {
    recipe.name: recipe
    for recipe in (
        retrieval.retrieval,
        retrieval.sparse_retrieval,
        retrieval.indexed_retrieval,
        seqcomp.seqcomp,
        seqcomp.carried,
        flags.match2,
        flags.match2_bits,
        flags.pairs,
        flags.equality,
        retrieval.neighbour,
        brackets.brackets,
        *tracked.RECIPES,
        tracked.swaps,
        *counting.RECIPES,
        *multiplied.RECIPES,
        multiplied.automaton,
        thought.thought,
        retrieval.index,
        *lookups.RECIPES,
        khop.khop,
        copying.copying,
        counting.counting,
        thought.encoder,
        retrieval.qsa,
        brackets.question_first,
    )
}
"""Every construction by name; of those for one task, the first that fits is built."""


def construct(
    task: Task,
    architecture: Architecture | None = None,
    kind: str | None = None,
    arithmetic: Arithmetic | None = None,
) -> Built:
    """Weights that answer every input of the task, placed in `architecture` (default: the smallest
    stack that holds them), and proved in an arithmetic (default: float32; of a stack that declares
    narrower numbers, their own).

    `kind` names the construction; without it the first that fits is built. Layers that the
    construction does not use add zero. Raises SizeError, saying what is needed, when none fits, and
    UnknownNameError for a kind that is none.
    """
    if isinstance(task, Questions):
        raise SizeError(f"{task.spec}: constructions answer one question; take {task.task.spec}")
    recipes = _candidates(task, kind)
    reasons: list[str] = []
    own = None if architecture is None else declared_by(architecture)
    tried = [FP32] if own is None or FP32.within(own) else [FP32, own]
    for some in tried if arithmetic is None else [arithmetic]:
        for recipe in recipes:
            try:
                return recipe.build(task, architecture, some)
            except SizeError as error:
                reasons.append(str(error))
    raise SizeError(
        "; or ".join(dict.fromkeys(reasons))
        or f"no construction for the task '{task.name}' is built yet"
    )


def _candidates(task: Task, kind: str | None) -> list[Recipe[Any]]:
    """The constructions to try, in order."""
    if kind is None:
        return [recipe for recipe in CONSTRUCTIONS.values() if type(task) is recipe.task]
    if kind not in CONSTRUCTIONS:
        raise UnknownNameError.of("construction", kind, CONSTRUCTIONS)
    recipe = CONSTRUCTIONS[kind]
    if type(task) is not recipe.task:
        raise SizeError(
            f"the construction '{kind}' does not solve {task.spec}; it takes {recipe.task.name}:"
            f" {recipe.takes}"
        )
    return [recipe]
