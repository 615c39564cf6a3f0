"""State tracking on a capability card: where do five things stand after a row of swaps?"""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.architecture import Architecture
from separatrix.cards.question import Question
from separatrix.tasks import Permutation
from separatrix.tasks.base.task import LARGEST_SIZE
from separatrix.theory.base import number
from separatrix.theory.words import Words

THINGS = 5


@dataclass(frozen=True)
class PermutationTracking(Question):
    """The product of as many permutations of five things as the context has tokens."""

    context: int

    # reports of earlier versions hold no record here, and must still verify
    keeps_nothing_known = False

    @property
    def title(self) -> str:
        return f"permutation tracking (S_{THINGS})"

    @property
    def task(self) -> Permutation:
        return self.at(max(2, min(self.context, LARGEST_SIZE)))

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

    def nothing_known(self, architecture: Architecture) -> Words:
        recurrences = [
            part
            for layer, _ in architecture.counted()
            for part in layer
            if part.group == "recurrent"
        ]
        diagonal = bool(recurrences) and all(part.is_diagonal for part in recurrences)
        prefix = "diagonal recurrence; " if diagonal and not architecture.reading else ""
        return Words(
            f"{prefix}no theorem here covers it",
            "Following a long row of swaps needs one small state updated at every token."
            " Recurrences with negative eigenvalues can, and full attention of fixed depth is"
            " believed not to; nothing of the kind is proved here.",
        )
