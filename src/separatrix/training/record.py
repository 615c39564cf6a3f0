"""The record of several seeds of one run; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from separatrix.errors import SizeError, SpecError
from separatrix.evidence.canonical import json_object
from separatrix.evidence.records import Measurement
from separatrix.numbers.wilson import wilson
from separatrix.tasks import Task, parse_task
from separatrix.tasks.repeats import repeats
from separatrix.tasks.stages import read_stages
from separatrix.theory.trained import check_trained
from separatrix.training.run import Run

Status = Literal["done", "diverged"]
Stopped = Literal["solved", "plateau", "steps", "seconds", "diverged"]
"""What ended a training: the running accuracy, a loss without progress, one of the budgets, or
numbers that are no longer finite.
"""


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
        return asdict(self) | {"longer": list(self.longer)}

    @classmethod
    def from_json(cls, data: object) -> Outcome:
        """Inverse of `to_json`. Raises SpecError for missing, unknown or mistyped fields."""
        given = json_object(data)
        names = [f.name for f in fields(cls)]
        if given is None or set(given) != set(names):
            raise SpecError(f"an outcome is an object of JSON with the fields {', '.join(names)}")
        longer = given["longer"]
        counts = [given["seed"], given["correct"], given["tested"], given["steps_done"]]
        if (
            not isinstance(longer, list)
            or not all(type(n) is int and n >= 0 for n in (*counts, given["parameters"], *longer))
            or type(given["seconds"]) not in (int, float)
            or not 0 <= given["seconds"] < float("inf")
            or given["status"] not in get_args(Status)
            or given["stopped"] not in get_args(Stopped)
            or (given["status"] == "diverged") != (given["stopped"] == "diverged")
        ):
            raise SpecError(
                "an outcome holds a value of another type or range than its fields have"
            )
        return cls(**given | {"longer": tuple(longer), "seconds": float(given["seconds"])})


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
