"""How many steps of composition training finds with so many full layers, and what recurrent layers
before, between or after them buy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from separatrix.experiments.base import Cell, Experiment, Line, ShownTable, cell, claimed
from separatrix.experiments.lines import ceilings, chances
from separatrix.experiments.saying import ahead, full_layers
from separatrix.experiments.showing import share
from separatrix.experiments.stacks import RECURRENT, Where, beside
from separatrix.practice.table import Label, Row, Scale, Table
from separatrix.sweeps.proved import Proved, proved
from separatrix.tasks.questions import Questions
from separatrix.training.run import Run

SIZES: dict[Scale, dict[int, str]] = {
    "smoke": {1: "m=4,queries=all", 2: "m=4,n_1=2,queries=all"},
    "laptop": {
        1: "m=8,queries=all",
        2: "m=4,n_1=3,queries=all",
    },
    "gpu": {
        1: "m=16,queries=all",
        2: "m=4,n_1=8,queries=16",
        3: "m=4,n_1=4,n_2=2,queries=16",
        4: "m=4,n_1=2,n_2=2,n_3=2,queries=16",
    },
}
"""By the number of steps. With several w for each z_0 the answer is not known before w."""
STEPS = {"smoke": 60, "laptop": 450, "gpu": 4000}
SEEDS = {"smoke": 1, "laptop": 3, "gpu": 5}
RATES = {"smoke": (1e-2,), "laptop": (5e-3, 1e-2), "gpu": (3e-3, 5e-3, 1e-2)}
"""The same for every stack."""
Shape = tuple[int, int, Where]
"""Full layers, recurrent ones, and where these stand."""
ALONE: tuple[Shape, ...] = tuple((full, 0, "none") for full in (1, 2, 3, 4))
LAPTOP: dict[int, tuple[Shape, ...]] = {
    1: (*ALONE[:2], (1, 1, "before")),
    2: (*ALONE[1:], (2, 1, "before"), (2, 1, "between"), (2, 1, "after")),
}
"""Shapes tried at each number of steps: those on both sides of what is proved."""


class Depth(Experiment):
    """SeqComp against its number of steps."""

    name: ClassVar[str] = "depth"
    title: ClassVar[str] = "How many functions a stack learns to compose"
    question: ClassVar[str] = (
        "Does accuracy drop when there are more functions to compose than full layers, and do"
        " recurrent layers beside them help?"
    )
    says: ClassVar[str] = (
        "L full layers and a recurrent one before the second of them solve L-SeqComp, and so do"
        " L + 1 full layers (theory.md, section 6). Fewer fail from some prompt length on (theorems"
        " III to VII), which is far beyond the prompts of a laptop: here nothing is excluded."
    )
    labels: ClassVar[dict[str, str]] = {
        "full": "number of full layers",
        "recurrent": "number of recurrent layers",
        "where": "where these stand: before all full layers, between the first and the others, or"
        " after all",
        "steps": "L, the number of functions composed",
        "mechanism": "what the recurrent layers are",
    }
    x: ClassVar[str] = "steps"
    x_title: ClassVar[str] = "functions composed, L"
    even: ClassVar[bool] = True
    series: ClassVar[tuple[str, ...]] = ("full", "recurrent", "where")

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        return tuple(
            cell(
                {
                    "full": full,
                    "recurrent": recurrent,
                    "where": where,
                    "steps": steps,
                    "mechanism": RECURRENT if recurrent else "none",
                },
                composition(beside(full, recurrent, where), steps, scale),
                seeds=SEEDS[scale],
                rates=RATES[scale],
            )
            for steps, (full, recurrent, where) in _shapes(scale)
        )

    def line_of(self, row: Row) -> str:
        labels = row.labels
        if not labels["recurrent"]:
            return f"{labels['full']} full"
        return (
            f"{labels['full']} full, {labels['recurrent']} {labels['mechanism']} {labels['where']}"
        )

    def lines(self, table: Table) -> tuple[Line, ...]:
        """Chance and ceilings, and what is right without knowing z_0."""
        levels = {row.labels["steps"]: float(shortcut(row)) for row in table.rows}
        return (
            *chances(self, table),
            *ceilings(self, table),
            Line(
                label="a shortcut: w known, z_0 not",
                points=tuple(levels.items()),
                text="The shortcut knows which rows w asks for, and names the value that most"
                " starts lead to.",
            ),
        )

    def tables(self, table: Table) -> list[ShownTable]:
        """What is proved of every row, then the rows."""
        beside_proofs = ShownTable(
            title="What is proved of each stack, and what training found",
            columns=(*self.series, "steps", "proved", "median", "least", "most", "solved"),
            rows=tuple(
                (
                    *(str(row.labels[name]) for name in (*self.series, "steps")),
                    told(single(row)),
                    *(share(value) for value in (row.median, row.least, row.most)),
                    f"{row.solved} of {len(row.trials)}",
                )
                for row in table.rows
            ),
        )
        return [beside_proofs, *super().tables(table)]

    def findings(self, table: Table) -> tuple[str, ...]:
        rows = [row for row in table.rows if claimed([row])]
        return (
            *_unproved(rows),
            *_untrained(rows),
            *_dropped(rows),
            *_bought(table),
        )


def single(row: Row) -> Proved:
    """What is proved of the row's stack on its task with a single question."""
    task = row.task
    asked = task.task if isinstance(task, Questions) else task
    return proved(str(row.run["architecture"]), asked.spec)


