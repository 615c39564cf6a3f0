"""Relations in words: how a fact is told, how it is asked for, and how a thing is named by way
of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

HOLE = "_"
"""Stands for a name in a wording. No name and no other word holds it."""


@dataclass(frozen=True)
class Kind:
    """A kind of thing, by how one of them is written: "_" for people, "the river _" for rivers."""

    written: str

    def of(self, name: str) -> str:
        """The thing of that name, as it stands inside a sentence."""
        return self.written.replace(HOLE, name)


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A relation that gives every subject one object.

    `fact` is its sentence with {s} and {o} for the two, `phrase` names the object by way of its
    subject, which stands last, and `question` asks for the object.
    """

    subject: Kind
    object: Kind
    fact: str
    phrase: str
    question: str

    @cached_property
    def sentence(self) -> str:
        """The fact with a hole for either name."""
        told = self.fact.format(s=self.subject.written, o=self.object.written)
        return told[0].upper() + told[1:]

    @cached_property
    def subject_first(self) -> bool:
        """Whether the subject stands before the object in the fact."""
        return self.fact.index("{s}") < self.fact.index("{o}")

    @cached_property
    def _pieces(self) -> tuple[str, str, str]:
        before, between, after = self.sentence.split(HOLE)
        return before, between, after

    def tell(self, subject: str, object: str) -> str:
        """The fact about these two names."""
        before, between, after = self._pieces
        first, second = (subject, object) if self.subject_first else (object, subject)
        return f"{before}{first}{between}{second}{after}"


def relation(subject: Kind, object: Kind, *, words: tuple[str, str, str]) -> Relation:
    """A relation of these kinds; `words` are its fact, phrase and question."""
    return Relation(
        subject=subject, object=object, fact=words[0], phrase=words[1], question=words[2]
    )


Stage = tuple[Relation, Relation]
"""Two relations that lead from things of one kind to things of one kind: which of them is meant,
only their words say.
"""


@dataclass(frozen=True, kw_only=True)
class Template:
    """Stages that tell a story of one sort.

    Those of `free` lead from people to people and stand in any order; each of `path` leads on to
    the next. The hops of an instance are a piece of the line of all of them, `free` shuffled before
    `path`, and of each stage one relation.
    """

    name: str
    free: tuple[Stage, ...] = ()
    path: tuple[Stage, ...] = ()

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.free + self.path

    @property
    def relations(self) -> tuple[Relation, ...]:
        return tuple(relation for stage in self.stages for relation in stage)

    def line(self, length: int, rng: Any) -> tuple[Stage, ...]:
        """`length` stages that follow one another, drawn with `rng`."""
        line = [self.free[place] for place in rng.permutation(len(self.free))] + list(self.path)
        start = rng.integers(len(line) - length + 1)
        return tuple(line[start : start + length])

    def has(self, relations: Sequence[Relation]) -> bool:
        """Whether these are of stages that `line` can draw."""
        stages = [stage for each in relations for stage in self.stages if each in stage]
        if len(stages) != len(relations):
            return False
        free = [stage for stage in stages if stage in self.free]
        rest = tuple(stages[len(free) :])
        # behind free stages the path stands from its start; without any, from anywhere
        starts = range(1 if free else len(self.path) + 1)
        return (
            len(set(free)) == len(free)
            and stages[: len(free)] == free
            and any(rest == self.path[at : at + len(rest)] for at in starts)
        )


def partner(relation: Relation, stages: Sequence[Stage]) -> Relation:
    """The other relation of the stage that a relation belongs to."""
    return next(two if relation == one else one for one, two in stages if relation in (one, two))
