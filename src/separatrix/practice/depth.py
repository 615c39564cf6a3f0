"""The results of `depth`: steps of composition against the number of full layers."""

from __future__ import annotations

from separatrix.practice.lookups import NONE, by_label, rows_of
from separatrix.practice.table import Row


def composed(full: int, beside: str, mechanism: str | None) -> dict[int, Row]:
    """Steps -> what stacks with so many full layers gave, their other layers of that mechanism
    (None for none) and standing where `beside` says; of several numbers of them the largest.
    """
    rows = rows_of("depth", full=full, where=beside, mechanism=mechanism or NONE)
    most = max((_recurrent(row) for row in rows), default=0)
    return by_label((row for row in rows if _recurrent(row) == most), "steps")


def _recurrent(row: Row) -> int:
    count = row.labels.get("recurrent", 0)
    return count if isinstance(count, int) else 0
