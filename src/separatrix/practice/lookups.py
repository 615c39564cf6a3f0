"""Rows of recorded tables by the labels that say what a stack is like: what the readers of single
experiments share.
"""

from __future__ import annotations

from collections.abc import Iterable

from separatrix.practice.table import Label, Row, read

NONE = "none"
"""The label of a mechanism where a stack has no bounded layers."""


def rows_of(experiment: str, **labels: Label) -> list[Row]:
    """The rows of an experiment with these labels that have a seed; none where the package holds no
    results of it.
    """
    table = read(experiment)
    return [] if table is None else [row for row in table.where(**labels) if row.trials]


def values_of(experiment: str, label: str) -> list[Label]:
    """What a label takes in an experiment, in the order of its rows."""
    table = read(experiment)
    return [] if table is None else table.values(label)


def best_of(rows: Iterable[Row]) -> Row:
    """Of rows that differ in how they were trained, the one with the highest median; of equals the
    first.
    """
    return max(rows, key=lambda row: row.median)


def by_label(rows: Iterable[Row], label: str) -> dict[int, Row]:
    """The best row for each value of a label that counts something."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        value = row.labels.get(label)
        if isinstance(value, int):
            found.setdefault(value, []).append(row)
    return {value: best_of(alike) for value, alike in sorted(found.items())}
