"""What seeds did, by cell, and which cells were trained to the end.

The rule is that of `core/evidence/rule.py`. A cell under another one is grey: no sentence, no card
and no design is made of it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from separatrix.cards.measured.table import Rate, Row, Table
from separatrix.core.errors import EvidenceError, SpecError
from separatrix.core.evidence.canonical import json_object
from separatrix.core.evidence.outcome import Outcome, share
from separatrix.core.evidence.rule import LONGER, STOP_AT, comparison, needed
from separatrix.core.evidence.typed import parse_json
from separatrix.core.numbers.amounts import format_share

Curve = tuple[tuple[int, float], ...]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A stack on a task, every seed at one learning rate."""

    name: str
    stack: str
    task: str
    comparison: str
    """Cells with the same one are compared: all fields of their runs but those of `OWN`."""
    width: int
    steps: int
    """N: at most so many steps a seed."""
    stop_at: float
    rate: float
    seeds: tuple[Outcome, ...]
    curves: Mapping[int, Curve] = field(default_factory=dict[int, Curve])
    """Running accuracy by step, by seed, where the rows keep it."""

    @property
    def solved(self) -> int:
        return sum(seed.solved for seed in self.seeds)

    @property
    def to_solve(self) -> tuple[float, ...]:
        """Steps of each seed; one that did not solve it is later than all."""
        return tuple(seed.steps_done if seed.solved else inf for seed in self.seeds)

    @property
    def accuracies(self) -> tuple[Fraction, ...]:
        return tuple(seed.accuracy for seed in self.seeds)

    @property
    def at_longest(self) -> dict[int, Fraction]:
        """Right answers at the longest size, of each seed that solved it at its own."""
        last = ((x.seed, x.longer_right[-1:], x.longer_due[-1:]) for x in self.seeds if x.solved)
        return {seed: share(*right, *due) for seed, right, due in last if due}

    @property
    def ends(self) -> list[str]:
        """How each seed ended, in words; once where all ended alike."""
        found = [self._end(seed) for seed in self.seeds]
        alike = len(found) > 1 and len(set(found)) == 1
        return [f"{found[0]} (all {len(found)})"] if alike else found

    def _end(self, seed: Outcome) -> str:
        if seed.solved:
            return f"{seed.steps_done:,}"
        if seed.stopped == "solved":
            return f"{shown(seed.accuracy)} of fresh answers at {seed.steps_done:,}"
        return f"{'diverged at' if seed.stopped == 'diverged' else 'not in'} {seed.steps_done:,}"

    @property
    def spread(self) -> str:
        """Steps to solve it: the median seed's, with the first and the last; "" where none did."""
        if not self.solved:
            return ""
        first, half, last = min(self.to_solve), median(self.to_solve), max(self.to_solve)
        told = "not by half" if half == inf else f"{half:,.0f}"
        return f"{told} ({f'from {first:,} on' if last == inf else f'{first:,} to {last:,}'})"

    def to_json(self) -> dict[str, Any]:
        """With every seed; a share as a number."""
        seeds = [
            {
                "seed": one.seed,
                "solved": one.solved,
                "steps": one.steps_done,
                "accuracy": float(one.accuracy),
                "stopped": one.stopped,
                "curve": self.curves.get(one.seed, ()),
            }
            for one in self.seeds
        ]
        kept = {x: value for x, value in vars(self).items() if x not in ("comparison", "curves")}
        return {**kept, "solved": self.solved, "seeds": seeds}


