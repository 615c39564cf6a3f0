"""What the training of one model gave, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, cast, get_args

from separatrix.errors import SpecError
from separatrix.evidence.canonical import json_list, json_object

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

    Outcomes of earlier versions lack what counts single answers: then `due` is 0.
    """

    later: ClassVar[tuple[str, ...]] = (
        "right",
        "due",
        "bits",
        "bits_squares",
        "longer_right",
        "longer_due",
        "formats",
    )
    """Fields that outcomes of earlier versions do not have."""

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

    @property
    def diverged(self) -> bool:
        return self.status == "diverged"

    @property
    def answers(self) -> tuple[int, int]:
        """Answers right and due; prompts where single answers were not counted."""
        return (self.right, self.due) if self.due else (self.correct, self.tested)

    def longer_answers(self, place: int) -> tuple[int, int]:
        """The same at a longer size."""
        if not self.due:
            return self.longer[place], self.tested
        return self.longer_right[place], self.longer_due[place]

    def to_json(self) -> dict[str, Any]:
        """Every field as JSON has it."""
        lists = ("longer", "longer_right", "longer_due", "formats")
        plain = asdict(self)
        return plain | {name: list(plain[name]) for name in lists}

    @classmethod
    def from_json(cls, data: object) -> Outcome:
        """Inverse of `to_json`. Raises SpecError for missing, unknown or mistyped fields."""
        given = json_object(data)
        names = [f.name for f in fields(cls)]
        if given is not None and cls.later[0] not in given:
            names = [name for name in names if name not in cls.later]
        if given is None or set(given) != set(names):
            raise SpecError(f"an outcome is an object of JSON with the fields {', '.join(names)}")
        whole = {name: _list(given[name]) for name in names if name in _COUNTS}
        counts = [given["seed"], given["tested"], given["steps_done"], given["parameters"]]
        counts += [given[name] for name in ("correct", "right", "due") if name in names]
        reals = {name: given[name] for name in ("seconds", "bits", "bits_squares") if name in names}
        if (
            not all(_whole(n) for n in (*counts, *(n for each in whole.values() for n in each)))
            or not all(map(_real, reals.values()))
            or given["status"] not in get_args(Status)
            or given["stopped"] not in get_args(Stopped)
            or (given["status"] == "diverged") != (given["stopped"] == "diverged")
        ):
            raise _mistyped()
        formats = tuple(map(_format, _list(given.get("formats", []))))
        return cls(
            **given
            | {name: tuple(each) for name, each in whole.items()}
            | {name: float(value) for name, value in reals.items()}
            | {"formats": formats}
        )


_COUNTS = ("longer", "longer_right", "longer_due")
"""Fields of an outcome that are lists of counts."""


def _mistyped() -> SpecError:
    return SpecError("an outcome holds a value of another type or range than its fields have")


def _list(value: object) -> list[Any]:
    found = json_list(value)
    if found is None:
        raise _mistyped()
    return found


def _whole(value: object) -> bool:
    # a bool is an int to isinstance, but no count
    return type(value) is int and value >= 0


def _real(value: object) -> bool:
    return type(value) in (int, float) and 0 <= cast("float", value) < float("inf")


def _format(data: object) -> FormatOutcome:
    given = json_object(data)
    if (
        given is None
        or set(given) != {f.name for f in fields(FormatOutcome)}
        or given["format"] not in ROUNDED
        or not all(_whole(given[name]) for name in ("correct", "right", "due"))
        or not _real(given["bits"])
    ):
        raise _mistyped()
    return FormatOutcome(**given | {"bits": float(given["bits"])})
