"""`sx.trial`: layouts scaled down and trained beside each other, as an answer that shows itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from separatrix.cards.measured.table import Table as Recorded
from separatrix.cli.asked import Shown
from separatrix.core.document import Document, Heading, Line, Part, Table
from separatrix.core.errors import SizeError
from separatrix.findings.base import Experiment
from separatrix.findings.page import COLUMNS, contrasts, data, lines, notes
from separatrix.findings.results import Results, of_table
from separatrix.findings.running import with_curves
from separatrix.findings.trial import Trial
from separatrix.findings.trial import trial as scaled
from separatrix.stacks.architecture.resolve import Stack, stack_of
from separatrix.tasks import Task, task_of


@dataclass(frozen=True, repr=False)
class Trialled(Shown):
    """Every seed of every layout, what differs between them, how they were scaled, and what that
    does not show.
    """

    experiment: Experiment
    table: Recorded
    results: Results
    rules: list[str]
    remarks: list[str]

    @classmethod
    def of(cls, found: Trial, *, store: Path, **where: Any) -> Trialled:
        """Trains what the store does not have. Raises what `Trial.train` raises."""
        experiment, table = found.train(store=store, **where)
        results = with_curves(experiment, of_table(table), store)
        return cls(experiment, table, results, found.rules(), found.remarks(table, results))

    def __repr__(self) -> str:
        solved = (f"{row['cell']} solved by {row['solved by']}" for row in self.rows())
        return f"{self.experiment.title}: {', '.join(solved)}"

    def document(self) -> Document:
        return Document(*seeds(self.experiment, self.results, self.remarks))

    def to_json(self) -> dict[str, Any]:
        said = {"rules": self.rules, "remarks": self.remarks}
        return {**data(self.experiment, self.table, self.results), **said}

    def rows(self) -> list[dict[str, Any]]:
        return [dict(zip(COLUMNS, cells, strict=True)) for cells, _ in lines(self.results)]


def seeds(wanted: Experiment, results: Results, more: Iterable[str]) -> list[Part]:
    """Every seed, what was contrasted, and notes."""
    rows = [cells for cells, _ in lines(results)]
    said = (f"- {one.told}" for one in contrasts(wanted.contrasts, results))
    table = [Table(rows, COLUMNS)] if rows else []
    return [Heading(), *table, Heading(), *map(Line, [*said, *notes(results), *more])]


def trial(
    *models: Stack,
    task: str | Task,
    hours: float = 2.0,
    seeds: int = 8,
    steps: int = 0,
    store: Path | str = "sweeps.sqlite",
    workers: int | None = None,
    device: str = "cpu",
    **where: Any,
) -> Trialled:
    """Scales two or three layouts down, trains them to the end with paired seeds (0 steps: as many
    as the task usually takes), and says which of them solve the task. Interrupted, the same call
    goes on; `where`: what else `sweep` takes.

    Raises SizeError where the hours may not suffice, SpecError, SizeError or UnknownNameError for
    what cannot be scaled, and what `sweep` raises.
    """
    if not hours >= 0:
        raise SizeError(f"hours is {hours}; it must be at least 0")
    own = {one if isinstance(one, str) else str(stack_of(one)): stack_of(one) for one in models}
    asked = task if isinstance(task, str) else task_of(task).spec
    found = scaled(own, asked, seeds=seeds, steps=steps)
    here: dict[str, Any] = {"store": Path(store), "workers": workers, "device": device}
    if short := found.short(found.plan(**here), hours):
        raise SizeError(short)
    return Trialled.of(found, **here, **where)
