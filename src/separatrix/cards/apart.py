"""What `compare` says of models: what separates them at one context, question by question, and how
many of random facts they recall at the most, over contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from separatrix.cards.facts import ASKED, FAR, THOUGHT, CardFacts, Row
from separatrix.cards.question import grade
from separatrix.cards.questions import one_of_facts, values_of
from separatrix.core.evidence.records import Status
from separatrix.core.numbers.accuracy import WHOLE
from separatrix.core.numbers.amounts import LONGEST_CONTEXT
from separatrix.stacks.architecture import Architecture
from separatrix.theory.base import Theorem
from separatrix.theory.judge import judge
from separatrix.theory.words import counted_as

KINDS = {
    "theorem": "Only some can: a theorem forbids it to the others",
    "forbidden": "A theorem forbids it to some; for the others it is open",
    "shown": "Shown for some only: OPEN is not cannot",
    "bound": "Bounds that differ",
}
"""How models differ in a question, and what that means; the strongest first."""


class Answer(NamedTuple):
    """What a model's card answers to a question."""

    status: Status
    decides: str
    theorem: str

    @property
    def said(self) -> str:
        """In a few words: "SOLVABLE: one full layer (layer 4)"."""
        if self.decides == FAR:
            return self.status
        cited = f" ({self.theorem})" if self.theorem else ""
        return f"{self.status}{' ' if self.status == 'FAILS' else ': '}{self.decides}{cited}"


@dataclass(frozen=True)
class Asked:
    """A question that all the models were asked, and their answers."""

    asks: str
    answers: tuple[Answer, ...]

    @property
    def kind(self) -> str:
        """A key of `KINDS`, or "" where the answers do not differ in what they allow."""
        statuses = {answer.status for answer in self.answers}
        if statuses >= {"FAILS", "SOLVABLE"}:
            return "theorem"
        if "FAILS" in statuses and len(statuses) > 1:
            return "forbidden"
        if len(statuses) > 1:
            return "shown"
        bounds = {(answer.decides, answer.theorem) for answer in self.answers}
        told = any("n = " in answer.decides for answer in self.answers)
        return "bound" if len(bounds) > 1 and told and statuses != {"SOLVABLE"} else ""

    def to_json(self) -> dict[str, Any]:
        answers = [answer._asdict() for answer in self.answers]
        return asdict(self) | {"answers": answers, "kind": self.kind}


def asked_of_all(cards: Sequence[CardFacts]) -> tuple[Asked, ...]:
    """Every question that each card answers, in their order; equal steps of composition as one."""
    found: list[Asked] = []
    for key in ASKED:
        rows = [[row for row in facts.table if row.key == key] for facts in cards]
        if key == "composition":
            found += _composed([_stretches(own, thought=False) for own in rows], "")
            found += _composed([_stretches(own, thought=True) for own in rows], f" {THOUGHT}")
        elif all(rows):
            found.append(Asked(ASKED[key], tuple(_answer(own[0]) for own in rows)))
    return tuple(found)


class _Stretch(NamedTuple):
    first: int
    last: int
    answer: Answer


def _answer(row: Row) -> Answer:
    return Answer(row.status, row.decides, row.theorem)


def _stretches(rows: Sequence[Row], *, thought: bool) -> list[_Stretch]:
    return [
        _Stretch(max(1, line.steps[0]), line.steps[1], _answer(row))
        for row in rows
        for line in row.lines
        if line.thought == thought
    ]


def _composed(models: Sequence[Sequence[_Stretch]], how: str) -> Iterator[Asked]:
    """Where all models have an answer, or steps beyond those that they are known to compose."""
    ends = {end for own in models for one in own for end in (one.first, one.last + 1)}
    found: list[tuple[int, int, tuple[Answer, ...]]] = []
    for first, after in zip(sorted(ends), sorted(ends)[1:], strict=False):
        told = tuple(answer for own in models if (answer := _at(own, first)) is not None)
        if len(told) < len(models):
            continue
        if found and found[-1][1] == first - 1 and _alike(found[-1][2], told):
            found[-1] = (found[-1][0], after - 1, found[-1][2])
        else:
            found.append((first, after - 1, told))
    for first, last, answers in found:
        steps = counted_as(last, "step")
        yield Asked(f"compose {steps if first == last else f'{first} to {steps}'}{how}", answers)


def _alike(one: Sequence[Answer], other: Sequence[Answer]) -> bool:
    return [answer.said for answer in one] == [answer.said for answer in other]


def _at(own: Sequence[_Stretch], steps: int) -> Answer | None:
    for one in own:
        if one.first <= steps <= one.last:
            return one.answer
    solved = any(one.answer.status == "SOLVABLE" and one.last < steps for one in own)
    return Answer("OPEN", FAR, "") if solved else None


_BEYOND = 5
"""Doublings that are shown beyond the context at which the last stack begins to fail."""
_ROWS = 6
"""About how many contexts a table has, beside the one asked."""
_PER_DOUBLING = 12
"""Points of a drawn curve."""


@dataclass(frozen=True)
class Point:
    """A stack at a context; accuracies in millionths."""

    context: int
    at_most: int | None
    """What no weights exceed, rounded up; None where nothing is known to be out of reach."""
    stored: int
    """What storing as many facts as fit and guessing the others reaches, rounded down."""


Curve = tuple[Point, ...]
"""The points of one stack, at growing contexts."""


def few_contexts(architectures: Sequence[Architecture], context: int) -> tuple[int, ...]:
    """The context asked, and powers of two around where stacks begin to fail; empty if none."""
    powers = _powers(architectures)
    chosen = powers[:: -(-len(powers) // _ROWS) or 1]
    return tuple(sorted({context, *(1 << power for power in chosen)})) if powers else ()


def many_contexts(architectures: Sequence[Architecture]) -> tuple[int, ...]:
    """The same contexts, close enough to each other to draw a curve through."""
    powers = _powers(architectures)
    if not powers:
        return ()
    ends = (_PER_DOUBLING * powers[0], _PER_DOUBLING * powers[-1])
    return tuple(round(2 ** (step / _PER_DOUBLING)) for step in range(ends[0], ends[1] + 1))


def recall_curve(architecture: Architecture, contexts: Sequence[int]) -> Curve:
    """What no weights exceed at these contexts, with as many values as the model has tokens."""
    return tuple(_point(architecture, context) for context in contexts)


def _powers(architectures: Sequence[Architecture]) -> range:
    begins = [n for n in map(_begins, architectures) if n is not None]
    if not begins:
        return range(0)
    last = min(max(begins).bit_length() + _BEYOND, LONGEST_CONTEXT.bit_length() - 1)
    return range(min(max(1, min(begins).bit_length() - 2), last), last + 1)


def _begins(architecture: Architecture) -> int | None:
    """The number of facts from which recall fails; None where no theorem names one."""
    asked = one_of_facts(2, values_of(architecture))
    found = judge(architecture, asked.least or asked.task, among=Theorem.fails_at_once)
    return next((verdict.n for verdict in found if verdict.n is not None), None)


def _point(architecture: Architecture, context: int) -> Point:
    found = grade(architecture, one_of_facts(context, values_of(architecture)).task)
    if found is None:
        return Point(context, None, WHOLE)
    return Point(context, found.ceiling, found.verdict.numbers["stored_millionths"])