@dataclass(frozen=True)
class Results:
    """Cells by name."""

    cells: Mapping[str, Cell]

    @classmethod
    def of(cls, cells: Iterable[Cell]) -> Results:
        return cls({cell.name: cell for cell in cells})

    @cached_property
    def _slowest(self) -> dict[str, int]:
        """By comparison, the steps of the slowest solved seed; 0 where none is."""
        found: dict[str, int] = {}
        for cell in self.cells.values():
            steps = (seed.steps_done for seed in cell.seeds if seed.solved)
            found[cell.comparison] = max(found.get(cell.comparison, 0), *steps, 0)
        return found

    def needed(self) -> int:
        """The steps that the slowest solved seed of any comparison asks for."""
        return needed(self._slowest.values())

    def grey(self, cell: Cell) -> str:
        """Why nothing is said of a cell; "" for one that was trained to the end."""
        if cell.stop_at != STOP_AT:
            return f"training ended by another rule than {STOP_AT}"
        slowest = self._slowest[cell.comparison]
        if not slowest:
            return "nothing in its comparison is solved"
        # one that ended by itself has not run out of steps
        short = any(one.stopped not in ("solved", "diverged") for one in cell.seeds)
        if short and cell.steps < LONGER * slowest:
            return f"{cell.steps:,} steps are less than {LONGER} times {slowest:,}"
        return ""


def of_table(table: Table) -> Results:
    """The cells of a table, each at the best of its learning rates."""
    return Results.of(
        _cell(_named(row), row.run, row.best) for row in table.rows if row.best is not None
    )


def _named(row: Row) -> str:
    """Its name; of tables of November 2026 all that its labels say of it."""
    labels = (f"{name} {value}" for name, value in row.labels.items() if name != "stack")
    return str(row.labels.get("cell") or ", ".join(labels) or row.run["architecture"])


def _cell(name: str, run: Mapping[str, Any], rate: Rate) -> Cell:
    return Cell(
        name=name,
        stack=run["architecture"],
        task=run["task"],
        comparison=comparison(run),
        width=run.get("width", 0),
        steps=run["steps"],
        stop_at=run.get("stop_at", 0.0),
        rate=rate.learning_rate,
        seeds=rate.trials,
    )


def of_lines(rows: Iterable[dict[str, Any]]) -> Results:
    """The cells of rows with a run each (`checked_lines`); one for each learning rate where a cell
    has several. Raises SpecError for runs that do not belong together.
    """
    found: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["cell"], row["run"]["learning_rate"]), []).append(row)
    rates = Counter(name for name, _ in found)
    return Results.of(
        _of_lines(f"{name} at {rate:g}" if rates[name] > 1 else name, rate, runs)
        for (name, rate), runs in found.items()
    )


def _of_lines(name: str, rate: float, rows: list[dict[str, Any]]) -> Cell:
    rows = sorted(rows, key=lambda row: row["run"]["seed"])
    seeds = Rate(
        learning_rate=rate, trials=tuple(Outcome.from_json(row["outcome"]) for row in rows)
    )
    first, *others = (_cell(name, row["run"], seeds) for row in rows)
    curves = {row["run"]["seed"]: tuple(map(tuple, row.get("curve", ()))) for row in rows}
    if len(curves) < len(rows):
        raise SpecError(f"the cell '{name}' has a seed twice")
    if any(one != first for one in others):
        raise SpecError(f"the runs of the cell '{name}' differ in more than seed and learning rate")
    return replace(first, curves=curves)


def checked_lines(path: Path, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a file with a run a line. Raises SpecError that names one with a wrong hash."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from None
    for number, line in enumerate(lines[:most], 1):
        where = f"{path.name}, line {number}"
        try:
            row = json_object(parse_json(line)) or {}
        except EvidenceError as error:
            raise SpecError(f"{where}: {error}") from None
        # of the rest of the line, as research/study/run.py writes it
        kept = row.pop("sha256", None)
        own = hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()
        if own != kept or not {"cell", "run", "outcome"} <= row.keys():
            raise SpecError(
                f"{where}: no run with its own hash: it was edited or cut; take the line out, and"
                " its run is trained again"
            )
        yield row


def shown(value: float | Fraction) -> str:
    """A share in percent, rounded down; a count or steps as a whole number."""
    if isinstance(value, Fraction):
        return format_share(value.numerator, value.denominator)
    return "more than all" if value == inf else f"{value:,.0f}"
