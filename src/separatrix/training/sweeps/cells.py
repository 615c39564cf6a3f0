"""Cells of a sweep: the runs that differ in nothing but seed and learning rate; and what is proved
of a stack on a task, to stand beside what was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

from separatrix.core.errors import SeparatrixError, Undecided
from separatrix.core.evidence.records import Status
from separatrix.core.numbers.accuracy import WHOLE
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge
from separatrix.theory.fails.a_accuracy import trained_ceiling
from separatrix.training.run import Run

BARE = ("architecture", "task")
"""Fields whose values say by themselves what they are."""


@dataclass(frozen=True)
class Cell:
    """What is measured with several seeds, at several learning rates."""

    run: Run
    """What its runs have in common: with seed 0 and learning rate 1."""
    runs: tuple[Run, ...]

    def label(self, names: Sequence[str]) -> str:
        """The values of these fields, such as "gdn*2, width 32"; the architecture where there are
        none.
        """
        return ", ".join(map(self._said, names or BARE[:1]))

    def _said(self, name: str) -> str:
        value = getattr(self.run, name)
        if isinstance(value, tuple):
            return f"{name} {' '.join(value) or 'none'}"
        return str(value) if name in BARE else f"{name} {value}"


def cells(runs: Iterable[Run]) -> list[Cell]:
    """The cells of some runs, in the order of their first runs."""
    found: dict[Run, list[Run]] = {}
    for run in runs:
        common = replace(_canonical(run), seed=0, learning_rate=1.0)
        found.setdefault(common, []).append(run)
    return [Cell(common, tuple(members)) for common, members in found.items()]


def _canonical(run: Run) -> Run:
    try:
        return run.canonical()
    except SeparatrixError:
        # of a store, with a mixer of one's own that is not imported here: its texts are canonical
        return run


def varied(cells: Sequence[Cell]) -> tuple[str, ...]:
    """The fields in which the cells differ, in the order of a run's fields."""
    names = (field.name for field in fields(Run))
    return tuple(name for name in names if len({getattr(cell.run, name) for cell in cells}) > 1)


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
