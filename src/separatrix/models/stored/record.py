"""What the outcomes of a run's seeds say together, as a record; needs no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from separatrix.core.errors import SizeError
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.evidence.records import Measurement
from separatrix.core.numbers.wilson import wilson, wilson_of_answers
from separatrix.models.stored.run import Run
from separatrix.tasks import Task
from separatrix.tasks.resized import repeats

AFTER = ("steps_done", "stopped", "parameters")
"""What a record's budget says beside the run."""


def measured(run: Run, outcomes: Sequence[Outcome]) -> Measurement:
    """The record of a run's seeds, each with its own intervals; the run's own seed is not looked
    at. A seed that diverged keeps its place, with no answer right. No theorem is asked.

    Raises SizeError for no outcome, a seed counted twice, or outcomes of another run.
    """
    if not outcomes or len({outcome.seed for outcome in outcomes}) != len(outcomes):
        raise SizeError(
            "a measurement joins at least one outcome and each seed once; these are seeds"
            f" {str([outcome.seed for outcome in outcomes])[:60]}"
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
    budget = whole.to_json() | {
        "steps_done": [outcome.steps_done for outcome in outcomes],
        "stopped": [outcome.stopped for outcome in outcomes],
        "parameters": outcomes[0].parameters,
    }
    tested = [outcome.steps_done for outcome in outcomes if not outcome.diverged]
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
        longer=tuple(
            {
                "task": other.spec,
                "chance": str(other.chance),
                "correct": [outcome.longer[place] for outcome in outcomes],
                "intervals": [list(wilson(one.longer[place], run.tested)) for one in outcomes],
            }
            for place, other in enumerate(run.longer_tasks)
        ),
        repeats=repeats(task, run.drawn(tested)),
        answers=tuple(_answers(run, outcomes)) if says_answers(run) else (),
    )


class Test(NamedTuple):
    """What an outcome says of one test; of a seed that diverged, nothing but zeros."""

    task: Task
    place: int
    """0 of the task itself, else the place of the longer size."""
    correct: int
    """Prompts right as a whole."""
    right: int
    """Answers right."""
    due: int
    bits: float | None = None
    """Mean of -log2 p of the right answers."""
    format: str = ""
    """What states were rounded to; "" where they were not."""


def tests(run: Run, outcome: Outcome) -> list[Test]:
    """Of the task itself, of longer sizes, and with rounded states, in this order."""
    task = run.trained
    found = [Test(task, 0, outcome.correct, *outcome.answers, outcome.bits)]
    counts = zip(outcome.longer, outcome.longer_right, outcome.longer_due, strict=True)
    for place, (other, told) in enumerate(zip(run.longer_tasks, counts, strict=True), 1):
        found.append(Test(other, place, *told))
    if outcome.diverged:
        return found + [Test(task, 0, 0, 0, 0, 0.0, name) for name in run.formats]
    return found + [
        Test(task, 0, one.correct, one.right, one.due, one.bits, one.format)
        for one in outcome.formats
    ]


def says_answers(run: Run) -> bool:
    """Whether records of a run say something of single answers: not where each prompt has one and
    none was asked with rounded states.
    """
    return run.trained.several or bool(run.formats)


def _answers(run: Run, outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    """What records say of each test, seed by seed."""
    for several in zip(*(tests(run, outcome) for outcome in outcomes), strict=True):
        test = several[0]
        said: dict[str, Any] = {
            "task": test.task.spec,
            "right": [one.right for one in several],
            "due": [one.due for one in several],
            "intervals": [
                list(wilson_of_answers(one.right, one.due, run.tested)) for one in several
            ],
        }
        if test.bits is not None:
            said["bits"] = [one.bits for one in several]
        if test.format:
            said |= {"format": test.format, "correct": [one.correct for one in several]}
        elif not test.place:
            said["bits_squares"] = [outcome.bits_squares for outcome in outcomes]
        yield said


def _of_the_run(run: Run, outcome: Outcome, parameters: int) -> bool:
    """Whether an outcome, its counts of single answers among it, can be one of the run's."""
    formats = tuple(each.format for each in outcome.formats)
    larger = (outcome.longer, outcome.longer_right, outcome.longer_due)
    return (
        outcome.possible
        and outcome.seed < 1 << 63
        and outcome.tested == (0 if outcome.diverged else run.tested)
        and all(len(counts) == len(run.longer) for counts in larger)
        and outcome.rule == run.rule
        and outcome.steps_done <= run.steps
        and outcome.parameters == parameters
        and formats == (() if outcome.diverged else run.formats)
    )
