"""Rows of a table as their models were tested at another size: on longer prompts than they were
trained on, or at the last places of a prompt alone.
"""

from __future__ import annotations

from dataclasses import replace

from separatrix.practice.table import Rate, Row, Trial
from separatrix.tasks.resized import resized


def at_size(row: Row, size: str, *, rate: float | None = None) -> Row:
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


def by_length(row: Row) -> dict[int, Row]:
    """Tokens of a prompt -> the row as tested there, the trained length first. That one counts the
    last places alone where these were tested; the rate that is best there stands for all lengths.
    """
    sizes = dict.fromkeys(one.size for trial in row.every for one in trial.longer)
    lengths = {size: resized(row.task, size).task.length for size in sizes}
    trained = row.task.length
    own = next((at_size(row, size) for size in sizes if lengths[size] == trained), row)
    longer = {
        lengths[size]: at_size(row, size, rate=own.best_rate)
        for size in sizes
        if lengths[size] != trained
    }
    return {trained: own} | dict(sorted(longer.items()))


def _at(trial: Trial, size: str) -> Trial:
    found = trial.at(size)
    if found is None:
        return replace(trial, correct=0, right=0, due=0, longer=())
    return replace(trial, correct=found.correct, right=found.right, due=found.due, longer=())
