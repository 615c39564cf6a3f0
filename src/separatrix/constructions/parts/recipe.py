"""The builder's half of a construction: what it solves, what it takes, and how it is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from separatrix.constructions.parts.built import Built
from separatrix.core.evidence.records import Verdict
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.theory import THEOREMS

TaskT = TypeVar("TaskT", bound=Task)


@dataclass(frozen=True, kw_only=True)
class Recipe(Generic[TaskT]):
    """One construction. The checker knows it by the same name and kind of task, from another table:
    `separatrix.proofs.derivations`.
    """

    name: str
    """What records and users call it."""
    task: type[TaskT]
    """The kind of task that it solves."""
    build: Callable[[TaskT, Architecture | None, Arithmetic], Built]
    """The weights, in an architecture or, without one, in the smallest stack that holds them, on
    the grid of an arithmetic, which the proof is about. Raises SizeError, saying what is needed,
    where they do not fit.
    """
    theorem: str
    """Key of the theorem that says which stacks have the room."""
    takes: str
    """Sizes and layers that it takes, in words."""

    def room(self, architecture: Architecture, task: TaskT) -> Verdict | None:
        """What the theorem says of a stack; None where it sees no room. Weights in float32 may need
        more than the theorem asks for.
        """
        return THEOREMS[self.theorem].judge(architecture, task)
