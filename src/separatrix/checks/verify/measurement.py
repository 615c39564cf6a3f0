"""Checks a measurement: that its counts, interval, chance and budget belong together, and that no
theorem rules its accuracy out. The training itself is not run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from separatrix.checks.verify.answers import Test, check_answers_said
from separatrix.checks.verify.training_budget import MOST, Trained, read_budget
from separatrix.core.errors import EvidenceError, first_line
from separatrix.core.evidence.canonical import json_list
from separatrix.core.evidence.records import Measurement
from separatrix.core.numbers.accuracy import WHOLE, percent
from separatrix.core.numbers.wilson import wilson, wilson_of_answers
from separatrix.models.model import parameter_count, trained_config
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task
from separatrix.tasks.resized import repeats
from separatrix.theory.fails.a_accuracy import Ceiling, check_answers, check_trained

NOT_RUN = (
    "not checked: how many test prompts the trained model answered; the training was not run again"
    " (measured, not proved)"
)
FORGOTTEN = 0.1
"""What a test may fall short of the accuracy that ended training: 0.034 at most in 346 runs."""
_LONGER = {"task", "chance", "correct", "intervals"}
"""What is said of each longer size."""


def verify_measurement(record: Measurement) -> list[str]:
    """What was checked, in sentences. Raises EvidenceError when the parts contradict each other, or
    no weights can have the accuracy.
    """
    architecture = Architecture.parse(record.architecture)
    if architecture.spec != record.architecture:
        raise EvidenceError(
            f"architecture '{record.architecture}' is not in canonical form; the file was edited"
        )
    task = parse_task(record.task)
    if task.spec != record.task:
        raise EvidenceError(f"task '{record.task}' is not in canonical form; the file was edited")
    if str(task.chance) != record.chance:
        raise EvidenceError(f"chance is {record.chance}, but the task's is {task.chance}")
    if (
        not record.seeds
        or len(record.seeds) != len(record.correct)
        or len(set(record.seeds)) != len(record.seeds)
    ):
        raise EvidenceError(
            f"{len(record.seeds)} seeds and {len(record.correct)} counts: need one count for each"
            " different seed"
        )
    if not all(0 <= seed < 1 << 63 for seed in record.seeds):
        raise EvidenceError(f"seeds {str(record.seeds)[:60]} do not all lie between 0 and 2^63")
    counted(record)
    if record.confidence != "0.95":
        raise EvidenceError("a measurement has 95 % intervals, and no others")
    _counts(record, record.correct, [list(interval) for interval in record.intervals], ())
    trained = read_budget(record, task)
    _same_parameters(record, task, trained.length)
    ceilings = [(task, check_trained(architecture, task, record.correct, record.total))]
    tests = [Test(task, "task", "", record.correct)]
    for other, said in zip(trained.longer, _longer(record, trained), strict=True):
        ceilings.append((other, check_trained(architecture, other, said, record.total)))
        tests.append(Test(other, "longer", "", said))
    tests += [Test(task, "format", name) for name in trained.formats]
    answered = check_answers_said(record, tests, trained.diverged)
    for asked, answers in answered:
        check_answers(architecture, asked, answers, record.total)
    _solved(record, trained, answered[0][1] if answered else None)
    if record.repeats != repeats(task, trained.drawn):
        raise EvidenceError("what it says of prompts drawn twice does not follow from its budget")
    return [
        "counts, chance level, Wilson intervals and the model's parameters belong together",
        *(
            _ceiling_said(ceiling, "" if place == 0 else f" on {other.spec}")
            for place, (other, ceiling) in enumerate(ceilings)
            if ceiling is not None and ceiling.at_most != WHOLE
        ),
        *_diverged_said(record, trained),
        *([record.repeats] if record.repeats else []),
        # nothing else here can tell: a model may be said to solve what it is proved to fail
        NOT_RUN,
    ]


def counted(record: Measurement) -> None:
    """Raises EvidenceError for a number of tests that no measurement has."""
    if not 1 <= record.total <= MOST:
        raise EvidenceError(f"{str(record.total)[:40]} tests; a measurement has 1 to 10^12")


def _counts(
    record: Measurement, correct: Sequence[int], intervals: Sequence[Any], diverged: Sequence[int]
) -> None:
    """Raises EvidenceError unless counts are those of the seeds and have their intervals."""
    if len(correct) != len(record.seeds) or not all(
        type(count) is int and 0 <= count <= record.total for count in correct
    ):
        raise EvidenceError(
            f"counts {str(list(correct))[:60]} are not one for each seed between 0 and"
            f" {record.total}"
        )
    if any(correct[place] for place in diverged):
        raise EvidenceError("a seed that diverged was not tested: none of its answers is right")
    if len(intervals) != len(correct):
        raise EvidenceError("a measurement has a 95 % interval for each seed")
    for count, interval in zip(correct, intervals, strict=True):
        if interval != list(wilson(count, record.total)):
            raise EvidenceError(
                f"interval {str(interval)[:60]} is not the 95 % Wilson interval of {count} right of"
                f" {record.total}"
            )


def _solved(
    record: Measurement, trained: Trained, answers: Sequence[tuple[int, int]] | None
) -> None:
    """Raises EvidenceError where a seed whose training ended as solved is right much less often in
    its test, of `answers` (right, due) or of prompts.
    """
    least = float(record.budget["stop_at"]) - FORGOTTEN
    for place, why in enumerate(trained.stopped):
        right, due = answers[place] if answers else (record.correct[place], record.total)
        if why == "solved" and float(wilson_of_answers(right, due, record.total)[1]) < least:
            raise EvidenceError(
                f"seed {record.seeds[place]} is said to have ended as 'solved', right on"
                f" {record.budget['stop_at']:.1%} of what it trained on last, and {right:,} of"
                f" {due:,} answers of its test are right: these contradict each other"
            )


def _longer(record: Measurement, trained: Trained) -> list[list[int]]:
    """Right answers at each longer size. Raises EvidenceError where what is said of one does not
    belong to it.
    """
    if len(record.longer) != len(trained.longer):
        raise EvidenceError(
            f"{len(record.longer)} longer sizes are said to be measured; the budget has"
            f" {len(trained.longer)}"
        )
    found: list[list[int]] = []
    for said, task in zip(record.longer, trained.longer, strict=True):
        counts = json_list(said.get("correct"))
        intervals = json_list(said.get("intervals"))
        if set(said) != _LONGER or counts is None or intervals is None:
            raise EvidenceError(f"of a longer size is said {', '.join(sorted(_LONGER))}, no more")
        if said["task"] != task.spec or said["chance"] != str(task.chance):
            raise EvidenceError(
                f"the longer size is {task.spec} with chance {task.chance}, not"
                f" {str(said['task'])[:60]!r} with {str(said['chance'])[:40]!r}"
            )
        _counts(record, counts, intervals, trained.diverged)
        found.append(counts)
    return found


def _ceiling_said(ceiling: Ceiling, where: str) -> str:
    return (
        f"no seed is right so often{where} that no weights could be: Theorem A allows"
        f" {percent(ceiling.at_most)} of random questions"
    )


def _diverged_said(record: Measurement, trained: Trained) -> list[str]:
    if not trained.diverged:
        return []
    seeds = ", ".join(str(record.seeds[place]) for place in trained.diverged)
    return [
        f"{len(trained.diverged)} of {len(record.seeds)} seeds diverged and count with no answer"
        f" right: {seeds}"
    ]


def count_parameters(record: Measurement, task: Task) -> None:
    """Raises EvidenceError unless the model trained has as many parameters as the budget says."""
    _same_parameters(record, task, read_budget(record, task).length)


def _same_parameters(record: Measurement, task: Task, length: int) -> None:
    config = trained_config(
        record.architecture,
        task,
        width=record.budget["width"],
        hidden=record.budget["hidden"],
        length=length,
    )
    try:
        found = parameter_count(config)
    except (RuntimeError, OverflowError) as error:
        raise EvidenceError(f"the model trained cannot be built: {first_line(error)}") from None
    if found != record.budget["parameters"]:
        raise EvidenceError(
            f"the model trained has {found:,} parameters; the budget says"
            f" {record.budget['parameters']:,}"
        )
