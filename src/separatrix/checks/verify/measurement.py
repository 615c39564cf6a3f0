"""Checks a measurement: that its counts, interval, chance and budget belong together, and that no
theorem rules its accuracy out. The training itself is not run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

from separatrix.checks.verify.same import told_by
from separatrix.checks.verify.training_budget import MOST, Trained, read_budget
from separatrix.core.errors import EvidenceError, first_line
from separatrix.core.evidence.canonical import json_list
from separatrix.core.evidence.records import Measurement
from separatrix.core.numbers.accuracy import WHOLE, percent
from separatrix.core.numbers.wilson import wilson, wilson_of_answers
from separatrix.models.model import parameter_count, trained_config
from separatrix.tasks import Task
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


COUNTS = ("right", "due")
BITS = {"task": ("bits", "bits_squares"), "longer": (), "format": ("bits",)}
"""Means of -log2 p that are said of each kind of test."""
ROUNDING = 1e-5
"""Largest rounding of a mean of float32 numbers of a few bits."""


class Test(NamedTuple):
    """A test of every seed."""

    task: Task
    kind: str
    """A key of `BITS`."""
    format: str
    """What states were rounded to; "" where they were not."""
    correct: Sequence[int] | None = None
    """Prompts right, by seed; None where they are said beside the answers."""


def check_answers_said(
    record: Measurement, tests: Sequence[Test], diverged: Sequence[int]
) -> list[tuple[Task, list[tuple[int, int]]]]:
    """Answers right and due of each seed, for every test of which single answers are said.

    Raises EvidenceError where what is said does not belong to the tests.
    """
    if not record.answers and not any(test.format for test in tests):
        return []
    if len(record.answers) != len(tests):
        raise EvidenceError(
            f"single answers of {len(record.answers)} tests are said; the budget has {len(tests)}"
        )
    return [
        (test.task, _one(record, said, test, diverged))
        for said, test in zip(record.answers, tests, strict=True)
    ]


def _one(
    record: Measurement, said: dict[str, Any], test: Test, diverged: Sequence[int]
) -> list[tuple[int, int]]:
    own = ("format", "correct") if test.format else ()
    names = {"task", *own, *COUNTS, "intervals", *BITS[test.kind]}
    if set(said) != names or said["task"] != test.task.spec:
        raise EvidenceError(
            f"of the answers to {test.task.spec} is said {', '.join(sorted(names))}, no more"
        )
    if test.format and said["format"] != test.format:
        raise EvidenceError(
            f"the states of this test are said to be rounded to {str(said['format'])[:40]!r}, not"
            f" {test.format}"
        )
    right, due = (_each(record, said, name, int) for name in COUNTS)
    correct = _each(record, said, "correct", int) if test.correct is None else test.correct
    for place, counts in enumerate(zip(right, due, correct, strict=True)):
        if place in diverged:
            if any(counts):
                raise EvidenceError("a seed that diverged was not tested: no answer was due")
        elif not _possible(*counts, record.total, test.task):
            raise EvidenceError(
                f"{counts[0]:,} of {counts[1]:,} answers right in {record.total:,} prompts of"
                f" {test.task.spec}, {counts[2]:,} of them wholly, is impossible"
            )
    pairs = list(zip(right, due, strict=True))
    intervals = json_list(said["intervals"])
    if intervals != [list(wilson_of_answers(*pair, record.total)) for pair in pairs]:
        raise EvidenceError(
            f"intervals {str(intervals)[:60]} are not the 95 % Wilson intervals of answers right,"
            " with prompts as what is counted"
        )
    for name in BITS[test.kind]:
        _bits(_each(record, said, name, float), pairs, name)
    return pairs


def _each(record: Measurement, said: dict[str, Any], name: str, kind: type) -> list[Any]:
    found = json_list(said[name])
    if (
        found is None
        or len(found) != len(record.seeds)
        or not all(type(value) is kind and isfinite(value) and value >= 0 for value in found)
    ):
        raise EvidenceError(
            f"{name} {str(said[name])[:60]} is not one number of at least 0 for each seed"
        )
    return found


def _possible(right: int, due: int, correct: int, total: int, task: Task) -> bool:
    """Whether counts of answers fit a count of prompts: a prompt that is not right as a whole has a
    wrong answer at least.
    """
    most = total * (task.length if task.several else 1)
    wrong = due - right
    return (
        right <= due <= most
        and (task.several or due == total)
        and 0 <= total - correct <= wrong
        and (wrong == 0 or correct < total)
    )


def _bits(bits: list[float], pairs: list[tuple[int, int]], name: str) -> None:
    """Raises EvidenceError where there is too little: the right answer to a question answered
    wrongly has a probability of 1/2 at most, a bit or more.
    """
    for value, (right, due) in zip(bits, pairs, strict=True):
        if name == "bits" and value * due + ROUNDING * due < due - right:
            raise EvidenceError(
                f"{value:g} bits an answer are too few where {due - right:,} of {due:,} answers are"
                " wrong"
            )


def verify_measurement(record: Measurement) -> list[str]:
    """What was checked, in sentences. Raises EvidenceError when the parts contradict each other, or
    no weights can have the accuracy.
    """
    architecture, task = told_by(record)
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
