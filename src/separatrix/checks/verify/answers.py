"""Checks what a measurement says of single answers, where several are due in a prompt or states
were rounded: that its numbers belong to the task, to each other and to the counts of prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.canonical import json_list
from separatrix.core.evidence.records import Measurement
from separatrix.core.numbers.wilson import wilson_of_answers
from separatrix.tasks import Task

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
    right, due = (_numbers(record, said, name, int) for name in COUNTS)
    correct = _numbers(record, said, "correct", int) if test.correct is None else test.correct
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
        _bits(_numbers(record, said, name, float), pairs, name)
    return pairs


def _numbers(record: Measurement, said: dict[str, Any], name: str, kind: type) -> list[Any]:
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
