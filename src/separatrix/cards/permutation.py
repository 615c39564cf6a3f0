"""State tracking on a capability card: is a number of ones odd, and where do five things stand
after a row of rearrangements?
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from separatrix.architecture import Architecture
from separatrix.cards.line import CardLine
from separatrix.cards.question import Question
from separatrix.cards.tracking import tracked_by, undecided
from separatrix.evidence.records import Verdict
from separatrix.tasks import Parity, Permutation
from separatrix.tasks.base.task import LARGEST_SIZE
from separatrix.theory.base import number
from separatrix.theory.words import Words

THINGS = 5


@dataclass(frozen=True)
class _Tracking(Question):
    """A question whose lines say which layers of a stack can track a state, and which cannot."""

    context: int

    complete: ClassVar[bool]
    """Whether the question is complete for NC^1."""

    @property
    def longest(self) -> int:
        """The n of the task at the context."""
        return max(2, min(self.context, LARGEST_SIZE))

    def answer(self, architecture: Architecture) -> list[CardLine]:
        listed = tracked_by(architecture)
        # other lines list the layers anyway
        return [
            replace(line, text=f"{line.text}; {listed}") if line.status == "SOLVABLE" else line
            for line in super().answer(architecture)
        ]

    def _open(self, architecture: Architecture, here: Verdict) -> CardLine:
        line = super()._open(architecture, here)
        # the layers, whatever the record says that it lacks
        text = self.nothing_known(architecture).text
        return replace(line, text=text) if line.bound is None else line

    def nothing_known(self, architecture: Architecture) -> Words:
        return undecided(architecture, complete=self.complete)


@dataclass(frozen=True)
class ParityOfBits(_Tracking):
    """The parity of as many bits as the context has tokens."""

    complete = False

    @property
    def title(self) -> str:
        return "parity of bits"

    @property
    def task(self) -> Parity:
        return self.at(self.longest)

    def at(self, n: int) -> Parity:
        return Parity(n=n)

    def solved(self) -> str:
        return f"Some weights tell whether the ones among {self.task.n:,} bits are odd in number."

    def failed(self, n: int) -> str:
        return (
            "Whatever its weights, the model takes an odd number of ones for even in some row of"
            f" {number(n)} bits, or the reverse."
        )


@dataclass(frozen=True)
class PermutationTracking(_Tracking):
    """The product of as many permutations of five things as the context has tokens."""

    complete = True
    # reports of earlier versions hold no record here, and must still verify
    keeps_nothing_known = False

    @property
    def title(self) -> str:
        return f"permutation tracking (S_{THINGS})"

    @property
    def task(self) -> Permutation:
        return self.at(self.longest)

    def at(self, n: int) -> Permutation:
        return Permutation(n=n, k=THINGS)

    def solved(self) -> str:
        return (
            f"Some weights follow every row of {self.task.n:,} rearrangements of {THINGS} things."
        )

    def failed(self, n: int) -> str:
        return (
            f"Whatever its weights, the model loses track of {THINGS} things in some row of"
            f" {number(n)} rearrangements."
        )
