"""Runs of a store for a terminal: lists of many, without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from separatrix.core.document.cells import NONE, accuracy, duration

if TYPE_CHECKING:
    from separatrix.training.sweeps.reading import Listed

SHORT_KEY = 10
"""Letters of a key that are shown; `runs show` takes them."""
_LEAST_TEXT = 12
"""Columns that a long stack or task keeps in a narrow terminal."""


def listing(rows: Sequence[Listed], most: int) -> list[str]:
    """Rows under headings, of at most `most` columns where that leaves stacks and tasks legible.

    Written for lists of 100,000: no cell is broken into lines, long ones are cut.
    """
    sweeps = len({row.sweep for row in rows}) > 1
    columns = {
        "run": [row.key[:SHORT_KEY] for row in rows],
        **({"sweep": [row.sweep for row in rows]} if sweeps else {}),
        "architecture": [row.architecture for row in rows],
        "task": [row.task for row in rows],
        "seed": [str(row.seed) for row in rows],
        "rate": [f"{row.learning_rate:g}" for row in rows],
        "status": [row.status for row in rows],
        "step": [f"{row.step}/{row.steps}" for row in rows],
        "accuracy": [accuracy(row.right, row.due) for row in rows],
        "time": [duration(row.seconds) if row.seconds else NONE for row in rows],
    }
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns.items()}
    _shorten(widths, most, [name for name in ("sweep", "architecture", "task") if name in widths])
    columns = {name: _cut(cells, widths[name]) for name, cells in columns.items()}
    form = "  ".join(f"%-{width}s" for width in widths.values())
    lines = [form % tuple(columns)]
    lines += [form % cells for cells in zip(*columns.values(), strict=True)]
    return [line.rstrip() for line in lines]


def _cut(cells: Sequence[str], width: int) -> Sequence[str]:
    """Cells of at most some letters; what is cut ends in two dots."""
    return [cell if len(cell) <= width else f"{cell[: width - 2]}.." for cell in cells]


def _shorten(widths: dict[str, int], most: int, names: Sequence[str]) -> None:
    """Takes what is too wide from the widest of some columns."""
    over = sum(widths.values()) + 2 * (len(widths) - 1) - most
    while over > 0:
        widest = max(names, key=lambda name: widths[name])
        if widths[widest] <= _LEAST_TEXT:
            return
        widths[widest] -= 1
        over -= 1


def counted(counts: Mapping[str, int]) -> str:
    """How many runs there are: "12 runs: 10 done, 2 failed"."""
    total = sum(counts.values())
    parts = ", ".join(f"{number:,} {status}" for status, number in counts.items())
    if not total:
        return "no runs"
    return f"{total:,} run{'s' if total > 1 else ''}: {parts}"
