"""What `compare` says of models: what separates them at one context, question by question, and how
many of random facts they recall at the most, over contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from separatrix.cards.facts import ASKED, FAR, THOUGHT, CardFacts, Row
from separatrix.cards.questions import one_of_facts, values_of
from separatrix.core.numbers.accuracy import WHOLE
from separatrix.core.numbers.amounts import LONGEST_CONTEXT
from separatrix.stacks.architecture import Architecture
from separatrix.theory.base import Theorem
from separatrix.theory.judge import graded, judge
from separatrix.theory.words import counted_as

KINDS = {
    "theorem": "Only some can: a theorem forbids it to the others",
    "forbidden": "A theorem forbids it to some; for the others it is open",
    "shown": "Shown for some only: OPEN is not cannot",
    "bound": "Bounds that differ",
}
"""How models differ in a question, and what that means; the strongest first."""


@dataclass(frozen=True)
class Asked:
    """A question that all the models were asked, and their answers."""

    asks: str
    answers: tuple[Row, ...]

    @property
    def kind(self) -> str:
        """A key of `KINDS`, or "" where the answers do not differ in what they allow."""
        statuses = {answer.status for answer in self.answers}
        if statuses >= {"FAILS", "SOLVABLE"}:
            return "theorem"
        if len(statuses) > 1:
            return "forbidden" if "FAILS" in statuses else "shown"
        bounds = {(answer.decides, answer.theorem) for answer in self.answers}
        told = any("n = " in answer.decides for answer in self.answers)
        return "bound" if len(bounds) > 1 and told and statuses != {"SOLVABLE"} else ""

    def to_json(self) -> dict[str, Any]:
        kept = ("status", "decides", "theorem")
        answers = [{name: getattr(one, name) for name in kept} for one in self.answers]
        return {"asks": self.asks, "answers": answers, "kind": self.kind}


def asked_of_all(cards: Sequence[CardFacts]) -> tuple[Asked, ...]:
    """Every question that each card answers, in their order; equal steps of composition as one."""
    found: list[Asked] = []
    for key in ASKED:
        rows = [[row for row in facts.table if row.key == key] for facts in cards]
        if key == "composition":
            found += [*_composed(rows, thought=False), *_composed(rows, thought=True)]
        elif all(rows):
            found.append(Asked(ASKED[key], tuple(own[0] for own in rows)))
    return tuple(found)


def _composed(models: Sequence[Sequence[Row]], *, thought: bool) -> Iterator[Asked]:
    """Where all models have an answer, or steps beyond those that they are known to compose."""
    stretches = [
        [
            (max(1, line.steps[0]), line.steps[1], row)
            for row in rows
            for line in row.lines
            if line.thought == thought
        ]
        for rows in models
    ]
    ends = sorted({end for own in stretches for one in own for end in (one[0], one[1] + 1)})
    told = [(first, [_at(own, first) for own in stretches]) for first in ends]
    how = f" {THOUGHT}" if thought else ""
    same = groupby(told[:-1], lambda pair: [None if row is None else row.answer for row in pair[1]])
    starts = [*(next(own) for _, own in same), *told[-1:]]
    for (first, answers), (after, _) in pairwise(starts):
        rows = tuple(row for row in answers if row is not None)
        if len(rows) == len(models):
            steps = counted_as(after - 1, "step")
            said = steps if first == after - 1 else f"{first} to {steps}"
            yield Asked(f"compose {said}{how}", rows)


def _at(own: Sequence[tuple[int, int, Row]], steps: int) -> Row | None:
    """The answer about so many steps; OPEN beyond those that are known to be composed."""
    solved = False
    for first, last, row in own:
        if first <= steps <= last:
            return row
        solved |= row.status == "SOLVABLE" and last < steps
    return Row("composition", "", "OPEN", FAR, "", ()) if solved else None


_BEYOND = 5
"""Doublings that are shown beyond the context at which the last stack begins to fail."""
_ROWS = 6
"""About how many contexts a table has, beside the one asked."""


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


def recall_curve(architecture: Architecture, contexts: Sequence[int]) -> Curve:
    """What no weights exceed at these contexts, with as many values as the model has tokens."""
    points: list[Point] = []
    for context in contexts:
        found = graded(architecture, one_of_facts(context, values_of(architecture)).task)
        numbers = {} if found is None else found.numbers
        at_most, stored = (numbers.get(f"{one}_millionths") for one in ("ceiling", "stored"))
        points.append(Point(context, at_most, WHOLE if stored is None else stored))
    return tuple(points)


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
