"""What separates models at one context: question by question, by a theorem, by what is shown of
some only, or by a bound's size; and what does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from separatrix.cards.facts import CardFacts
from separatrix.cards.short import ASKED, FAR, THOUGHT, Row, steps_of
from separatrix.core.evidence.records import Status
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
    """Every question that each card answers, in the order of cards; steps of composition in
    stretches of equal answers.
    """
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
        _Stretch(*steps_of(line), _answer(row))
        for row in rows
        for line in row.lines
        if (THOUGHT in line.question) == thought
    ]


def _composed(models: Sequence[Sequence[_Stretch]], how: str) -> Iterator[Asked]:
    """Where all models have an answer, or steps beyond those that they are known to compose."""
    ends = {end for own in models for one in own for end in (one.first, one.last + 1)}
    found: list[tuple[int, int, tuple[Answer, ...]]] = []
    for first, after in zip(sorted(ends), sorted(ends)[1:], strict=False):
        answers = tuple(_at(own, first) for own in models)
        if any(answer is None for answer in answers):
            continue
        told = tuple(answer for answer in answers if answer is not None)
        if found and found[-1][1] == first - 1 and _alike(found[-1][2], told):
            found[-1] = (found[-1][0], after - 1, found[-1][2])
        else:
            found.append((first, after - 1, told))
    for first, last, answers in found:
        steps = counted_as(last, "step")
        yield Asked(f"compose {steps if first == last else f'{first} to {steps}'}{how}", answers)


def _alike(one: Sequence[Answer], other: Sequence[Answer]) -> bool:
    """Whether two answers say the same; what lies beyond every prompt says no more than OPEN."""
    return [answer.said for answer in one] == [answer.said for answer in other]


def _at(own: Sequence[_Stretch], steps: int) -> Answer | None:
    for one in own:
        if one.first <= steps <= one.last:
            return one.answer
    solved = any(one.answer.status == "SOLVABLE" and one.last < steps for one in own)
    return Answer("OPEN", FAR, "") if solved else None
