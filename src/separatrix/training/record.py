"""The record of several seeds of one run; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, cast, get_args

from separatrix.errors import SizeError, SpecError
from separatrix.evidence.canonical import json_list, json_object
from separatrix.evidence.records import Measurement
from separatrix.numbers.wilson import wilson
from separatrix.tasks import Task, parse_task
from separatrix.tasks.repeats import repeats
from separatrix.tasks.stages import read_stages
from separatrix.theory.trained import check_trained
from separatrix.training.run import ROUNDED, Run

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


def measurement(run: Run, outcomes: Sequence[Outcome]) -> Measurement:
    """The record of a run's seeds, each with its own intervals; the run's own seed is not looked
    at. A seed that diverged keeps its place, with no answer right.

    Raises SizeError for no outcome, a seed counted twice, or outcomes of another run, and
    CheckFailed for an accuracy that no weights can have.
    """
    if not outcomes or len({outcome.seed for outcome in outcomes}) != len(outcomes):
        raise SizeError(
            "a measurement joins at least one outcome and each seed once; these are seeds"
            f" {[outcome.seed for outcome in outcomes]}"
        )
    for outcome in outcomes:
        _of_the_run(run, outcome, outcomes[0].parameters)
    whole = run.canonical()
    task = run.trained
    correct = [outcome.correct for outcome in outcomes]
    check_trained(run.stack, task, correct, run.tested)
    budget = whole.to_json() | {
        "steps_done": [outcome.steps_done for outcome in outcomes],
        "stopped": [outcome.stopped for outcome in outcomes],
        "parameters": outcomes[0].parameters,
    }
    # these stand beside the budget in the record
    for beside in ("architecture", "task", "seed"):
        del budget[beside]
    return Measurement(
        architecture=whole.architecture,
        task=whole.task,
        seeds=tuple(outcome.seed for outcome in outcomes),
        correct=tuple(correct),
        total=run.tested,
        chance=str(task.chance),
        intervals=tuple(wilson(count, run.tested) for count in correct),
        budget=budget,
        longer=tuple(
            _longer(run, other, [outcome.longer[place] for outcome in outcomes])
            for place, other in enumerate(run.longer_tasks)
        ),
        repeats=repeats(task, drawn(run, outcomes)),
    )


def _of_the_run(run: Run, outcome: Outcome, parameters: int) -> None:
    """Raises SizeError where an outcome cannot be one of the run's."""
    counts = (outcome.correct, *outcome.longer)
    if (
        outcome.tested != (0 if outcome.diverged else run.tested)
        or len(outcome.longer) != len(run.longer)
        or not all(0 <= count <= outcome.tested for count in counts)
        or outcome.diverged != (outcome.stopped == "diverged")
        or not 1 <= outcome.steps_done <= run.steps
        or outcome.parameters != parameters
    ):
        raise SizeError(
            f"the outcome of seed {outcome.seed} is none of this run: {outcome.correct} right of"
            f" {outcome.tested}, {len(outcome.longer)} longer sizes, {outcome.steps_done} steps,"
            f" {outcome.parameters} parameters"
        )


def _longer(run: Run, task: Task, correct: list[int]) -> dict[str, Any]:
    check_trained(run.stack, task, correct, run.tested)
    return {
        "task": task.spec,
        "chance": str(task.chance),
        "correct": correct,
        "intervals": [list(wilson(count, run.tested)) for count in correct],
    }


def drawn(run: Run, outcomes: Sequence[Outcome]) -> int:
    """Prompts of the task itself that every seed that was tested has trained on, at least."""
    steps = [outcome.steps_done for outcome in outcomes if not outcome.diverged]
    # the stack may be of a mixer that is not imported here
    stages = read_stages(parse_task(run.task), run.curriculum)
    before = stages[-1].until if stages else 0
    return run.batch * max(0, min(steps, default=0) - before)
