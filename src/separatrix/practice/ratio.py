"""The results of `ratio`: how many bounded layers there are for each full one."""

from __future__ import annotations

from separatrix.practice.lookups import NONE, by_label, rows_of
from separatrix.practice.table import Row


def ratios(mechanism: str, task: str) -> dict[int, Row]:
    """Bounded layers of that mechanism per full layer (-1: no full layer) -> what such stacks gave
    on recall or composition.
    """
    rows = rows_of("ratio", mechanism=mechanism, task=task)
    # of a stack of full layers alone no other mechanism is known
    alone = rows_of("ratio", mechanism=NONE, task=task, ratio=0)
    return by_label((*rows, *alone), "ratio")
