"""Where the full layers of a hybrid should stand, at equal parameters and equal cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple

from separatrix.experiments.base import Cell, Experiment, ShownTable, cell, claimed
from separatrix.experiments.depth import composition
from separatrix.experiments.saying import ahead, full_layers, listed, median_said
from separatrix.experiments.showing import share
from separatrix.experiments.stacks import FULL, RECURRENT, STATE, Placed, spec
from separatrix.practice.table import Row, Scale, Table
from separatrix.training.run import Run

SMALL = f"{RECURRENT}(heads=1,head_dim=4,conv=4)"
"""A state too small to answer the questions by itself."""
STEPS = {"smoke": 60, "laptop": 400, "gpu": 4000}
SEEDS = {"smoke": 1, "laptop": 3, "gpu": 5}
RATES = {"smoke": (1e-2,), "laptop": (5e-3, 1e-2), "gpu": (3e-3, 5e-3, 1e-2)}
LAYERS = {"smoke": 3, "laptop": 3, "gpu": 8}
SHAPES: dict[Scale, tuple[tuple[int, Placed], ...]] = {
    "smoke": ((1, "first"), (1, "last")),
    "laptop": (
        (1, "first"),
        (1, "middle"),
        (1, "last"),
        (2, "first"),
        (2, "last"),
        (2, "spread"),
    ),
    "gpu": tuple(
        (full, where)
        for full in (1, 2, 4)
        for where in ("first", "middle", "last", "spread")
        if full > 1 or where != "spread"
    ),
}


class _Task(NamedTuple):
    """What is trained."""

    task: str
    """Or the number of functions to compose."""
    recurrent: str = SMALL
    least: int = 1
    """Fewest full layers that are tried."""


TASKS: dict[Scale, dict[str, _Task]] = {
    "smoke": {"recall": _Task("recall:n=4,K=8,V=4,form=independent,queries=all")},
    "laptop": {
        "recall": _Task("recall:n=12,K=16,V=8,form=independent,queries=all"),
        "composition": _Task("2", STATE, least=2),
        "khop": _Task("khop:n=24,V=4,k=2,queries=all", least=2),
    },
    "gpu": {
        "recall": _Task("recall:n=48,K=64,V=32,form=independent,queries=all"),
        "composition": _Task("3", STATE),
        "khop": _Task("khop:n=128,V=16,k=4,queries=all"),
    },
}


class Placement(Experiment):
    """As many full layers, at other places."""

    name: ClassVar[str] = "placement"
    title: ClassVar[str] = "Where the full layers of a hybrid stand"
    question: ClassVar[str] = (
        "With as many full layers, as many parameters and the same cache: does it matter whether"
        " the full layers stand first, in the middle, last or spread?"
    )
    says: ClassVar[str] = (
        "A recurrent layer before the second full layer spares a full layer in a composition, one"
        " after the last does not (theory.md, sections 5 and 6): at long prompts places differ."
        " For recall by a single full layer nothing is proved about its place here."
    )
    labels: ClassVar[dict[str, str]] = {
        "full": "number of full layers",
        "where": "where they stand: all first, in the middle, all last, or spread",
        "task": "recall of independent facts, composition (SeqComp) or k-hop",
        "layers": "number of layers",
        "mechanism": "what the other layers are",
    }
    x: ClassVar[str] = "where"
    x_title: ClassVar[str] = "where the full layers stand"
    series: ClassVar[tuple[str, ...]] = ("full",)
    panels: ClassVar[tuple[str, ...]] = ("task",)

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        layers = LAYERS[scale]
        return tuple(
            cell(
                {
                    "mechanism": RECURRENT,
                    "layers": layers,
                    "full": full,
                    "where": where,
                    "task": name,
                },
                _run(layers, full, where, task, scale),
                seeds=SEEDS[scale],
                rates=RATES[scale],
            )
            for name, task in TASKS[scale].items()
            for full, where in SHAPES[scale]
            if full >= task.least
        )

    def tables(self, table: Table) -> list[ShownTable]:
        """Places side by side, then every row."""
        wheres = table.values("where")
        side = ShownTable(
            title="Medians by place",
            columns=("task", "full", *map(str, wheres), "parameters", "bits carried"),
            rows=tuple(
                (
                    str(task),
                    str(full),
                    *(
                        median_said(table.one(task=task, full=full, where=where))
                        for where in wheres
                    ),
                    ", ".join(_distinct(rows, lambda row: row.every[0].parameters)),
                    ", ".join(_distinct(rows, lambda row: row.cache_bits)),
                )
                for task in table.values("task")
                for full in table.values("full")
                if (rows := table.where(task=task, full=full))
            ),
        )
        return [side, *super().tables(table)]

    def findings(self, table: Table) -> tuple[str, ...]:
        groups = [
            rows
            for task in table.values("task")
            for full in table.values("full")
            if claimed(rows := table.where(task=task, full=full)) and len(rows) > 1
        ]
        return (*_later_are_worse(groups), *_apart(groups), *_alike(groups))


def stack(layers: int, full: int, where: Placed, recurrent: str) -> str:
    """A stack in which so many layers are full: together at the start, in the middle or at the end,
    or spread from the first layer to the last.
    """
    free = layers - full
    starts = {"first": 0, "middle": free // 2, "last": free}
    if where == "spread":
        chosen = {number * (layers - 1) // max(1, full - 1) for number in range(full)}
    else:
        chosen = set(range(starts[where], starts[where] + full))
    return spec([FULL if layer in chosen else recurrent for layer in range(layers)])


def _run(layers: int, full: int, where: Placed, task: _Task, scale: Scale) -> Run:
    spelled = stack(layers, full, where, task.recurrent)
    if task.task.isdigit():
        # as the experiment depth trains it
        return composition(spelled, int(task.task), scale)
    return Run(
        architecture=spelled,
        task=task.task,
        seed=0,
        steps=STEPS[scale],
        batch=32,
        width=32,
        hidden=64,
        tested=512,
    )


def _distinct(rows: list[Row], of: Callable[[Row], int]) -> list[str]:
    return [f"{value:,}" for value in dict.fromkeys(map(of, rows))]


def _what(rows: list[Row]) -> str:
    labels = rows[0].labels
    return f"{labels['task']}, {full_layers(rows[0])} of {labels['layers']}"


def _shares(rows: list[Row]) -> str:
    return ", ".join(f"{row.labels['where']} {share(row.median)}" for row in rows)


def _best(rows: list[Row]) -> Row:
    return max(rows, key=lambda row: row.median)


def _worst(rows: list[Row]) -> Row:
    return min(rows, key=lambda row: row.median)


def _told_apart(rows: list[Row]) -> bool:
    """Whether every seed of the best place is above every seed of the worst."""
    return ahead(_best(rows), _worst(rows))


def _later_are_worse(groups: list[list[Row]]) -> Iterator[str]:
    """Against what is proved of long prompts: a recurrence before the full layers does no harm."""
    for rows in groups:
        by_place = {row.labels["where"]: row for row in rows}
        first, last = by_place.get("first"), by_place.get("last")
        if first is not None and last is not None and ahead(first, last):
            yield (
                f"Against expectation, {_what(rows)}: full layers first do better than last, though"
                " recurrent layers before them can hand them what stands side by side:"
                f" {share(first.median)} against {share(last.median)} (medians; all seeds apart)."
            )


def _apart(groups: list[list[Row]]) -> Iterator[str]:
    for rows in groups:
        if _told_apart(rows):
            worst = _worst(rows)
            better = [str(row.labels["where"]) for row in rows if ahead(row, worst)]
            yield (
                f"{_what(rows).capitalize()}: medians {_shares(rows)}. Every seed of"
                f" {listed(better)} is above every seed of {worst.labels['where']}; what is low"
                f" failed to train within {rows[0].run['steps']:,} steps, which is no sign that it"
                " cannot."
            )


def _alike(groups: list[list[Row]]) -> Iterator[str]:
    for rows in groups:
        if not _told_apart(rows):
            yield (
                f"{_what(rows).capitalize()}: these seeds do not tell the places apart; medians"
                f" {_shares(rows)}."
            )
