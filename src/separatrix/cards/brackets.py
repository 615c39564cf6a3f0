"""Nested brackets on a capability card: the depth from which a cache cannot hold what is open."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.architecture import Architecture
from separatrix.cards.question import UNDECIDED, Question
from separatrix.tasks import Dyck
from separatrix.tasks.base.task import LARGEST_SIZE
from separatrix.theory.base import number
from separatrix.theory.words import Words

KINDS = 2
DEEPEST = LARGEST_SIZE // 2


@dataclass(frozen=True)
class NestedBrackets(Question):
    """Brackets of two kinds that fill the context and may nest as deep as they fit."""

    context: int

    @property
    def title(self) -> str:
        return f"nested brackets of {KINDS} kinds"

    @property
    def task(self) -> Dyck:
        return self.at(2 * min(max(1, self.context // 2), DEEPEST))

    @property
    def least(self) -> Dyck:
        # where any depth is allowed, the longest prompts of the family nest the deepest
        return Dyck(n=2, k=KINDS, D=DEEPEST)

    def at(self, n: int) -> Dyck:
        return Dyck(n=n, k=KINDS, D=n // 2)

    def solved(self) -> str:
        return f"Some weights judge every row of {self.task.n:,} brackets, however they nest."

    def failed(self, n: int) -> str:
        return (
            "Whatever its weights, the model misjudges some brackets nested"
            f" {number(self.at(n).D)} deep."
        )

    def nothing_known(self, architecture: Architecture) -> Words:
        if architecture.reading:
            return Words("no theorem here decides it for a cache that grows", UNDECIDED)
        return Words(f"no bound up to depth {DEEPEST:,}", UNDECIDED)
