"""What the training of one model gave, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from math import inf
from typing import Any, Literal

from separatrix.core.errors import EvidenceError, SpecError
from separatrix.core.evidence.canonical import json_object
from separatrix.core.evidence.records import to_plain
from separatrix.core.evidence.rule import solved
from separatrix.core.evidence.typed import typed
from separatrix.core.numbers.wilson import wilson_of_answers

ROUNDED = ("bf16", "fp16")
"""Number formats that what recurrent layers carry can be rounded to when a model is tested."""
Status = Literal["done", "diverged"]
Stopped = Literal["solved", "plateau", "steps", "seconds", "diverged"]
"""What ended a training: the running accuracy, a loss without progress, one of the budgets, or
numbers that are no longer finite.
"""


@dataclass(frozen=True, kw_only=True)
class FormatOutcome:
    """The test once more, on the same prompts, with what recurrent layers carry rounded to a number
    format after every token.
    """

    format: str
    correct: int
    """Prompts of which every answer is right."""
    right: int
    """Answers right, of as many as are due without rounding."""
    due: int
    bits: float
    """As `Outcome.bits`."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one seed gave. A seed that diverged is not tested: none of its answers counts as
    right.
    """

    seed: int
    status: Status = "done"
    stopped: Stopped = "steps"
    correct: int
    tested: int = 2048
    """Fresh instances; 0 where it diverged."""
    longer: tuple[int, ...] = ()
    """Right answers at each of the run's longer sizes, of as many instances."""
    right: int = 0
    """Answers right, of all that were due in the test prompts."""
    due: int = 0
    bits: float = 0.0
    """Mean of -log2 p(right answer) over all answers due."""
    bits_squares: float = 0.0
    """Mean over prompts of the square of a prompt's own mean of -log2 p: for intervals whose unit
    is the prompt.
    """
    longer_right: tuple[int, ...] = ()
    """`right` at each of the longer sizes."""
    longer_due: tuple[int, ...] = ()
    formats: tuple[FormatOutcome, ...] = ()
    """One for each of the run's formats; none where it diverged."""
    steps_done: int
    """Where it diverged: the step that was the first without finite numbers."""
    parameters: int
    seconds: float = 0.0
    """What its training took of the pack's time."""
    rule: str = "own"
    """The rule of stopping that its run was held to; in JSON where it is not the run's own."""

    @property
    def diverged(self) -> bool:
        return self.status == "diverged"

    @property
    def answers(self) -> tuple[int, int]:
        """Answers right and due."""
        return self.right, self.due

    @property
    def accuracy(self) -> Fraction:
        """Of answers; 0 where it diverged."""
        return share(*self.answers)

    @property
    def interval(self) -> tuple[str, str] | None:
        """95 %, Wilson, over its test prompts, which are drawn from the seed: no two seeds share a
        stream. None where there is no model to test.
        """
        return wilson_of_answers(*self.answers, self.tested) if self.tested else None

    @property
    def solved(self) -> bool:
        """By the rule of stopping (`rule.py`): also on fresh prompts."""
        return solved(self.stopped, self.accuracy)

    @property
    def possible(self) -> bool:
        """Whether its counts can be those of one test."""
        whole = (self.correct, *self.longer, *(one.correct for one in self.formats))
        pairs = [(self.right, self.due), *((one.right, one.due) for one in self.formats)]
        pairs += zip(self.longer_right, self.longer_due, strict=False)
        return (
            self._in_range
            and self.diverged == (self.tested == 0)
            and self.steps_done >= 1
            and all(count <= self.tested for count in whole)
            and self.tested <= self.due
            and all(right <= due for right, due in pairs)
        )

    def longer_answers(self, place: int) -> tuple[int, int]:
        """The same at a longer size."""
        return self.longer_right[place], self.longer_due[place]

    def to_json(self) -> dict[str, Any]:
        """Every field as JSON has it."""
        found = to_plain(asdict(self))
        return {name: value for name, value in found.items() if (name, value) != ("rule", "own")}

    @classmethod
    def from_json(cls, data: object) -> Outcome:
        """Inverse of `to_json`. Raises SpecError for missing, unknown or mistyped fields."""
        given = json_object(data)
        names = [f.name for f in fields(cls) if f.name != "rule"]
        if given is None or set(given) - {"rule"} != set(names):
            raise SpecError(f"an outcome is an object of JSON with the fields {', '.join(names)}")
        try:
            found: Outcome | None = typed(_with_reals({"rule": "own"} | given), cls, "outcome")
        except EvidenceError:
            found = None
        if found is None or not found._in_range:
            raise SpecError(
                "an outcome holds a value of another type or range than its fields have"
            )
        return found

    @property
    def _in_range(self) -> bool:
        counts = [self.seed, self.correct, self.tested, self.right, self.due, self.steps_done]
        counts += [self.parameters, *self.longer, *self.longer_right, *self.longer_due]
        counts += [n for one in self.formats for n in (one.correct, one.right, one.due)]
        reals = [self.seconds, self.bits, self.bits_squares, *(one.bits for one in self.formats)]
        return (
            all(count >= 0 for count in counts)
            and all(0 <= real < inf for real in reals)
            and all(one.format in ROUNDED for one in self.formats)
            and self.diverged == (self.stopped == "diverged")
            and self.rule in ("own", "study")
        )


def share(right: int, due: int) -> Fraction:
    """Of all answers due, how many are right; 0 where none was due."""
    return Fraction(right, due) if due else Fraction(0)


_REALS = ("seconds", "bits", "bits_squares")


def _with_reals(given: dict[str, Any]) -> dict[str, Any]:
    """The same with numbers of the kind that these fields have: JSON may say 1 for 1.0."""
    whole = [name for name in _REALS if type(given[name]) is int]
    # larger ones than floats are no numbers that anything took
    return given | {name: float(given[name]) for name in whole if given[name].bit_length() < 1000}
