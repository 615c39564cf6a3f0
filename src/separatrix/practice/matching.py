"""Which experiment measured a task, scaled down, with stacks laid out as a given one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from separatrix.practice.depth import composed_like
from separatrix.practice.nearest import PLACED, by_place, by_ratio, layers_of
from separatrix.practice.placement import placed
from separatrix.practice.ratio import ratios
from separatrix.practice.shape import Place, Shape
from separatrix.practice.table import Row
from separatrix.practice.words import enough
from separatrix.tasks import Task

Key = TypeVar("Key")
ASKED = {
    "eva": "recall",
    "index": "recall",
    "recall": "recall",
    "mqar": "recall",
    "seqcomp": "composition",
    "khop": "khop",
}
"""Tasks, and as what experiments with mixtures measure them."""


@dataclass(frozen=True)
class Match:
    """Rows that stand for a stack and a task, and how far both lie beyond them."""

    experiment: str
    rows: tuple[Row, ...]
    """One, or those on either side of the stack; never none."""
    laid_out: str
    """How the trained stacks are laid out, in words."""
    distances: dict[str, Fraction]
    exact: bool = True
    """Whether the trained stacks have the same number, ratio or place of full layers."""

    @property
    def row(self) -> Row:
        """The one with the least accuracy, which counts."""
        return min(self.rows, key=lambda row: row.median)


def by_depth(shape: Shape, task: Task) -> Match | None:
    """As many steps with as many full layers, or the most that were trained."""
    found = composed_like(shape) if ASKED.get(task.name) == "composition" else None
    steps = _steps(task)
    if found is None or steps not in found[1]:
        return None
    full, rows = found
    row = rows[steps]
    beside = "" if shape.beside == "none" else f", the others {shape.beside} them"
    return Match(
        "depth",
        (row,),
        f"{full} full{beside}",
        {"full layers": Fraction(shape.full, full), **_scaled(shape, task, row)},
        exact=shape.full == full,
    )


def by_mixture(shape: Shape, task: Task) -> Match | None:
    """As many bounded layers for each full one, or those on either side."""
    asked = ASKED.get(task.name)
    if asked is None or shape.kind is None or not _evenly(shape):
        return None
    alike = by_ratio(_known(ratios(shape.kind, asked), task), shape.ratio)
    if not alike:
        return None
    rows = tuple(alike.values())
    named = " and ".join("none full" if ratio < 0 else f"{ratio}:1" for ratio in alike)
    distances = _scaled(shape, task, rows[0])
    if shape.ratio is not None:
        distances["layers per full one"] = shape.ratio / max(1, *alike)
    return Match("ratio", rows, named, distances, exact=shape.ratio in (None, *alike))


def by_standing(shape: Shape, task: Task) -> Match | None:
    """The full layers where this shape has them."""
    row = places(shape, task).get(shape.place)
    if row is None:
        return None
    named = f"{_full(row)} of {layers_of(row)}, {PLACED[shape.place]}"
    distances = _scaled(shape, task, row)
    distances["layers per full one"] = Fraction(
        shape.layers * _full(row), shape.full * layers_of(row)
    )
    return Match("placement", (row,), named, distances)


def places(shape: Shape, task: Task) -> dict[Place, Row]:
    """What it changed where the full layers stand, at the share of them nearest to this shape's."""
    asked = ASKED.get(task.name)
    if asked is None or shape.kind is None:
        return {}
    return by_place(_known(placed(shape.kind, asked), task), shape)


def _evenly(shape: Shape) -> bool:
    """Whether full layers stand as in the experiment on ratios: each behind its share of the
    others.
    """
    return shape.place in ("none", "spread") or (shape.full, shape.place) == (1, "last")


def _known(rows: dict[Key, Row], task: Task) -> dict[Key, Row]:
    """Rows with enough seeds, and with as many steps as the task has, where it has steps."""
    steps = _steps(task)
    return {
        key: row
        for key, row in rows.items()
        if enough(row) and (steps is None or _steps(row.task) == steps)
    }


def _steps(task: Task) -> int | None:
    """The steps of a composition, or hops; None for a task of one step."""
    sizes = task.sizes()
    steps = sizes.get("L", sizes.get("k")) if ASKED.get(task.name) != "recall" else None
    return steps if isinstance(steps, int) else None


def _scaled(shape: Shape, task: Task, row: Row) -> dict[str, Fraction]:
    return {"layers": Fraction(shape.layers, layers_of(row)), "tokens": _longer(task, row)}


def _longer(task: Task, row: Row) -> Fraction:
    return Fraction(task.length, row.task.length)


def _full(row: Row) -> int:
    full = row.labels.get("full", 0)
    return full if isinstance(full, int) else 0
