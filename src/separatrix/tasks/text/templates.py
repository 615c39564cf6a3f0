"""Relations in words: how a fact is told, how it is asked for, and how a thing is named by way of
another; and the stories that facts are told in. A new one needs at least nine stages, and words by
which no two relations are confused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import cleandoc
from typing import Any, Final

HOLE = "_"
"""Stands for a name in a wording. No name and no other word holds it."""
Kind = str
"""A kind of thing, by how one of them is written: "_" for people, "the river _" for rivers."""


@dataclass(frozen=True)
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
        told = self.fact.format(s=self.subject, o=self.object)
        return told[0].upper() + told[1:]

    @cached_property
    def subject_first(self) -> bool:
        """Whether the subject stands before the object in the fact."""
        return self.fact.index("{s}") < self.fact.index("{o}")

    def tell(self, subject: str, object: str) -> str:
        """The fact about these two names."""
        before, between, after = self.sentence.split(HOLE)
        first, second = (subject, object) if self.subject_first else (object, subject)
        return f"{before}{first}{between}{second}{after}"


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


def _path(text: str) -> tuple[Stage, ...]:
    """Stages that lead from one kind of thing to the next. A line for each kind; under it the words
    of the two relations that lead there: fact, phrase and question about a subject S and an object
    O.
    """
    kinds: list[Kind] = []
    relations: list[Relation] = []
    worded = re.sub(r"\b[SO]\b", lambda at: f"{{{at[0].lower()}}}", text)
    for line in worded.strip("\n").split("\n"):
        if line.startswith(" "):
            relations.append(Relation(*kinds[-2:], *map(str.strip, line.split("|"))))
        else:
            kinds.append(line)
    return tuple(zip(relations[::2], relations[1::2], strict=True))


def _people(text: str) -> tuple[Stage, ...]:
    """Stages that lead from people to people, by what the two are to them, a line for each."""
    stages = []
    for line in cleandoc(text).split("\n"):
        told = (
            f"  the {noun} of S is O. | the {noun} of S | Who is the {noun} of S?"
            for noun in line.split(", ")
        )
        stages += _path("\n".join(["_", "_", *told]))
    return tuple(stages)


FAMILY: Final = Template(
    free=_people(
        """
        mother, father
        oldest sister, oldest brother
        youngest sister, youngest brother
        oldest aunt, oldest uncle
        youngest aunt, youngest uncle
        godmother, godfather
        oldest daughter, oldest son
        youngest daughter, youngest son
        favourite niece, favourite nephew
        """
    )
)

PLACES: Final = Template(
    free=_people(
        """
        teacher, doctor
        dentist, barber
        tailor, baker
        """
    ),
    path=_path(
        """
_
the village of _
  S was born in O. | the birthplace of S | In which village was S born?
  S got married in O. | the wedding place of S | In which village did S marry?
the district of _
  S belongs to O. | the district around S | In which district is S?
  S pays taxes to O. | the district that taxes S | Which district taxes S?
the country of _
  S lies in O. | the country with S | In which country is S?
  S once belonged to O. | the former country of S | What was the former country of S?
the city of _
  S is ruled from O. | the capital of S | What is the capital of S?
  S trades most with O. | the trading city of S | Which city trades most with S?
the river _
  O flows through S. | the river through S | Which river flows through S?
  S takes water from O. | the river that waters S | Which river gives water to S?
the lake _
  S flows into O. | the lake fed by S | Which lake is fed by S?
  S springs from O. | the lake that feeds S | Which lake feeds S?
the island of _
  the largest island in S is O. | the largest island in S | What is the largest island in S?
  the smallest island in S is O. | the smallest island in S | What is the smallest island in S?
_
  S was discovered by O. | the discoverer of S | Who discovered S?
  S was first settled by O. | the first settler of S | Who first settled S?
"""
    ),
)

WORK: Final = Template(
    free=_people(
        """
        manager, deputy
        mentor, assistant
        lawyer, accountant
        driver, secretary
        predecessor, successor
        """
    ),
    path=_path(
        """
_
the company _
  S works for O. | the company that employs S | Which company employs S?
  S once worked for O. | the company that dismissed S | Which company dismissed S?
the group _
  S is owned by O. | the group that owns S | Which group owns S?
  S competes with O. | the group that rivals S | Which group rivals S?
the bank _
  S borrows from O. | the bank that lends to S | Which bank lends to S?
  S keeps its money at O. | the bank that guards the money of S | Which bank guards the money of S?
the town of _
  S has its head office in O. | the home town of S | Which town is home to S?
  S was founded in O. | the founding town of S | Which town saw the founding of S?
"""
    ),
)

BOXES: Final = Template(
    path=_path(
        """
the coin _
the box _
  S lies in O. | the box with S | In which box is S?
  S used to lie in O. | the earlier box of S | In which box was S before?
the cupboard _
  S stands in O. | the cupboard with S | In which cupboard is S?
  S belongs in O. | the proper cupboard of S | What is the proper cupboard of S?
the room _
  S stands in O. | the room with S | In which room is S?
  S was moved out of O. | the earlier room of S | What was the earlier room of S?
the floor _
  S is on O. | the floor with S | On which floor is S?
  S is heated from O. | the floor that heats S | Which floor heats S?
the house _
  S is part of O. | the house with S | In which house is S?
  S was copied from O. | the model house of S | What was the model house of S?
the street _
  S stands in O. | the street with S | In which street is S?
  S has its garage in O. | the garage street of S | What is the garage street of S?
the town of _
  S runs through O. | the town with S | In which town is S?
  S leads to O. | the town at the end of S | Which town is at the end of S?
the island of _
  S lies on O. | the island with S | On which island is S?
  S sends a ferry to O. | the ferry island of S | What is the ferry island of S?
the sea of _
  S lies in O. | the sea around S | In which sea is S?
  S trades across O. | the trading sea of S | What is the trading sea of S?
"""
    )
)

BOOKS: Final = Template(
    path=_path(
        """
the poem _
the book _
  S is printed in O. | the book with S | In which book is S?
  S is quoted in O. | the book that quotes S | Which book quotes S?
_
  O wrote S. | the author of S | Who wrote S?
  O translated S. | the translator of S | Who translated S?
_
  S studied under O. | the tutor of S | Who was the tutor of S?
  S quarrelled with O. | the rival of S | Who was the rival of S?
the academy _
  S taught at O. | the academy that employed S | Which academy employed S?
  S was expelled from O. | the academy that expelled S | Which academy expelled S?
_
  O founded S. | the founder of S | Who founded S?
  O paid for S. | the patron of S | Who paid for S?
the castle _
  S lived in O. | the castle of S | Which castle was the home of S?
  S was buried in O. | the burial castle of S | Which castle was the grave of S?
the mountain _
  S stands on O. | the mountain with S | On which mountain is S?
  S looks out on O. | the mountain in sight of S | Which mountain is in sight of S?
the valley of _
  S rises above O. | the valley below S | Which valley lies below S?
  S is reached from O. | the valley on the way to S | Which valley lies on the way to S?
the stream _
  S is drained by O. | the stream that drains S | Which stream drains S?
  S was flooded by O. | the stream that flooded S | Which stream flooded S?
"""
    )
)

TEMPLATES: Final = (FAMILY, PLACES, WORK, BOXES, BOOKS)
MOST_HOPS: Final = min(len(template.stages) for template in TEMPLATES) - 1
"""One stage leads on from the last hop."""
