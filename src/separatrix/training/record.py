"""The record of several seeds of one run; needs no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
        if not _of_the_run(run, outcome, outcomes[0].parameters):
            raise SizeError(
                f"the outcome of seed {outcome.seed} is none of this run: {outcome.correct} right"
                f" of {outcome.tested}, {len(outcome.longer)} longer sizes, {outcome.steps_done}"
                f" steps, {outcome.parameters} parameters"
            )
    whole = run.canonical()
    task = run.trained
    check_answers(run.stack, task, [outcome.answers for outcome in outcomes], run.tested)
    budget = whole.to_json() | {
        "steps_done": [outcome.steps_done for outcome in outcomes],
        "stopped": [outcome.stopped for outcome in outcomes],
        "parameters": outcomes[0].parameters,
    }
    longer: list[dict[str, Any]] = []
    for place, other in enumerate(run.longer_tasks):
        pairs = [outcome.longer_answers(place) for outcome in outcomes]
        check_answers(run.stack, other, pairs, run.tested)
        own = {"task": other.spec, "chance": str(other.chance)}
        longer.append(own | _counts([outcome.longer[place] for outcome in outcomes], run.tested))
    return Measurement(
        architecture=whole.architecture,
        task=whole.task,
        seeds=tuple(outcome.seed for outcome in outcomes),
        correct=tuple(outcome.correct for outcome in outcomes),
        total=run.tested,
        chance=str(task.chance),
        intervals=tuple(wilson(outcome.correct, run.tested) for outcome in outcomes),
        # what stands beside the budget in the record is none of it
        budget={k: budget[k] for k in budget if k not in ("architecture", "task", "seed")},
        longer=tuple(longer),
        repeats=repeats(task, drawn(run, [one.steps_done for one in outcomes if not one.diverged])),
        answers=tuple(_answers(run, outcomes)),
    )


def _counts(correct: list[int], total: int) -> dict[str, Any]:
    return {"correct": correct, "intervals": [list(wilson(count, total)) for count in correct]}


def _answers(run: Run, outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    """What the record says of single answers: nothing where each prompt has one and none was asked
    with rounded states.
    """
    task = run.trained
    if not (task.several or run.formats):
        return
    yield _said(run, task, [(one.right, one.due) for one in outcomes]) | {
        "bits": [one.bits for one in outcomes],
        "bits_squares": [one.bits_squares for one in outcomes],
    }
    for place, other in enumerate(run.longer_tasks):
        yield _said(
            run, other, [(one.longer_right[place], one.longer_due[place]) for one in outcomes]
        )
    for place, name in enumerate(run.formats):
        nothing = FormatOutcome(format=name, correct=0, right=0, due=0, bits=0.0)
        rounded = [nothing if one.diverged else one.formats[place] for one in outcomes]
        yield _said(run, task, [(one.right, one.due) for one in rounded]) | {
            "format": name,
            "correct": [one.correct for one in rounded],
            "bits": [one.bits for one in rounded],
        }


def _said(run: Run, task: Task, pairs: list[tuple[int, int]]) -> dict[str, Any]:
    check_answers(run.stack, task, pairs, run.tested)
    return {
        "task": task.spec,
        "right": [right for right, _ in pairs],
        "due": [due for _, due in pairs],
        "intervals": [list(wilson_of_answers(*pair, run.tested)) for pair in pairs],
    }


def _of_the_run(run: Run, outcome: Outcome, parameters: int) -> bool:
    """Whether an outcome, its counts of single answers among it, can be one of the run's."""
    formats = tuple(each.format for each in outcome.formats)
    larger = (outcome.longer, outcome.longer_right, outcome.longer_due)
    return (
        outcome.possible
        and outcome.tested == (0 if outcome.diverged else run.tested)
        and all(len(counts) == len(run.longer) for counts in larger)
        and outcome.rule == run.rule
        and outcome.steps_done <= run.steps
        and outcome.parameters == parameters
        and formats == (() if outcome.diverged else run.formats)
    )


def drawn(run: Run, steps: Sequence[int]) -> int:
    """Prompts of the task itself that every seed that was tested has trained on, at least, from the
    steps of each.
    """
    # the stack may be of a mixer that is not imported here
    stages = read_stages(parse_task(run.task), run.curriculum)
    before = stages[-1].until if stages else 0
    return run.batch * max(0, min(steps, default=0) - before)
