"""Rows of a table as they were tested at another size, and their seeds in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from separatrix.practice.table import Rate, Row, Trial


def tested_at(row: Row, size: str, *, rate: float | None = None) -> Row:
    """The row with what its models gave at a longer size in place of what they gave at their own;
    with `rate`, at that learning rate alone, so that longer prompts choose nothing.

    Of a seed that was not tested there no answer counts as right.
    """
    rates = tuple(
        Rate(
            learning_rate=one.learning_rate,
            trials=tuple(_at(trial, size) for trial in one.trials),
        )
        for one in row.rates
        if rate is None or one.learning_rate == rate
    )
    return replace(row, rates=rates)


def _at(trial: Trial, size: str) -> Trial:
    found = trial.at(size)
    if found is None:
        return replace(trial, correct=0, right=0, due=0, longer=())
    return replace(trial, correct=found.correct, right=found.right, due=found.due, longer=())


def seeds_of(row: Row) -> tuple[float, ...]:
    """The accuracies of the seeds at the best rate, in their order."""
    return tuple(float(trial.accuracy) for trial in row.trials)


def listed(names: Sequence[str]) -> str:
    """ "a, b and c"."""
    *first, last = dict.fromkeys(names)
    return f"{', '.join(first)} and {last}" if first else last
