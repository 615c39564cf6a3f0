"""The record of several seeds of one run; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from separatrix.architecture import Architecture
from separatrix.errors import SizeError
from separatrix.evidence.records import Measurement
from separatrix.numbers.wilson import wilson
from separatrix.tasks import parse_task
from separatrix.theory.trained import check_trained
from separatrix.training.run import Run

Status = Literal["done", "diverged"]
Stopped = Literal["solved", "plateau", "steps", "seconds", "diverged"]
"""What ended a training: the running accuracy, a loss without progress, one of the budgets, or
numbers that are no longer finite.
"""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one seed gave."""

    seed: int
    status: Status = "done"
    stopped: Stopped = "steps"
    correct: int
    tested: int = 2048
    longer: tuple[int, ...] = ()
    """Right answers at each of the run's longer sizes."""
    steps_done: int
    parameters: int
    seconds: float = 0.0
    """What its training took of the pack's time."""


_BUDGET = (
    "steps",
    "batch",
    "learning_rate",
    "width",
    "hidden",
    "weight_decay",
    "tested",
    "stop_at",
)


def measurement(
    architecture: str,
    task: str,
    training: dict[str, Any],
    outcomes: Sequence[Outcome],
) -> Measurement:
    """The record of a run's seeds, each with its own interval. Raises SizeError for no outcome or
    a seed counted twice, and CheckFailed for an accuracy that no weights can have.
    """
    if not outcomes or len({outcome.seed for outcome in outcomes}) != len(outcomes):
        raise SizeError(
            "a measurement joins at least one outcome and each seed once; these are seeds"
            f" {[o.seed for o in outcomes]}"
        )
    run = Run(architecture=architecture, task=task, seed=0, **training)
    parsed = parse_task(task)
    stack = Architecture.parse(architecture)
    check_trained(stack, parsed, [outcome.correct for outcome in outcomes], run.tested)
    budget: dict[str, Any] = {name: getattr(run, name) for name in _BUDGET} | {
        "optimiser": "AdamW",
        "steps_done": [o.steps_done for o in outcomes],
        "parameters": outcomes[0].parameters,
    }
    return Measurement(
        architecture=stack.spec,
        task=parsed.spec,
        seeds=tuple(outcome.seed for outcome in outcomes),
        correct=tuple(outcome.correct for outcome in outcomes),
        total=run.tested,
        chance=str(parsed.chance),
        intervals=tuple(wilson(outcome.correct, run.tested) for outcome in outcomes),
        budget=budget,
    )
