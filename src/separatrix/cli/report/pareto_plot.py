"""The fronts of `design` drawn: cache bytes against operations per token, one mark per layout,
written as HTML, SVG or PNG.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from separatrix.cards.design import Cost, DesignResult, ladder
from separatrix.cli.report.pareto import OPEN, PROVED
from separatrix.core.document.drawing import libraries
from separatrix.core.document.plot_file import (
    FAILS,
    HEIGHT,
    INK,
    MUTED,
    PAGE,
    SOLVES,
    WIDTH,
    plot_spec,
    write_spec,
)
from separatrix.core.numbers.amounts import LARGE_UNITS, format_bytes, format_count

_EXCLUDED = "excluded by a theorem"
_DEARER = "proved sufficient, dearer"
_KINDS = {PROVED: SOLVES, OPEN: MUTED, _EXCLUDED: FAILS, _DEARER: SOLVES}
_FEWEST_PIXELS = 15
_BELOW = 9
"""Pixels that the label of a small mark stands lower."""


def write_plot(result: DesignResult, path: Path) -> None:
    """Draws both fronts, the budget and the neighbours that theorems exclude. Raises OutputError
    and MissingExtraError as `check_plot` does.
    """
    tasks = " and ".join(task.spec for task in result.tasks)
    write_spec(pareto_spec(result), f"design: {tasks}", path)


def pareto_spec(result: DesignResult) -> dict[str, Any]:
    """The Vega-Lite specification."""
    alt, _ = libraries()
    rows = _rows(result)
    budget = result.budget_bits / 8
    xs = [row["cache"] for row in rows] + [budget]
    ys = [row["flops"] for row in rows]
    if not rows:
        ys = [1.0]
    x = alt.X(
        "cache:Q",
        title=f"cache at {result.context:,} tokens, one sequence",
        **_scaled(alt, xs, _BYTES),
    )
    y = alt.Y(
        "flops:Q",
        title="FLOPs to mix one token there (projections not counted)",
        **_scaled(alt, ys, _COUNT),
    )
    kinds = list(_KINDS)
    colour = alt.Color(
        "kind:N", scale=alt.Scale(domain=kinds, range=list(_KINDS.values())), legend=None
    )
    fill = alt.Fill(
        "kind:N", scale=alt.Scale(domain=kinds, range=[SOLVES, PAGE, PAGE, SOLVES]), legend=None
    )
    shape = alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=kinds, range=["circle", "circle", "cross", "circle"]),
        legend=None,
    )
    tips = [alt.Tooltip(f"{key}:N", title=title) for key, title in _TIPS]
    points, dearer = (
        alt.Chart(alt.Data(values=[row for row in rows if (row["kind"] == _DEARER) == small]))
        for small in (False, True)
    )
    rule = alt.Chart(
        alt.Data(values=[{"cache": budget, "label": f"budget {format_bytes(result.budget_bits)}"}])
    )
    layers = [
        rule.mark_rule(color=INK, strokeDash=[4, 3]).encode(x=x),
        rule.mark_text(
            color=INK, align="right", baseline="top", dx=-5, fontSize=12, fontWeight="bold"
        ).encode(x=x, y=alt.value(3), text="label:N"),
        dearer.mark_circle(size=22, color=SOLVES, opacity=1).encode(x=x, y=y, tooltip=tips),
        points.mark_point(size=100, strokeWidth=1.8, opacity=1).encode(
            x=x, y=y, stroke=colour, fill=fill, shape=shape, tooltip=tips
        ),
    ]
    for (kind, tint), side in product(_KINDS.items(), ("left", "right")):
        labels = alt.Chart(
            alt.Data(
                values=[
                    row
                    for row in rows
                    if (row["kind"], row["side"]) == (kind, side) and row["label"]
                ]
            )
        )
        place = {"align": "right", "dx": -9} if side == "left" else {"align": "left", "dx": 9}
        small = {"dx": 4, "dy": _BELOW, "fontSize": 11} if kind == _DEARER else {}
        text = labels.mark_text(
            **{
                "color": tint,
                "fontSize": 12,
                "fontWeight": "bold" if kind == PROVED else "normal",
                **place,
                **small,
            }
        )
        layers.append(text.encode(x=x, y=y, text="label:N"))
    return plot_spec(
        alt.layer(*layers),
        " and ".join(task.spec for task in result.tasks),
        [
            f"fronts: filled is {PROVED}, hollow is {OPEN}; cross: {_EXCLUDED};"
            " numbers: reading layers",
            "small: the cheapest proved sufficient with that many reading layers",
        ],
    )


_TIPS = (
    ("kind", "layout is"),
    ("reading", "reading layers"),
    ("memory", "cache"),
    ("operations", "FLOPs per token"),
    ("spec", "layers"),
    ("why", "because"),
)


def _rows(result: DesignResult) -> list[dict[str, Any]]:
    """A mark for every point and every neighbour that fails; a cost is drawn once, by what says
    most.
    """
    found: dict[Cost, dict[str, Any]] = {}
    for kind, points in ((PROVED, result.proved), (OPEN, result.not_excluded)):
        for point in points:
            found.setdefault(point.cost, _row(kind, point.cost, point.layout.architecture.spec, ""))
    for point in (*result.proved, *result.not_excluded):
        for other in point.neighbours:
            if other.status == "FAILS":
                why = f"Theorem {other.theorem} on {other.task}"
                found.setdefault(
                    other.cost, _row(_EXCLUDED, other.cost, other.layout.architecture.spec, why)
                )
    for rung in ladder(result):
        found.setdefault(
            rung.cost,
            _row(
                _DEARER,
                rung.cost,
                rung.layout.architecture.spec,
                "the cheapest with that many reading layers",
            ),
        )
    rows = list(found.values())
    _label(rows, result.budget_bits / 8)
    return rows


def _row(kind: str, cost: Cost, spec: str, why: str) -> dict[str, Any]:
    words = {
        "kind": kind,
        "reading": cost.reading,
        "memory": format_bytes(cost.cache_bits),
        "operations": format_count(cost.flops),
    }
    return {
        **words,
        "cache": cost.cache_bits / 8,
        "flops": float(cost.flops),
        "spec": spec,
        "why": why,
        "label": "",
        "side": "right",
    }


def _label(rows: list[dict[str, Any]], budget: float) -> None:
    """Labels for as many marks as have room, those of the fronts first; on the left where the
    line of the budget is in the way.
    """
    if not rows:
        return
    across = _pixels([*(row["cache"] for row in rows), budget], WIDTH)
    up = _pixels([row["flops"] for row in rows], HEIGHT)
    taken: list[tuple[float, float, float]] = []
    for i, row in sorted(enumerate(rows), key=lambda item: list(_KINDS).index(item[1]["kind"])):
        k = row["reading"]
        text = f"{k:,}" if taken else f"{k:,} reading layer{'s' if k != 1 else ''}"
        x = across[i]
        y = up[i] - _BELOW * (row["kind"] == _DEARER)
        width = 10 + 7.0 * len(text)
        if all(
            abs(x - other) > max(width, wide) + 8 or abs(y - height) > _FEWEST_PIXELS
            for other, height, wide in taken
        ):
            row["label"], row["side"] = text, "left" if x <= across[-1] < x + width + 4 else "right"
            taken.append((x, y, width))


def _pixels(values: Sequence[float], length: int) -> list[float]:
    """Where values are drawn along an axis, about."""
    low = min(values)
    high = max(values)
    if _is_log(values):
        low = math.log(low)
        high = math.log(high)
        values = [math.log(value) for value in values]
    return [length * (value - low) / ((high - low) or 1) / 1.2 for value in values]


def _is_log(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) > 8


_BYTES = [(1024**power, f" {unit}") for power, unit in enumerate(("bytes", *LARGE_UNITS))]
_COUNT = [(1000**power, unit) for power, unit in enumerate(("", " k", " M", " G", " T", " P"))]


def _scaled(alt: Any, values: Sequence[float], units: Sequence[tuple[int, str]]) -> dict[str, Any]:
    """A scale with room at both ends, and an axis with few ticks that name their unit."""
    low = min(values)
    high = max(values)
    log = _is_log(values)
    space = (high / low) ** 0.1 if log else 0.15 * (high - low) or 0.5 * high or 1.0
    domain = [low / space, high * space] if log else [max(0.0, low - space), high + space]
    steps = "".join(
        f"datum.value >= {size} ? format(datum.value / {size}, ',.3~g') + ' {unit.strip()}' : "
        for size, unit in units[:0:-1]
    )
    axis: dict[str, Any] = {
        "labelExpr": f"{steps}format(datum.value, ',.3~g') + ' {units[0][1]}'",
        "tickCount": 6,
    }
    if log:
        axis["values"] = _ticks(*domain, base=2 if units is _BYTES else 10)
    return {
        "scale": alt.Scale(type="log" if log else "linear", domain=domain, nice=False),
        "axis": alt.Axis(**axis),
    }


def _ticks(low: float, high: float, *, base: int) -> list[float]:
    """At most seven powers of the base, evenly spread; of ten also twos and fives where few
    powers fit.
    """
    first = math.ceil(math.log(low, base))
    last = math.floor(math.log(high, base))
    powers = [float(base) ** e for e in range(first, last + 1)]
    if base == 10 and len(powers) < 3:
        powers = [
            m * 10.0**e
            for e in range(first - 1, last + 1)
            for m in (1, 2, 5)
            if low <= m * 10.0**e <= high
        ]
    return powers[:: max(1, -(-len(powers) // 7))]
