"""Equality on a capability card: are two strings of n bits equal, both within the context?"""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.architecture import Architecture
from separatrix.cards.question import UNDECIDED, Question
from separatrix.tasks import Equality
from separatrix.theory.base import number
from separatrix.theory.words import Words


@dataclass(frozen=True)
class EqualStrings(Question):
    """Equality of two strings that fill the context together."""

    context: int

    @property
    def title(self) -> str:
        return "equality of two strings"

    @property
    def task(self) -> Equality:
        return Equality(n=max(1, self.context // 2))

    def at(self, n: int) -> Equality:
        return Equality(n=n)

    def solved(self) -> str:
        return f"Some weights compare two strings of {self.task.n:,} bits bit by bit."

    def failed(self, n: int) -> str:
        return (
            "Whatever its weights, the model takes some two different strings of"
            f" {number(n)} bits for equal, or the reverse."
        )

    def nothing_known(self, architecture: Architecture) -> Words:
        return Words("no theorem here decides it for a cache that grows", UNDECIDED)
