"""Lines that stand beside what was trained: chance, and what theorems say of the same stacks and
tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from separatrix.architecture import Architecture
from separatrix.errors import Undecided
from separatrix.evidence.records import Verdict
from separatrix.experiments.base import Line, grouped
from separatrix.numbers.accuracy import WHOLE
from separatrix.tasks import Task
from separatrix.theory import judge
from separatrix.theory.trained import Ceiling, trained_ceiling

if TYPE_CHECKING:
    from separatrix.experiments.base import Experiment
    from separatrix.practice.table import Label, Row, Table

DOTTED = (2, 3)
DASHED = (7, 4)


def ceiling(row: Row, task: Task | None = None) -> Ceiling | None:
    """Theorem A about the row's stack on its task, or on another one, trained in float32; None
    where it says nothing of the task, and where no comparison settles it.
    """
    try:
        return trained_ceiling(Architecture.parse(row.run["architecture"]), task or row.task)
    except Undecided:
        return None


def verdict(row: Row) -> Verdict:
    """The strongest verdict about the row's stack on its task."""
    return judge(Architecture.parse(row.run["architecture"]), row.task)[0]


def chances(experiment: Experiment, table: Table) -> tuple[Line, ...]:
    """Chance against x; one line where it is the same for every series."""
    found: dict[tuple[tuple[Label, float], ...], None] = {}
    for rows in grouped(table.rows, experiment.line_of).values():
        points = {row.labels[experiment.x]: float(row.chance) for row in rows}
        found.setdefault(tuple(points.items()))
    every = sorted(found, key=len, reverse=True)
    longest = [
        points
        for number, points in enumerate(every)
        if not any(set(points) <= set(other) for other in every[:number])
    ]
    return tuple(
        Line(label="chance", points=points, dash=DOTTED, text="Chance is the best constant guess.")
        for points in longest
    )


def ceilings(experiment: Experiment, table: Table) -> tuple[Line, ...]:
    """What no weights exceed, for each series where Theorem A is below 1 somewhere."""
    found: list[Line] = []
    for name, rows in grouped(table.rows, experiment.line_of).items():
        levels = {row.labels[experiment.x]: ceiling(row) for row in rows}
        points = tuple((x, one.at_most / WHOLE) for x, one in levels.items() if one is not None)
        if points and any(height < 1 for _, height in points):
            found.append(
                Line(
                    label=f"no weights exceed it: {name}",
                    points=points,
                    dash=DASHED,
                    series=name,
                    text="Dashed: no weights exceed it (Theorem A).",
                )
            )
    return tuple(found)
