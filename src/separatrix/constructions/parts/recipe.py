"""The builder's half of a construction: what it solves, what it takes, and how it is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.placement import on_grid
from separatrix.core.evidence.records import Verdict
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.theory import THEOREMS

TaskT = TypeVar("TaskT", bound=Task)
Weights = Callable[[TaskT, Architecture | None, Arithmetic], Model]
"""A model that answers every input of a task, in an architecture or, without one, in the smallest
stack that holds it, for an arithmetic. Raises SizeError, saying what is needed, where it does not
fit.
"""


@dataclass(frozen=True, kw_only=True)
class Recipe(Generic[TaskT]):
    """One construction. The checker knows it by the same name and kind of task, from another table:
    `separatrix.proofs.derivations`.
    """

    name: str
    """What records and users call it."""
    task: type[TaskT]
    """The kind of task that it solves."""
    weights: Weights[TaskT]
    theorem: str
    """Key of the theorem that says which stacks have the room."""
    takes: str
    """Sizes and layers that it takes, in words."""
    rounded: bool = False
    """Whether weights are rounded to the grid of the arithmetic, as those of rotations are."""

    def build(
        self, task: TaskT, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
    ) -> Built:
        """The weights with the proof that is derived from them. Raises SizeError, saying what is
        needed, where they do not fit, or where the arithmetic does not bear them out.
        """
        model = self.weights(task, architecture, arithmetic)
        if self.rounded:
            model = on_grid(model, arithmetic)
        return built(task, model, name=self.name, arithmetic=arithmetic)

    def room(self, architecture: Architecture, task: TaskT) -> Verdict | None:
        """What the theorem says of a stack; None where it sees no room. Weights in float32 may need
        more than the theorem asks for.
        """
        return THEOREMS[self.theorem].judge(architecture, task)


def recipe(
    name: str, task: type[TaskT], *, theorem: str, takes: str, rounded: bool = False
) -> Callable[[Weights[TaskT]], Recipe[TaskT]]:
    """Makes a construction of a function that writes its weights."""

    def of(weights: Weights[TaskT]) -> Recipe[TaskT]:
        return Recipe(
            name=name, task=task, weights=weights, theorem=theorem, takes=takes, rounded=rounded
        )

    return of
