"""Trained stacks of one size side by side: a table for each task, a line for each stack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from separatrix.cli.report.charts import ceiling_of, share_text
from separatrix.cli.report.view import Cell, View, task_size
from separatrix.core.evidence.records import Measurement
from separatrix.core.numbers.accuracy import WHOLE, percent


@dataclass(frozen=True)
class Reached:
    """What training reached at one size."""

    median: str
    solved: str
    highest: str
    """What no weights exceed, where that is less than everything."""


@dataclass(frozen=True)
class Side:
    """A task: its sizes, and each stack with what it reached at them (None where not trained)."""

    column: dict[str, str]
    sizes: list[int]
    lines: list[tuple[Cell, list[Reached | None]]]


def side_by_side(view: View) -> Iterator[Side]:
    """Every task of which something was trained, its stacks in the order of the table."""
    for column in view.columns:
        cells = [view.cells[row["key"], column["key"]] for row in view.rows]
        by_size = [{task_size(m.task): m for m in cell.own} for cell in cells]
        sizes = sorted(set().union(*by_size))
        if sizes:
            lines = [
                (cell, [_reached(own[n]) if n in own else None for n in sizes])
                for cell, own in zip(cells, by_size, strict=True)
            ]
            yield Side(column, sizes, lines)


def _reached(measured: Measurement) -> Reached:
    ceiling = ceiling_of(measured)
    bounded = ceiling is not None and ceiling.at_most < WHOLE
    return Reached(
        median=share_text(median(measured.correct) / measured.total),
        solved=f"{measured.solved} of {len(measured.seeds)}",
        highest=percent(ceiling.at_most) if ceiling is not None and bounded else "",
    )
