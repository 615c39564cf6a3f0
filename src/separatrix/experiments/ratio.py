"""How many recurrent layers one full layer carries: recall and composition against the ratio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from separatrix.experiments.base import (
    LEAST_SEEDS,
    Cell,
    Experiment,
    Line,
    cell,
    claimed,
    grouped,
)
from separatrix.experiments.lines import DOTTED, ceilings
from separatrix.experiments.saying import ahead, listed
from separatrix.experiments.showing import share
from separatrix.practice.table import Row, Scale, Table
from separatrix.training.run import Run

ALL_FULL = 0
NO_FULL = -1
KEPT = 0.9
"""Of the accuracy of full layers alone: a ratio with less has lost the task."""
HALF = 0.5
PUBLISHED_BEND = 6
"""Recurrent layers per full one, beyond which the published study found recall to fall: one full
layer in seven.
"""
PUBLISHED_FIRST = ("gdn", "kda", "deltanet")
"""Delta rules, the first of them gated, which lead that study."""
PUBLISHED = (
    "a study of 72 models found recall to fall below about one full layer in four to seven, and"
    " gated delta rules to lead (Wang et al. 2025, arXiv 2507.06457)"
)


class _Task(NamedTuple):
    """A task at a scale."""

    text: str
    steps: int
    side: int
    """Of the recurrent state's matrix."""
    curriculum: tuple[str, ...] = ()


class _Size(NamedTuple):
    """What is trained at a scale."""

    layers: int
    ratios: tuple[int, ...]
    recurrent: tuple[str, ...]
    full: int
    """Head dimension of the full layers."""
    tasks: dict[str, _Task]
    width: int
    batch: int
    rates: tuple[float, ...]


_SCALES: dict[Scale, _Size] = {
    "smoke": _Size(
        layers=2,
        ratios=(NO_FULL, 1),
        recurrent=("gdn",),
        full=16,
        tasks={"recall": _Task("recall:n=6,K=6,V=8,form=independent,queries=all", 150, 4)},
        width=32,
        batch=32,
        rates=(1e-2,),
    ),
    "laptop": _Size(
        layers=4,
        ratios=(NO_FULL, 3, 1, ALL_FULL),
        recurrent=("gdn", "hgrn2", "linear"),
        full=16,
        tasks={
            # four states of 2 x 2 numbers for 32 bits of facts: no stack of them recalls all
            "recall": _Task("recall:n=8,K=16,V=16,form=independent,queries=all", 300, 2),
            "composition": _Task(
                "seqcomp:L=2,m=4,n_1=2,split=1,queries=all", 400, 4, ("stages=1@250",)
            ),
        },
        width=32,
        batch=16,
        rates=(5e-3, 1e-2),
    ),
    "gpu": _Size(
        layers=16,
        ratios=(NO_FULL, 15, 7, 3, 1, ALL_FULL),
        recurrent=("gdn", "hgrn2", "mamba2", "linear"),
        full=32,
        tasks={
            "recall": _Task("recall:n=64,K=256,V=64,form=independent,queries=all", 3000, 4),
            "composition": _Task(
                "seqcomp:L=2,m=8,n_1=8,split=1,queries=16", 4000, 8, ("stages=1@2000",)
            ),
        },
        width=128,
        batch=64,
        rates=(1e-3, 3e-3),
    ),
}


class Ratio(Experiment):
    """Stacks of equal depth in which every (r+1)-th layer is full, the last one among them."""

    name: ClassVar[str] = "ratio"
    title: ClassVar[str] = "Recurrent layers per full layer"
    question: ClassVar[str] = (
        "At equal depth, how many recurrent layers may stand for each full one before recall or"
        " composition suffers, and for which mechanism first?"
    )
    says: ClassVar[str] = (
        "One full layer that finds its place recalls any facts, so that no ratio is proved to fail;"
        " without a full layer, Theorem A bounds the accuracy by the bits of all states. Measured"
        f" elsewhere, not proved: {PUBLISHED}."
    )
    labels: ClassVar[dict[str, str]] = {
        "mechanism": "the recurrent layers; none where all are full",
        "ratio": f"recurrent layers per full one; {ALL_FULL}: all full, {NO_FULL}: no full layer",
        "layers": "of the stack",
        "task": "recall of independent facts by key, or composition of two functions",
    }
    x: ClassVar[str] = "ratio"
    x_title: ClassVar[str] = "recurrent layers per full one (-1: no full layer, 0: all full)"
    series: ClassVar[tuple[str, ...]] = ("mechanism",)
    panels: ClassVar[tuple[str, ...]] = ("task",)
    even: ClassVar[bool] = True

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        size = _SCALES[scale]
        return tuple(
            self._cell(scale, task, mechanism, ratio)
            for task in size.tasks
            for ratio in size.ratios
            for mechanism in (("none",) if ratio == ALL_FULL else size.recurrent)
        )

    def lines(self, table: Table) -> tuple[Line, ...]:
        # stacks of full layers alone are a series of their own, at one ratio: chance is the same
        points = {row.labels[self.x]: float(row.chance) for row in table.rows}
        text = "Chance is the best constant guess."
        chance = Line(label="chance", points=tuple(points.items()), dash=DOTTED, text=text)
        return (chance, *ceilings(self, table))

    def findings(self, table: Table) -> tuple[str, ...]:
        return tuple(
            sentence
            for task, rows in grouped(table.rows, lambda row: str(row.labels["task"])).items()
            for sentence in (*_bend_said(task, rows), *_order_said(task, rows))
        )

    @staticmethod
    def _cell(scale: Scale, task: str, mechanism: str, ratio: int) -> Cell:
        size = _SCALES[scale]
        asked = size.tasks[task]
        run = Run(
            architecture=stack(size, asked.side, mechanism, ratio),
            task=asked.text,
            seed=0,
            steps=asked.steps,
            batch=size.batch,
            width=size.width,
            hidden=2 * size.width,
            curriculum=asked.curriculum,
            stop_at=0.99,
            tested=256,
        )
        labels = {"mechanism": mechanism, "ratio": ratio, "layers": size.layers, "task": task}
        return cell(labels, run, seeds=LEAST_SEEDS[scale], rates=size.rates)


