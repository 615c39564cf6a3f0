"""Recall on a capability card: Eva with as many values as the vocabulary has tokens."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.cards.question import AfterThought, Question
from separatrix.tasks import Eva
from separatrix.theory.base import number
from separatrix.theory.words import counted_as


@dataclass(frozen=True)
class Recall(Question):
    """Recall of one of n facts of a vocabulary, which fill the context with the question."""

    context: int
    values: int

    after_thought = AfterThought(
        "recall with chain of thought", "Letting the model write before it answers does not help."
    )

    @property
    def title(self) -> str:
        return f"recall of one of n facts (vocabulary {self.values:,})"

    @property
    def task(self) -> Eva:
        return Eva(n=max(1, self.context - 1), V=self.values)

    @property
    def least(self) -> Eva:
        # its V stays, whatever n is, also where context and vocabulary are equal
        return Eva(n=1, V=self.values)

    def at(self, n: int) -> Eva:
        # with n = V the task would belong to the family in which both grow
        return Eva(n=n + (n == self.values), V=self.values)

    def solved(self) -> str:
        facts = counted_as(self.task.n, "fact")
        return (
            "Some weights answer every question of this kind at this context: name any of"
            f" {facts}, get its value."
        )

    def failed(self, n: int) -> str:
        return (
            "Whatever its weights, the model answers some recall question wrongly once the prompt"
            f" holds {number(n)} fact{'' if n == 1 else 's'}."
        )
