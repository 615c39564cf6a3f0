"""The results of `depth`: steps of composition against the number of full layers."""

from __future__ import annotations

from separatrix.practice.lookups import NONE, by_label, rows_of
from separatrix.practice.shape import Shape
from separatrix.practice.table import Row
from separatrix.practice.words import enough

_MOST_FULL = 64
"""No experiment trains stacks with more full layers."""


def composed(full: int, beside: str, mechanism: str | None) -> dict[int, Row]:
    """Steps -> what stacks with so many full layers gave, their other layers of that mechanism
    (None for none) and standing where `beside` says; of several numbers of them the largest.
    """
    rows = rows_of("depth", full=full, where=beside, mechanism=mechanism or NONE)
    most = max((_recurrent(row) for row in rows), default=0)
    return by_label((row for row in rows if _recurrent(row) == most), "steps")


def composed_like(shape: Shape) -> tuple[int, dict[int, Row]] | None:
    """The largest number of full layers, up to a shape's own, with which stacks laid out as it is
    were trained, and what they gave by steps; None where none were, or the bounded layers are of
    several kinds.
    """
    if len(shape.kinds) > 1:
        return None
    for full in range(min(shape.full, _MOST_FULL), 0, -1):
        rows = composed(full, shape.beside, shape.kind)
        known = {steps: row for steps, row in rows.items() if enough(row)}
        if known:
            return full, known
    return None


def _recurrent(row: Row) -> int:
    count = row.labels.get("recurrent", 0)
    return count if isinstance(count, int) else 0