def told(what: Proved) -> str:
    """A verdict in a few words."""
    if what.status == "SOLVABLE":
        return "solvable"
    return f"open at this size (theorem {what.theorem})"


def shortcut(row: Row) -> float:
    """What is right without z_0."""
    return float(row.task.level("modes"))


def _shapes(scale: Scale) -> Iterator[tuple[int, Shape]]:
    if scale == "smoke":
        yield 1, (1, 1, "before")
        yield 2, (2, 1, "before")
        return
    found = LAPTOP
    if scale == "gpu":
        before: list[Shape] = [
            (full, recurrent, "before") for full in (1, 2, 3) for recurrent in (1, 4, 16)
        ]
        later: list[Shape] = [(full, 1, where) for full in (2, 3) for where in ("between", "after")]
        found = dict.fromkeys((1, 2, 3, 4), (*ALONE, *before, *later))
    for steps, shapes in found.items():
        for shape in shapes:
            yield steps, shape


def composition(stack: str, steps: int, scale: Scale) -> Run:
    """A stack trained to compose so many functions, with several questions in a prompt."""
    whole = STEPS[scale]
    return Run(
        architecture=stack,
        task=f"seqcomp:L={steps},{SIZES[scale][steps]},split=1",
        seed=0,
        steps=whole,
        batch=128 if scale == "gpu" else 48,
        width=64 if scale == "gpu" else 32,
        hidden=128 if scale == "gpu" else 64,
        # i_1 is asked at first, too: without it solvers stall
        curriculum=(f"stages=1@{4 * whole // 9}",) if steps > 1 else (),
        tested=512,
    )


def _named(row: Row) -> str:
    labels = row.labels
    full = full_layers(row)
    if not labels["recurrent"]:
        return full
    return f"{full} with {labels['recurrent']} {labels['mechanism']} {labels['where']}"


def _seeds(row: Row) -> str:
    return f"{row.solved} of {len(row.trials)} seeds, median {share(row.median)}"


def _unproved(rows: list[Row]) -> Iterator[str]:
    """Solved by training where no construction is known: against the picture of the theorems."""
    for row in rows:
        if row.solved and single(row).status != "SOLVABLE":
            yield (
                f"Against the picture that the theorems draw of long prompts, {_named(row)}"
                f" learned L = {row.labels['steps']} ({_seeds(row)}): at {row.task.length} tokens"
                " nothing is excluded."
            )


def _untrained(rows: list[Row]) -> Iterator[str]:
    """Solvable, and not found by training."""
    for row in rows:
        if row.solved < len(row.trials) and single(row).status == "SOLVABLE":
            yield (
                f"Weights exist that solve L = {row.labels['steps']} with {_named(row)}; training"
                f" found such in {_seeds(row)}. {len(row.trials) - row.solved} failed to train"
                f" within {row.run['steps']:,} steps, which is no sign that they cannot."
            )


def _dropped(rows: list[Row]) -> Iterator[str]:
    """Where one function more made a stack worse, beyond what seeds differ by."""
    by = {_shape(row): row for row in rows}
    for (steps, *layers), row in by.items():
        more = by.get((int(steps) + 1, *layers))
        if more is not None and ahead(row, more):
            yield (
                f"{_named(row)}: from L = {steps} to L = {int(steps) + 1} the median drops from"
                f" {share(row.median)} to {share(more.median)}, every seed below every one before."
            )


def _shape(row: Row) -> tuple[Label, ...]:
    return tuple(row.labels[name] for name in ("steps", "full", "recurrent", "where"))


def _bought(table: Table) -> Iterator[str]:
    """What one recurrent layer, or one full layer, changed at L = 2."""
    alone = table.one(steps=2, full=2, recurrent=0, where="none")
    more = table.one(steps=2, full=3, recurrent=0, where="none")
    found = {
        where: table.one(steps=2, full=2, recurrent=1, where=where)
        for where in ("before", "between", "after")
    }
    if not claimed([alone, more, *found.values()]):
        return
    assert alone is not None
    assert more is not None
    parts = [
        f"one {RECURRENT} {where} them to {share(row.median)}"
        for where, row in found.items()
        if row is not None
    ]
    yield (
        f"L = 2: two full layers reach {share(alone.median)} (median of {len(alone.trials)} seeds);"
        f" a third full layer takes them to {share(more.median)}, {', '.join(parts)}. The shortcut"
        f" that does not know z_0 gives {shortcut(alone):.2f}."
    )
