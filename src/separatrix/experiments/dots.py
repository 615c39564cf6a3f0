"""Figures with a line for each of many names: every seed a point, and chance across all of them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from separatrix.report.drawing import libraries
from separatrix.report.plot_file import FAILS, INK, MUTED, SOLVES, plot_spec

COLOURS = (INK, SOLVES, FAILS)
"""Of the series, in order; more of them begin anew."""


class Dot(NamedTuple):
    """The seeds of one row of a figure in one of its colours."""

    name: str
    series: str
    seeds: tuple[float, ...]


def dots(
    title: str, below: list[str], points: Sequence[Dot], *, x_title: str, chance: float
) -> dict[str, Any]:
    """The Vega-Lite specification: names from the best median over all series down. Raises
    MissingExtraError.
    """
    alt, _ = libraries()
    series = list(dict.fromkeys(point.series for point in points))
    medians: dict[str, float] = {}
    for point in points:
        medians[point.name] = medians.get(point.name, 0.0) + median(point.seeds)
    names = sorted(medians, key=lambda name: -medians[name])
    rows = [
        {"name": point.name, "series": point.series, "seed": seed, "accuracy": accuracy}
        for point in points
        for seed, accuracy in enumerate(point.seeds)
    ]
    scale = alt.Scale(domain=[0, 1], nice=False)
    marks = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, size=30, opacity=0.85)
        .encode(
            y=alt.Y("name:N", sort=names, title=None, axis=alt.Axis(grid=True, labelLimit=0)),
            yOffset=alt.YOffset("series:N", sort=series),
            x=alt.X("accuracy:Q", title=x_title, scale=scale, axis=alt.Axis(format="%")),
            color=alt.Color(
                "series:N",
                sort=series,
                scale=alt.Scale(
                    domain=series,
                    range=[COLOURS[place % len(COLOURS)] for place in range(len(series))],
                ),
                legend=alt.Legend(orient="bottom", title=None, labelLimit=0),
            ),
            tooltip=[
                alt.Tooltip("name:N"),
                alt.Tooltip("series:N"),
                alt.Tooltip("seed:Q"),
                alt.Tooltip("accuracy:Q", format=".1%"),
            ],
        )
    )
    guess = (
        alt.Chart(alt.Data(values=[{"accuracy": chance}]))
        .mark_rule(color=MUTED, strokeDash=[2, 3])
        .encode(x=alt.X("accuracy:Q", scale=scale))
    )
    return plot_spec(alt.layer(guess, marks), title, below)
