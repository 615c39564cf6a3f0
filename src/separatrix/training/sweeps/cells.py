"""Cells of a sweep: the runs that differ in nothing but seed and learning rate; and what is proved
of a stack on a task, to stand beside what was measured.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

from separatrix.core.errors import Undecided
from separatrix.core.evidence.records import Status
from separatrix.core.numbers.accuracy import WHOLE
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge
from separatrix.theory.fails.a_accuracy import trained_ceiling

BARE = ("architecture", "task")
"""Fields whose values say by themselves what they are."""


def cells(runs: Iterable[Run]) -> dict[Run, list[Run]]:
    """The cells of some runs, in the order of their first runs: what each has in common, with seed
    0 and learning rate 1, and its runs.
    """
    found: dict[Run, list[Run]] = {}
    for run in runs:
        found.setdefault(replace(run.canonical(), seed=0, learning_rate=1.0), []).append(run)
    return found


def varied(cells: Collection[Run]) -> tuple[str, ...]:
    """The fields in which the cells differ, in the order of a run's fields."""
    names = (field.name for field in fields(Run))
    return tuple(name for name in names if len({getattr(run, name) for run in cells}) > 1)


def label(cell: Run, names: Sequence[str]) -> str:
    """The values of these fields, such as "gdn*2, width 32"; the architecture where there are
    none.
    """
    said: list[str] = []
    for name in names or BARE[:1]:
        value = getattr(cell, name)
        value = (" ".join(value) or "none") if isinstance(value, tuple) else value
        said.append(f"{value}" if name in BARE else f"{name} {value}")
    return ", ".join(said)


@dataclass(frozen=True)
class Proved:
    """The strongest verdict, and Theorem A's ceiling for a model trained here."""

    status: Status
    theorem: str
    """The key of the theorem behind the verdict."""
    statement: str
    ceiling: int | None
    """Millionths of random questions that no weights answer more of; None where no theorem says
    so, or where all may be right.
    """


@cache
def proved(architecture: str, task: str) -> Proved:
    """Raises what reading the texts raises."""
    stack = Architecture.parse(architecture)
    parsed = parse_task(task)
    verdict = judge(stack, parsed)[0]
    try:
        found = trained_ceiling(stack, parsed)
    except Undecided:
        found = None
    ceiling = None if found is None or found.at_most == WHOLE else found.at_most
    return Proved(verdict.status, verdict.theorem, verdict.statement, ceiling)