def stack(size: _Size, side: int, mechanism: str, ratio: int) -> str:
    """Periods of recurrent layers and a full one behind them, as many as make the layers."""
    full = f"full(head_dim={size.full})"
    state = f", state={side}" if mechanism == "mamba2" else ""
    recurrent = f"{mechanism}(head_dim={side}{state})"
    if ratio == ALL_FULL:
        text = f"{full}*{size.layers}"
    elif ratio == NO_FULL:
        text = f"{recurrent}*{size.layers}"
    else:
        text = f"({recurrent}*{ratio} + {full})*{size.layers // (ratio + 1)}"
    return f"{text} @ heads=1, conv=2"


def _by_ratio(rows: Sequence[Row]) -> dict[int, dict[str, Row]]:
    """Ratio -> mechanism -> row, of rows of one task with three seeds."""
    found: dict[int, dict[str, Row]] = {}
    for row in rows:
        if claimed([row]):
            found.setdefault(int(row.labels["ratio"]), {})[str(row.labels["mechanism"])] = row
    return found


def _bend_said(task: str, rows: Sequence[Row]) -> list[str]:
    """Up to which ratio each mechanism keeps a task that full layers alone learn."""
    found = _by_ratio(rows)
    alone = found.get(ALL_FULL, {}).get("none")
    if alone is None:
        return []
    level = share(alone.median)
    ratios = sorted(ratio for ratio in found if ratio > ALL_FULL)
    lost = {
        name: [
            ratio for ratio in ratios if name in found[ratio] and _lost(found[ratio][name], alone)
        ]
        for name in _names(found)
    }
    if not ratios or not lost:
        return []
    if alone.median < KEPT:
        return [
            f"{task}: full layers alone reach {level} in this budget, so that no ratio is seen to"
            " lose what they learn."
        ]
    falling = {name: given for name, given in lost.items() if given}
    most = max(ratios)
    if not falling:
        contrary = (
            " The published study saw recall fall there; here one full layer is enough, whatever"
            " stands below it."
            if task == "recall" and most > PUBLISHED_BEND
            else ""
        )
        return [
            f"{task}: no mechanism loses up to {most} recurrent layers per full one, against"
            f" {level} of full layers alone.{contrary}"
        ]
    told = ", ".join(f"{name} {_at(given, ratios)}" for name, given in falling.items())
    others = "" if len(falling) == len(lost) else f"; the others are not, up to {most}:1"
    return [
        f"{task}: below {KEPT:.0%} of what full layers alone reach ({level}) are, in the median,"
        f" {told}{others}."
    ]


def _at(lost: Sequence[int], ratios: Sequence[int]) -> str:
    """ "from 3:1 on" where every larger ratio is among those lost, else "at 1:1 and 7:1"."""
    if all(ratio in lost for ratio in ratios if ratio >= min(lost)):
        return f"from {min(lost)}:1 on"
    return f"at {listed([f'{ratio}:1' for ratio in lost])}"


def _order_said(task: str, rows: Sequence[Row]) -> list[str]:
    """The mechanisms in order, without a full layer and at the largest ratio."""
    said: list[str] = []
    found = _by_ratio(rows)
    for ratio in (NO_FULL, max(found, default=ALL_FULL)):
        of = found.get(ratio, {})
        if ratio == ALL_FULL or len(of) < 2:
            continue
        ranked = sorted(of, key=lambda name: -of[name].median)
        told = ", ".join(f"{name} {share(of[name].median)}" for name in ranked)
        where = "without a full layer" if ratio == NO_FULL else f"at {ratio}:1"
        # an order among what was hardly learned is said to be that
        hardly = "" if of[ranked[0]].median >= HALF else "; none of them learned half of it"
        said.append(f"{task}, {where}: {told} (medians over seeds); {_lead(of, ranked)}{hardly}.")
    return said


def _lead(of: dict[str, Row], ranked: Sequence[str]) -> str:
    """Whether the best delta rule and the best of the others are as published, in a clause."""
    delta = next((of[name] for name in ranked if name in PUBLISHED_FIRST), None)
    other = next((of[name] for name in ranked if name not in PUBLISHED_FIRST), None)
    if delta is None or other is None:
        return "of the published order it says nothing"
    if ahead(delta, other):
        return "a delta rule leads, as published"
    if ahead(other, delta):
        return "no delta rule leads, against the published order"
    return (
        "the seeds of the best delta rule and of the best other overlap, which neither confirms the"
        " published order nor contradicts it"
    )


def _lost(row: Row, alone: Row) -> bool:
    return row.median < KEPT * float(alone.median)


def _names(found: dict[int, dict[str, Row]]) -> list[str]:
    return list(dict.fromkeys(name for of in found.values() for name in of if name != "none"))
