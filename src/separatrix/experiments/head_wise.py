"""Hybrid heads inside every layer against hybrid layers, at equal cache and parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from separatrix.architecture import Architecture
from separatrix.experiments.base import Cell, Experiment, Line, ShownTable, cell, claimed
from separatrix.experiments.depth import shortcut
from separatrix.experiments.lines import ceilings, chances
from separatrix.experiments.saying import ahead, percent, solved_said
from separatrix.experiments.showing import share
from separatrix.practice.longer import at_size
from separatrix.practice.table import Row, Scale, Table
from separatrix.tasks import Questions
from separatrix.tasks.resized import resized
from separatrix.theory import judge
from separatrix.theory.base import number
from separatrix.training.run import Run

_LAYOUTS = {
    "recurrent, then full": "gdn(heads={h}, head_dim={d}) + full(heads={h}, head_dim={d})",
    "full, then recurrent": "full(heads={h}, head_dim={d}) + gdn(heads={h}, head_dim={d})",
    "both in every layer": "(gdn(heads={half}, head_dim={d})|full(heads={half}, head_dim={d}))*2",
}
"""Two layers each, with as many heads of either kind in all."""
HEAD_WISE = "both in every layer"
LAST_ALONE = "stages=0"
"""The last answer alone, of a model that was asked for the first step, too."""


_LEARNED = Fraction(1, 2)
"""Layouts are compared by a task of which one of them answers at least so much right."""


class _Question(NamedTuple):
    name: str
    task: str
    steps: int
    rates: tuple[float, ...]
    longer: tuple[str, ...] = ()


_LAPTOP = (
    _Question("recall", "recall:n=12,K=24,V=16,form=independent,queries=8", 300, (5e-3, 1e-2)),
    _Question(
        "composition",
        "seqcomp:L=2,m=4,n_1=4,split=1,stages=1,queries=8",
        600,
        (6e-3, 1.2e-2),
        (LAST_ALONE,),
    ),
)
_GPU = (
    _Question("recall", "recall:n=64,K=128,V=64,form=independent,queries=all", 6000, (2e-3, 6e-3)),
    _Question(
        "composition",
        "seqcomp:L=2,m=8,n_1=8,split=1,stages=1,queries=8",
        8000,
        (2e-3, 6e-3),
        (LAST_ALONE,),
    ),
)


class HeadWise(Experiment):
    """Two layers with as many recurrent and full heads in all, one kind a layer or both in each."""

    name = "head-wise"
    title = "Hybrid heads and hybrid layers"
    question = (
        "At equal cache and parameters, do heads of both kinds in every layer learn more than"
        " layers of one kind each?"
    )
    says = (
        "Head-wise layers are reading layers, each with half of the full heads: twice as many hops"
        " at equal cache. Two of them fall under Theorem IV, one reading layer with a recurrence"
        " before it under Theorem III; both fail two-step composition from some n on, with"
        " constants far beyond these sizes. Recall is solvable with either."
    )
    labels: ClassVar[dict[str, str]] = {
        "layout": "where recurrent and full heads stand; two layers each",
        "task": "recall, or composition of two functions",
        "mechanism": "of the recurrent heads",
    }
    x = "layout"
    x_title = "where the heads stand"
    series = ("task",)
    panels = ("task",)

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        if scale == "smoke":
            quick = [one._replace(steps=40) for one in _LAPTOP]
            return tuple(
                _cell(layout, one, heads=4, d=8, width=32, batch=32, seeds=1)
                for one in quick
                for layout in _LAYOUTS
            )
        if scale == "laptop":
            return tuple(
                _cell(layout, one, heads=4, d=8, width=32, batch=64, seeds=3)
                for one in _LAPTOP
                for layout in _LAYOUTS
            )
        return tuple(
            _cell(layout, one, heads=8, d=16, width=128, batch=128, seeds=5)
            for one in _GPU
            for layout in _LAYOUTS
        )

    def lines(self, table: Table) -> tuple[Line, ...]:
        seen = _final(table)
        composed = seen.where(task="composition")
        levels = tuple((str(row.labels["layout"]), shortcut(row)) for row in composed)
        found = (*chances(self, seen), *ceilings(self, seen))
        if not levels:
            return found
        text = (
            "Where the first step is not known, the value that most of its row has is a shortcut."
        )
        return (*found, Line(label="a shortcut: w known, z_0 not", points=levels, text=text))

    def figures(self, table: Table) -> dict[str, dict[str, Any]]:
        return super().figures(_final(table))

    def tables(self, table: Table) -> list[ShownTable]:
        shown = ShownTable(
            title="Equal cache and parameters, and what is proved at these sizes",
            columns=("task", "layout", "median", "cache, bits", "parameters", "proved"),
            rows=tuple(
                (
                    str(row.labels["task"]),
                    str(row.labels["layout"]),
                    share(row.median),
                    f"{row.cache_bits:,}",
                    f"{row.trials[0].parameters:,}",
                    _proved(row),
                )
                for row in _final(table).rows
            ),
        )
        return [shown, *super().tables(table)]

    def findings(self, table: Table) -> tuple[str, ...]:
        seen = _final(table)
        found: list[tuple[bool, str]] = []
        for task in table.values("task"):
            rows = {
                str(row.labels["layout"]): row
                for row in seen.where(task=str(task))
                if claimed([row])
            }
            found += _said(str(task), rows)
        # what contradicts the expectation that more hops help composition comes first
        return tuple(text for _, text in sorted(found, key=lambda one: not one[0]))


def _cell(
    layout: str, one: _Question, *, heads: int, d: int, width: int, batch: int, seeds: int
) -> Cell:
    return cell(
        {"layout": layout, "task": one.name, "mechanism": "gdn"},
        Run(
            architecture=_LAYOUTS[layout].format(h=heads, half=heads // 2, d=d),
            task=one.task,
            seed=0,
            steps=one.steps,
            batch=batch,
            width=width,
            hidden=2 * width,
            longer=one.longer,
            tested=512,
            stop_at=2.0,
        ),
        seeds=seeds,
        rates=one.rates,
    )


def _final(table: Table) -> Table:
    """The table with the answers of the last step alone, where steps before it were asked for."""
    return replace(table, rows=tuple(map(_last_alone, table.rows)))


def _last_alone(row: Row) -> Row:
    if LAST_ALONE not in row.run["longer"]:
        return row
    tested = at_size(row, LAST_ALONE)
    # chance is that of the last answer, too
    task = resized(row.task, LAST_ALONE).task.spec
    return replace(tested, run=row.run | {"task": task, "longer": []})


def _proved(row: Row) -> str:
    task = row.task.task if isinstance(row.task, Questions) else row.task
    found = judge(Architecture.parse(row.run["architecture"]), task)[0]
    n = "" if found.n is None else f", fails from n = {number(found.n)}"
    return f"{found.status} (Theorem {found.theorem}{n})" if found.theorem != "none" else "OPEN"


def _said(task: str, rows: dict[str, Row]) -> Iterator[tuple[bool, str]]:
    """Sentences on a task, each with whether it contradicts what one would expect."""
    mixed = rows.get(HEAD_WISE)
    if mixed is None:
        return
    if max(row.median for row in rows.values()) < _LEARNED:
        best = max(rows.values(), key=lambda row: row.median)
        yield (
            True,
            f"{task}: no layout learned it in {mixed.run['steps']:,} steps (best median"
            f" {percent(best.median)}, chance {percent(mixed.chance)}): failed to train is not"
            " cannot, and the layouts are not compared by it.",
        )
        return
    for layout, row in rows.items():
        if layout == HEAD_WISE:
            continue
        if ahead(mixed, row):
            said, against = "learned more than", False
        elif ahead(row, mixed):
            said, against = "learned less than", task == "composition"
        else:
            said, against = "are not told apart from", False
        yield (
            against,
            f"{task}: heads of both kinds in every layer ({percent(mixed.median)},"
            f" {solved_said(mixed)} solved it) {said} {layout} ({percent(row.median)},"
            f" {solved_said(row)}).",
        )
    if task == "composition":
        level = percent(Fraction(shortcut(mixed)))
        yield False, f"{task}: the shortcut that does not know z_0 gives {level}."
