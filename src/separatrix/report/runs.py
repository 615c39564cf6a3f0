"""Runs of a store for a terminal: lists of many, and one with its curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from separatrix.numbers.amounts import format_share
from separatrix.progress import clock

if TYPE_CHECKING:
    from separatrix.sweeps.reading import Listed

SHORT_KEY = 10
"""Letters of a key that are shown; `runs show` takes them."""
_LEAST_TEXT = 12
"""Columns that a long stack or task keeps in a narrow terminal."""
NONE = "-"


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


def accuracy(right: int | None, due: int | None) -> str:
    """What was not tested has none."""
    return format_share(right, due) if right is not None and due else NONE


def guessed(chance: Fraction) -> str:
    """What guessing gives, to the nearest tenth: rounded down it would flatter models."""
    return f"{100 * float(chance):.1f} %"


def ends(low: str, high: str) -> tuple[str, str]:
    """The ends of an interval of shares, in percent with one decimal, rounded outward."""
    tenth = Decimal("0.1")
    lower = (100 * Decimal(low)).quantize(tenth, ROUND_FLOOR)
    upper = (100 * Decimal(high)).quantize(tenth, ROUND_CEILING)
    return str(lower), str(upper)


def duration(seconds: float) -> str:
    """ "0.4 s", "59 s", "3:12" (minutes), "2:03:12" (hours)."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return clock(seconds)


def moment(seconds: float | None) -> str:
    """Seconds since 1970 as a date and a time of the day, UTC."""
    if seconds is None:
        return NONE
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
