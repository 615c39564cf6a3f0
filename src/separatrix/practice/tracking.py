"""The results of `state-tracking`: which layers follow a state that every token may change."""

from __future__ import annotations

from separatrix.practice.lookups import best_of, rows_of
from separatrix.practice.table import Row


def tracked(mechanism: str, group: str) -> dict[int, Row]:
    """Tokens of a prompt -> what stacks of that mechanism alone gave on parity, S3 or S5."""
    found: dict[int, list[Row]] = {}
    for row in rows_of("state-tracking", mechanism=mechanism, group=group):
        found.setdefault(row.task.length, []).append(row)
    return {length: best_of(alike) for length, alike in sorted(found.items())}
