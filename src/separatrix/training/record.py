"""The record of several seeds of one run; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from separatrix.core.errors import SizeError
from separatrix.core.evidence.outcome import FormatOutcome, Outcome
from separatrix.core.evidence.records import Measurement
from separatrix.core.numbers.wilson import wilson, wilson_of_answers
from separatrix.tasks import Task, parse_task
from separatrix.tasks.resized import read_stages, repeats
from separatrix.theory.fails.a_accuracy import check_answers
from separatrix.training.run import Run


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
    check_answers(run.stack, task, [outcome.answers for outcome in outcomes], run.tested)
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
            _longer(run, other, place, outcomes) for place, other in enumerate(run.longer_tasks)
        ),
        repeats=repeats(task, drawn(run, [one.steps_done for one in outcomes if not one.diverged])),
        answers=_answers(run, outcomes),
    )


def _answers(run: Run, outcomes: Sequence[Outcome]) -> tuple[dict[str, Any], ...]:
    """What the record says of single answers: nothing where each prompt has one and none was asked
    with rounded states, and nothing of outcomes of earlier versions.
    """
    task = run.trained
    if not (task.several or run.formats) or not all(
        outcome.due or outcome.diverged for outcome in outcomes
    ):
        return ()
    found: list[dict[str, Any]] = [
        _said(run, task, [(outcome.right, outcome.due) for outcome in outcomes])
        | {
            "bits": [outcome.bits for outcome in outcomes],
            "bits_squares": [outcome.bits_squares for outcome in outcomes],
        }
    ]
    for place, other in enumerate(run.longer_tasks):
        pairs = [(each.longer_right[place], each.longer_due[place]) for each in outcomes]
        found.append(_said(run, other, pairs))
    for place, name in enumerate(run.formats):
        nothing = FormatOutcome(format=name, correct=0, right=0, due=0, bits=0.0)
        rounded = [nothing if each.diverged else each.formats[place] for each in outcomes]
        found.append(
            _said(run, task, [(each.right, each.due) for each in rounded])
            | {
                "format": name,
                "correct": [each.correct for each in rounded],
                "bits": [each.bits for each in rounded],
            }
        )
    return tuple(found)


def _said(run: Run, task: Task, pairs: list[tuple[int, int]]) -> dict[str, Any]:
    check_answers(run.stack, task, pairs, run.tested)
    return {
        "task": task.spec,
        "right": [right for right, _ in pairs],
        "due": [due for _, due in pairs],
        "intervals": [list(wilson_of_answers(*pair, run.tested)) for pair in pairs],
    }


def _of_the_run(run: Run, outcome: Outcome, parameters: int) -> None:
    """Raises SizeError where an outcome cannot be one of the run's."""
    counts = (outcome.correct, *outcome.longer, *(each.correct for each in outcome.formats))
    if (
        outcome.tested != (0 if outcome.diverged else run.tested)
        or len(outcome.longer) != len(run.longer)
        or not all(0 <= count <= outcome.tested for count in counts)
        or outcome.diverged != (outcome.stopped == "diverged")
        or outcome.rule != run.rule
        or not 1 <= outcome.steps_done <= run.steps
        or outcome.parameters != parameters
        or (outcome.due and not _counted(run, outcome))
    ):
        raise SizeError(
            f"the outcome of seed {outcome.seed} is none of this run: {outcome.correct} right of"
            f" {outcome.tested}, {len(outcome.longer)} longer sizes, {outcome.steps_done} steps,"
            f" {outcome.parameters} parameters"
        )


def _counted(run: Run, outcome: Outcome) -> bool:
    """Whether an outcome's counts of single answers can be those of the run."""
    pairs = [
        (outcome.right, outcome.due),
        *zip(outcome.longer_right, outcome.longer_due, strict=False),
        *((each.right, each.due) for each in outcome.formats),
    ]
    return (
        len(outcome.longer_right) == len(outcome.longer_due) == len(run.longer)
        and tuple(each.format for each in outcome.formats) == run.formats
        and all(0 <= right <= due for right, due in pairs)
    )


def _longer(run: Run, task: Task, place: int, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    pairs = [outcome.longer_answers(place) for outcome in outcomes]
    check_answers(run.stack, task, pairs, run.tested)
    correct = [outcome.longer[place] for outcome in outcomes]
    return {
        "task": task.spec,
        "chance": str(task.chance),
        "correct": correct,
        "intervals": [list(wilson(count, run.tested)) for count in correct],
    }


def drawn(run: Run, steps: Sequence[int]) -> int:
    """Prompts of the task itself that every seed that was tested has trained on, at least, from the
    steps of each.
    """
    # the stack may be of a mixer that is not imported here
    stages = read_stages(parse_task(run.task), run.curriculum)
    before = stages[-1].until if stages else 0
    return run.batch * max(0, min(steps, default=0) - before)
