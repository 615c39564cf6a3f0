"""The results of `placement`: where the full layers stand among the others."""

from __future__ import annotations

from separatrix.practice.lookups import best_of, rows_of
from separatrix.practice.table import Row


def placed(mechanism: str, task: str) -> dict[tuple[int, str], Row]:
    """Full layers and where they stand -> what stacks with them among layers of that mechanism gave
    on recall, composition or khop.
    """
    found: dict[tuple[int, str], list[Row]] = {}
    for row in rows_of("placement", mechanism=mechanism, task=task):
        full, where = row.labels.get("full"), row.labels.get("where")
        if isinstance(full, int) and isinstance(where, str):
            found.setdefault((full, where), []).append(row)
    return {key: best_of(alike) for key, alike in found.items()}
