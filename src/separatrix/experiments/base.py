"""The interface of experiments: what is asked, what is trained for it, and what is shown of it.

Most experiments say their cells, a few axes and their findings; figures and tables follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from separatrix.errors import SpecError
from separatrix.practice.table import Label, Row, Scale, Table
from separatrix.training.run import Run

LEAST_SEEDS = {"smoke": 1, "laptop": 3, "gpu": 5}
"""Seeds that every cell has, by scale: nothing is claimed from fewer than three."""


@dataclass(frozen=True)
class Cell:
    """What is measured with several seeds, at several learning rates. Raises SpecError for runs
    that differ in more, and for none.
    """

    labels: dict[str, Label]
    runs: tuple[Run, ...]

    def __post_init__(self) -> None:
        if len({replace(run, seed=0, learning_rate=1.0) for run in self.runs}) != 1:
            raise SpecError(
                f"the cell {self.labels} has runs that differ in more than seed and learning rate,"
                " or none"
            )


def cell(labels: Mapping[str, Label], run: Run, *, seeds: int, rates: Sequence[float] = ()) -> Cell:
    """The cell of a run: with so many seeds, from 0 on, at each learning rate; without rates, at
    the run's own. The label "stack" is the run's architecture.
    """
    runs = [
        replace(run, seed=seed, learning_rate=rate)
        for rate in rates or (run.learning_rate,)
        for seed in range(seeds)
    ]
    return Cell({**labels, "stack": run.architecture}, tuple(runs))


@dataclass(frozen=True, kw_only=True)
class ShownTable:
    """A table as people read it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Line:
    """What no seed gave: chance, or what a theorem says; drawn in a figure, and said below it."""

    label: str
    points: tuple[tuple[Label, float], ...] = ()
    """x and height; none where it lies outside of every figure, so that it is only said."""
    dash: tuple[int, ...] = (7, 4)
    series: str = ""
    """Whose colour it has; "" for none."""
    text: str = ""
    """One sentence; "" where the label says enough."""


class Experiment(ABC):
    """A question that training answers, one command and one page section."""

    name: ClassVar[str]
    title: ClassVar[str]
    question: ClassVar[str]
    """One sentence."""
    says: ClassVar[str]
    """What is proved about it, with the theorem, and what is not."""
    labels: ClassVar[dict[str, str]]
    """What each label of a row means; "stack" is known."""
    x: ClassVar[str]
    """The label along the horizontal axis."""
    x_title: ClassVar[str]
    series: ClassVar[tuple[str, ...]]
    """Labels that together name a line of a figure."""
    panels: ClassVar[tuple[str, ...]] = ()
    """Labels whose values have a figure each."""

    even: ClassVar[bool] = False
    """Whether numbers along the horizontal axis stand the same step apart, as words do."""

    @abstractmethod
    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        """What is trained at a scale."""

    @abstractmethod
    def findings(self, table: Table) -> tuple[str, ...]:
        """Sentences computed from the table, what contradicts expectation first. Rows may be
        missing, and a claim takes three seeds.
        """

    def lines(self, table: Table) -> tuple[Line, ...]:
        """What is proved, and what guessing gives, for rows of one figure: computed, never typed.
        Chance and Theorem A's ceilings, unless an experiment has more.
        """
        from separatrix.experiments.lines import ceilings, chances

        return (*chances(self, table), *ceilings(self, table))

    def figures(self, table: Table) -> dict[str, dict[str, Any]]:
        """Vega-Lite specifications by the ends of their file names; "" for the only one: accuracy
        against `x`, one for each value of the panels. Raises MissingExtraError.
        """
        from separatrix.experiments.drawing import accuracy_figures

        return accuracy_figures(self, table)

    def tables(self, table: Table) -> list[ShownTable]:
        """A line for each row, the best learning rate of each."""
        from separatrix.experiments.showing import shown_rows

        return [shown_rows(self, table)]

    def line_of(self, row: Row) -> str:
        """The name of the line of a figure that a row belongs to."""
        return ", ".join(worded(name, row.labels[name]) for name in self.series)


def worded(name: str, value: Label) -> str:
    """A label as a line or a figure is called: a word as it is, a number with its name."""
    return value if isinstance(value, str) else f"{name} {value:,}"


def parts(names: Iterable[str], table: Table) -> list[tuple[tuple[Label, ...], Table]]:
    """The table as several, one for each value of some labels, in order of the rows."""
    wanted = tuple(names)
    found: dict[tuple[Label, ...], list[Row]] = {}
    for row in table.rows:
        found.setdefault(tuple(row.labels[name] for name in wanted), []).append(row)
    return [(key, replace(table, rows=tuple(rows))) for key, rows in found.items()]


def grouped(rows: Iterable[Row], name: Callable[[Row], str]) -> dict[str, list[Row]]:
    """Rows by a name, in order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(name(row), []).append(row)
    return found


def claimed(rows: Sequence[Row | None]) -> bool:
    """Whether a claim about some rows may be made: all are there, with three seeds each."""
    return all(row is not None and len(row.trials) >= LEAST_SEEDS["laptop"] for row in rows)
