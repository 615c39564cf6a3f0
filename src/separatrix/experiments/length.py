"""How far beyond the lengths of training a task is still solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from separatrix.experiments.base import LEAST_SEEDS, Cell, Experiment, Line, cell, claimed, grouped
from separatrix.experiments.showing import share
from separatrix.practice.longer import by_length
from separatrix.practice.table import Row, Scale, Table
from separatrix.training.run import Run

KEPT = 0.9
"""Of the accuracy at the trained length: less is called lost."""
LEARNED = 0.9
"""Accuracy per answer at the trained length from which longer prompts are looked at."""
_HEADS = "heads=4, head_dim=8"
_NO_PLACES = "conv=2, positions=none"
STACKS: dict[str, str] = {
    "gdn(negative=true)": f"gdn({_HEADS}, negative=true)*2 @ {_NO_PLACES}",
    "mamba2": f"mamba2({_HEADS}, state=8)*2 @ {_NO_PLACES}",
    "full, places learned": f"full({_HEADS})*2 @ conv=2",
    "full, rotated": f"full({_HEADS}, rope=true)*2 @ {_NO_PLACES}",
    "full, no places": f"full({_HEADS})*2 @ {_NO_PLACES}",
    "gdn, then full": f"(gdn({_HEADS}, negative=true) + full({_HEADS})) @ {_NO_PLACES}",
}
"""What a line is called -> its layers. Recurrences count by themselves and learn no places; full
attention has them in three ways.
"""


class _Task(NamedTuple):
    """A task at the length that is trained, and the sizes at which it is asked beside."""

    name: str
    text: str
    longer: tuple[str, ...]
    steps: int


_PARITY = _Task(
    "state tracking",
    "parity:n=16,queries=all",
    ("n=32,queries=8", "n=64,queries=8"),
    200,
)
_RECALL = _Task("recall", "recall:n=6,K=24,V=8,form=independent,queries=all", ("n=12", "n=24"), 300)
_COPYING = _Task("copying", "copying:n=8,V=4", ("n=16", "n=32"), 300)


class _Size(NamedTuple):
    """What is trained at a scale."""

    tasks: tuple[_Task, ...]
    stacks: tuple[str, ...]
    width: int
    batch: int
    rates: tuple[float, ...]


_SCALES: dict[Scale, _Size] = {
    "smoke": _Size((_PARITY,), ("gdn(negative=true)", "full, no places"), 32, 32, (1e-2,)),
    "laptop": _Size((_PARITY, _RECALL, _COPYING), tuple(STACKS), 32, 16, (5e-3, 1.5e-2)),
    "gpu": _Size(
        (
            _Task(
                "state tracking",
                "parity:n=64,queries=all",
                ("n=256,queries=8", "n=1024,queries=8"),
                2000,
            ),
            _Task(
                "recall",
                "recall:n=32,K=256,V=32,form=independent,queries=all",
                ("n=64", "n=128", "n=256"),
                4000,
            ),
            _Task("copying", "copying:n=64,V=16", ("n=128", "n=256"), 4000),
        ),
        tuple(STACKS),
        128,
        64,
        (1e-3, 4e-3),
    ),
}


class Length(Experiment):
    """Stacks trained on one length, asked at longer ones."""

    name: ClassVar[str] = "length"
    title: ClassVar[str] = "Beyond the lengths of training"
    question: ClassVar[str] = (
        "How far beyond the lengths that training shows do recurrences and full attention solve"
        " state tracking, recall and copying, with which places?"
    )
    says: ClassVar[str] = (
        "Explicit weights of the delta rule track parity at every length, and of full attention"
        " with places recall at every length; a bounded state loses recall at some length (Theorems"
        " I and A). Nothing is proved about what weights trained on short prompts do on longer"
        " ones."
    )
    labels: ClassVar[dict[str, str]] = {
        "mechanism": "of both layers, and where places come from; recurrences have none",
        "task": "state tracking (parity), recall of independent facts by key, or copying",
        "trained": "tokens of a prompt in training",
        "tested": "tokens of the prompts asked",
    }
    x: ClassVar[str] = "tested"
    x_title: ClassVar[str] = "tokens of a prompt (the shortest is trained)"
    series: ClassVar[tuple[str, ...]] = ("mechanism",)
    panels: ClassVar[tuple[str, ...]] = ("task",)

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        size = _SCALES[scale]
        return tuple(self._cell(scale, task, name) for task in size.tasks for name in size.stacks)

    def figures(self, table: Table) -> dict[str, dict[str, Any]]:
        return super().figures(lengths(table))

    def lines(self, table: Table) -> tuple[Line, ...]:
        known = all(TESTED in row.labels for row in table.rows)
        return super().lines(table if known else lengths(table))

    def findings(self, table: Table) -> tuple[str, ...]:
        found: list[str] = []
        for task, rows in grouped(table.rows, lambda row: str(row.labels["task"])).items():
            found += _said(task, [row for row in rows if claimed([row])])
        return tuple(found)

    @staticmethod
    def _cell(scale: Scale, task: _Task, name: str) -> Cell:
        size = _SCALES[scale]
        run = Run(
            architecture=STACKS[name],
            task=task.text,
            seed=0,
            steps=task.steps,
            batch=size.batch,
            width=size.width,
            hidden=2 * size.width,
            stop_at=0.995,
            longer=task.longer,
            tested=256,
        )
        labels = {"mechanism": name, "task": task.name, "trained": run.trained.length}
        return cell(labels, run, seeds=LEAST_SEEDS[scale], rates=size.rates)


TESTED = "tested"


def lengths(table: Table) -> Table:
    """The table with a row for each length asked, at the rate that is best at the trained one."""
    return replace(
        table,
        rows=tuple(
            replace(asked, labels={**row.labels, TESTED: tokens})
            for row in table.rows
            for tokens, asked in by_length(row).items()
        ),
    )


def _said(task: str, rows: Sequence[Row]) -> list[str]:
    """Who learned a task of one length, and up to which it holds."""
    by = {str(row.labels["mechanism"]): by_length(row) for row in rows}
    if not by:
        return []
    first = min(next(iter(by.values())))
    held: dict[str, int] = {}
    never: list[str] = []
    for name, at in by.items():
        if at[first].median < LEARNED:
            never.append(f"{name} ({share(at[first].median)})")
            continue
        kept = [
            tokens for tokens, row in at.items() if row.median >= KEPT * float(at[first].median)
        ]
        held[name] = max(kept)
    said: list[str] = []
    last = max(tokens for at in by.values() for tokens in at)
    lost = {name: tokens for name, tokens in held.items() if tokens < last}
    if lost:
        told = ", ".join(
            f"{name} beyond {tokens} tokens (at {last}: {share(by[name][last].median)})"
            for name, tokens in lost.items()
        )
        said.append(
            f"{task}, trained at {first} tokens: less than {KEPT:.0%} of it is kept by {told}."
        )
    whole = [name for name, tokens in held.items() if tokens == last]
    if whole:
        said.append(
            f"{task}: kept up to {last} tokens, {last / first:.1f} times the trained length:"
            f" {', '.join(whole)}."
        )
    if never:
        said.append(
            f"{task}: not learned at {first} tokens in this budget, medians:"
            f" {', '.join(never)}. Failing to train is not failing to be able."
        )
    return said
