"""Does a second sparse layer answer 2-Sum where one does not?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from separatrix.experiments.base import Cell, Experiment, Line, claimed
from separatrix.experiments.lines import chances
from separatrix.experiments.saying import ahead, percent, solved_said
from separatrix.experiments.sparse_capacity import HEADS, asked, excluded
from separatrix.practice.table import Label, Row, Scale, Table


class MultiLayerSparse(Experiment):
    """One and two sparse layers on 2-Sum, at equal heads and at equal cache."""

    name = "multi-layer-sparse"
    title = "More sparse layers"
    question = "Does a second (B, k)-sparse layer answer 2-Sum where one does not?"
    says = (
        "Theorem II is about one sparse layer; no theorem here bounds two of them on 2-Sum, and no"
        " construction is known that is cheaper than with full attention. Theorems III to VII take"
        " sparse layers as reading layers, on composition."
    )
    labels: ClassVar[dict[str, str]] = {
        "kind": "sparse or full",
        "layers": "of that kind, one on the other",
        "head_dim": "d of each head, so of a message's key and value",
    }
    x = "layers"
    x_title = "layers"
    series = ("kind", "head_dim")
    even = True

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        if scale == "smoke":
            stacks = [("sparse", layers, 8) for layers in (1, 2)]
            return tuple(_cell(*one, n=16, steps=60, batch=32, width=32, seeds=1) for one in stacks)
        if scale == "laptop":
            stacks = [
                *(("sparse", layers, 8) for layers in (1, 2)),
                *(("sparse", layers, 16) for layers in (1, 2)),
                *(("full", layers, 8) for layers in (1, 2)),
            ]
            return tuple(
                _cell(*one, n=16, steps=300, batch=64, width=32, seeds=3) for one in stacks
            )
        stacks = [
            (kind, layers, d)
            for kind in ("sparse", "full")
            for layers in (1, 2, 3, 4)
            for d in (4, 8, 16, 32)
        ]
        return tuple(_cell(*one, n=64, steps=4000, batch=128, width=64, seeds=5) for one in stacks)

    def line_of(self, row: Row) -> str:
        return f"{row.labels['kind']}, heads of {row.labels['head_dim']} dimensions"

    def lines(self, table: Table) -> tuple[Line, ...]:
        one = [row for row in table.rows if row.labels["layers"] == 1]
        return (
            *chances(self, table),
            *(Line(label="Theorem II", text=f"One layer: {text}") for text in excluded(one)),
        )

    def findings(self, table: Table) -> tuple[str, ...]:
        rows = {
            (str(row.labels["kind"]), int(row.labels["layers"]), int(row.labels["head_dim"])): row
            for row in table.rows
            if claimed([row])
        }
        pairs = [
            (row, more)
            for (kind, layers, d), row in rows.items()
            if (more := rows.get((kind, layers + 1, d))) is not None
        ]
        pairs.sort(key=lambda pair: not ahead(pair[0], pair[1]))
        return (
            *(_step(self, *pair) for pair in pairs),
            *_as_much_cache(rows),
            *_not_solved(list(rows.values())),
        )


def _cell(
    kind: str, layers: int, d: int, *, n: int, steps: int, batch: int, width: int, seeds: int
) -> Cell:
    more = ", block=4, topk=1" if kind == "sparse" else ""
    times = f"*{layers}" if layers > 1 else ""
    labels: dict[str, Label] = {"kind": kind, "layers": layers, "head_dim": d}
    stack = f"{kind}(heads={HEADS}, head_dim={d}{more}){times}"
    return asked(labels, stack, n=n, steps=steps, batch=batch, width=width, seeds=seeds)


def _step(experiment: MultiLayerSparse, one: Row, more: Row) -> str:
    """What one more layer gave."""
    if ahead(one, more):
        said = "does harm"
    elif ahead(more, one):
        said = "helps: every seed is ahead"
    else:
        said = "makes no difference that the seeds show"
    return (
        f"{experiment.line_of(one)}: layer {more.labels['layers']} {said}"
        f" ({percent(one.median)} to {percent(more.median)}; {solved_said(more)} solved it)."
    )


def _as_much_cache(rows: dict[tuple[str, int, int], Row]) -> Iterator[str]:
    """Two layers against one of twice as wide heads: equal cache, equal bits of message."""
    for (kind, layers, d), row in rows.items():
        wide = rows.get((kind, 1, 2 * d))
        if layers != 2 or wide is None:
            continue
        if ahead(row, wide):
            said = "beat"
        elif ahead(wide, row):
            said = "fall behind"
        else:
            said = "are not told apart from"
        yield (
            f"At equal cache, two {kind} layers with heads of {d} dimensions"
            f" ({percent(row.median)}) {said} one with heads of {2 * d} ({percent(wide.median)})."
        )


def _not_solved(rows: Sequence[Row]) -> Iterator[str]:
    if rows and not any(row.solved for row in rows if row.labels["kind"] == "sparse"):
        steps = rows[0].run["steps"]
        control = [row for row in rows if row.labels["kind"] != "sparse"]
        # what full attention does not learn either tells nothing of sparse layers
        short = "" if any(row.solved for row in control) or not control else ", and no full one did"
        yield (
            f"No sparse stack solved it in {steps:,} steps{short}: failed to train is not cannot,"
            " and no theorem here says that two layers fail."
        )
