"""Rows in words: what findings of several experiments say of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from separatrix.experiments.showing import share
from separatrix.numbers.amounts import format_share
from separatrix.practice.table import Row


def listed(names: Sequence[str]) -> str:
    """ "a, b and c", each once. Raises ValueError for none."""
    *first, last = dict.fromkeys(names)
    return f"{', '.join(first)} and {last}" if first else last


def percent(share: Fraction) -> str:
    """As tables have it: rounded down, so that what is not all is never said to be."""
    return format_share(share.numerator, share.denominator)


def solved_said(row: Row) -> str:
    return f"{row.solved} of {len(row.trials)} seeds"


def seeds_of(row: Row) -> tuple[float, ...]:
    """The accuracies of the seeds at the best rate, in their order."""
    return tuple(float(trial.accuracy) for trial in row.trials)


def ahead(one: Row, other: Row) -> bool:
    """Whether every seed of the one is more accurate than every seed of the other, at the best
    rate of each.
    """
    return one.least > other.most


def median_said(row: Row | None) -> str:
    """A row's median for a table; nothing where there is no row."""
    return "" if row is None else share(row.median)


def full_layers(row: Row) -> str:
    """ "2 full layers", by the row's label."""
    count = row.labels["full"]
    return f"{count} full layer{'' if count == 1 else 's'}"
