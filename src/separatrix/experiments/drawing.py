"""Figures of experiments: every seed a point with its interval, a line through the medians, and
what theorems and guessing say beside them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import log2
from statistics import median
from typing import TYPE_CHECKING, Any

from separatrix.experiments.base import Line, grouped, parts, worded
from separatrix.practice.table import Label, Row, Table, Trial, interval
from separatrix.report.drawing import libraries
from separatrix.report.plot_file import FAILS, INK, MUTED, SOLVES, plot_spec

if TYPE_CHECKING:
    from separatrix.experiments.base import Experiment

PALETTE = (
    INK,
    FAILS,
    SOLVES,
    "#6a3d9a",
    "#2e7d4f",
    "#b8860b",
    "#c2185b",
    "#5b8fa8",
    "#8a6d3b",
    "#7f8c8d",
)
"""Of the lines of a figure, in order; more lines than colours begin anew."""
_LETTERS = 100
"""Of a line below a title."""
_LEVEL = 8
"""Words along the axis that find room beside each other."""
_LOG_FROM = 8
"""Numbers whose ends have at least this ratio are drawn on a logarithmic axis."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One seed."""

    x: Label
    height: float
    low: float
    high: float
    seed: int
    told: str = ""
    """What stands beside it under the pointer."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """Seeds that one line goes through."""

    name: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, kw_only=True)
class Heights:
    """The vertical axis."""

    title: str
    low: float
    high: float
    share: bool = False
    """Whether heights are shares, shown in per cent."""
    log: bool = False


ACCURACY = Heights(title="right answers", low=0.0, high=1.0, share=True)


@dataclass(frozen=True)
class Places:
    """Where the values of the horizontal axis stand, and how far from each other."""

    at: dict[Label, float]
    words: bool
    """Whether the values are names, or numbers the same step apart: nothing lies between them."""
    gap: float = field(init=False)

    def __post_init__(self) -> None:
        steps = [other - one for one, other in pairwise(sorted(self.at.values()))]
        object.__setattr__(self, "gap", min(steps, default=1.0))

    @property
    def ends(self) -> tuple[float, float]:
        room = 0.5 * self.gap if self.words else 0.35 * self.gap
        return min(self.at.values()) - room, max(self.at.values()) + room


def places(values: Sequence[Label], *, even: bool = False) -> Places:
    """Words in the order given, numbers by size: on a logarithmic axis where they spread far, or
    the same step apart where `even`.
    """
    found = list(dict.fromkeys(values))
    numbers = [value for value in found if isinstance(value, int)]
    if len(numbers) < len(found):
        return Places({value: float(place) for place, value in enumerate(found)}, words=True)
    numbers.sort()
    if even:
        return Places({value: float(place) for place, value in enumerate(numbers)}, words=True)
    if numbers[0] > 0 and numbers[-1] >= _LOG_FROM * numbers[0]:
        return Places({value: log2(value) for value in numbers}, words=False)
    return Places({value: float(value) for value in numbers}, words=False)


def marks(row: Row, x: Label) -> tuple[Mark, ...]:
    """The seeds of a row at its best learning rate."""
    return tuple(mark(row, trial, x, trial.accuracy) for trial in row.trials)


def mark(row: Row, trial: Trial, x: Label, accuracy: Fraction) -> Mark:
    """A seed at an accuracy over its test prompts, with the interval that these give."""
    low, high = interval(accuracy, trial.tested)
    return Mark(
        x=x,
        height=float(accuracy),
        low=float(low),
        high=float(high),
        seed=trial.seed,
        told=f"{trial.stopped} after {trial.steps:,} steps, rate {row.best_rate:g}",
    )


def accuracy_figures(experiment: Experiment, table: Table) -> dict[str, dict[str, Any]]:
    """Accuracy against the label `x` of an experiment, a figure for each value of its panels, by
    the ends of their file names.
    """
    names = list(grouped(table.rows, experiment.line_of))
    found: dict[str, dict[str, Any]] = {}
    for key, part in parts(experiment.panels, table):
        rows = grouped(part.rows, experiment.line_of)
        named = zip(experiment.panels, key, strict=True)
        panel = ", ".join(worded(name, value) for name, value in named)
        lines = experiment.lines(part)
        found[slug(panel)] = chart(
            f"{experiment.title}: {panel}" if panel else experiment.title,
            subtitle(experiment.question, lines),
            x_title=experiment.x_title,
            at=places([row.labels[experiment.x] for row in part.rows], even=experiment.even),
            series=[
                Series(
                    name=name,
                    marks=tuple(
                        mark for row in rows[name] for mark in marks(row, row.labels[experiment.x])
                    ),
                )
                for name in rows
            ],
            lines=lines,
            colours=colours(names),
        )
    return found


def slug(text: str) -> str:
    """A text as the end of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def subtitle(question: str, lines: Sequence[Line]) -> list[str]:
    """What stands below a figure's title: the question, and what its marks and lines are."""
    said = dict.fromkeys(line.text for line in lines if line.text)
    text = " ".join(
        [
            question,
            "Each point is a seed with its 95 % interval; lines go through the medians.",
            *said,
        ]
    )
    return textwrap.wrap(text, _LETTERS)


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each line."""
    return {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(names)}


def chart(
    title: str,
    below: list[str],
    *,
    x_title: str,
    at: Places,
    series: Sequence[Series],
    lines: Sequence[Line] = (),
    heights: Heights = ACCURACY,
    colours: Mapping[str, str],
) -> dict[str, Any]:
    """The Vega-Lite specification of a figure in the common look. Raises MissingExtraError."""
    alt, _ = libraries()
    drawn = [one for one in series if one.marks]
    shown = {one.name: colours[one.name] for one in drawn}
    left, right = at.ends
    slanted = at.words and len(at.at) > _LEVEL
    x = alt.X(
        "at:Q",
        title=x_title,
        scale=alt.Scale(domain=[left, right], nice=False, zero=False),
        axis=alt.Axis(
            values=list(at.at.values()),
            labelExpr=_words(at),
            grid=False,
            # many names stand aslant, so that all are read
            labelOverlap=not slanted,
            labelAngle=-40 if slanted else 0,
        ),
    )
    y = _heights(alt, heights)
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=list(shown), range=list(shown.values())),
        legend=alt.Legend(
            orient="bottom",
            title=None,
            columns=3,
            labelLimit=0,
            symbolType="circle",
            symbolOpacity=1,
        ),
    )
    points: list[dict[str, Any]] = []
    middles: list[dict[str, Any]] = []
    for place, one in enumerate(drawn):
        some, medians = _placed(one, place, len(drawn), at)
        points += some
        middles += medians
    base = alt.Chart().encode(x=x, color=colour)
    told = [
        alt.Tooltip("series:N", title="line"),
        alt.Tooltip("x:N", title=x_title),
        alt.Tooltip("seed:Q"),
        *(
            alt.Tooltip(f"{key}:Q", format=".1%" if heights.share else ".3g", title=name)
            for key, name in (("height", heights.title), ("low", "from"), ("high", "to"))
        ),
        alt.Tooltip("told:N", title="training"),
    ]
    layers: list[Any] = []
    for line in lines:
        layers += _line(alt, line, at, x, y, colours)
    seeds = alt.layer(
        base.mark_rule(strokeWidth=1.1, opacity=0.55).encode(y=y, y2="high:Q"),
        base.mark_point(filled=True, size=34, opacity=1).encode(
            y=alt.Y("height:Q", title=heights.title), tooltip=told
        ),
        data=alt.Data(values=points),
    )
    layers += [seeds, _medians(alt, middles, at).encode(color=colour, x=x)]
    return plot_spec(alt.layer(*layers), title, below)


def _heights(alt: Any, heights: Heights) -> Any:
    axis = alt.Axis(format="%") if heights.share else alt.Axis()
    scale = alt.Scale(
        type="log" if heights.log else "linear",
        domain=[heights.low, heights.high],
        nice=False,
        zero=False,
        clamp=True,
    )
    return alt.Y("low:Q", scale=scale, axis=axis, title=heights.title)


def _words(at: Places) -> str:
    """A Vega expression that gives the text of each place."""
    found = "datum.label"
    for value, place in at.at.items():
        text = value.replace("\\", "").replace("'", "") if isinstance(value, str) else f"{value:,}"
        found = f"abs(datum.value - {place!r}) < 1e-9 ? '{text}' : {found}"
    return found


def _placed(
    series: Series, place: int, many: int, at: Places
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The points of a series and its medians; seeds stand side by side, so that none hides
    another.
    """
    slot = (0.8 if at.words else 0.28) * at.gap
    middle = slot * ((place + 0.5) / many - 0.5)
    points: list[dict[str, Any]] = []
    medians: list[dict[str, Any]] = []
    for value in at.at:
        here = [mark for mark in series.marks if mark.x == value]
        if not here:
            continue
        step = slot / many / max(3, len(here))
        for number, mark in enumerate(here):
            aside = middle + step * (number - (len(here) - 1) / 2)
            points.append(
                {
                    "series": series.name,
                    "at": at.at[value] + aside,
                    "x": str(value),
                    "seed": mark.seed,
                    "height": mark.height,
                    "low": mark.low,
                    "high": mark.high,
                    "told": mark.told,
                }
            )
        medians.append(
            {
                "series": series.name,
                # words have no line between them, but a dash over the seeds of each
                "at": at.at[value] + (middle - slot / many / 2 if at.words else 0),
                "until": at.at[value] + middle + slot / many / 2,
                "median": median(mark.height for mark in here),
            }
        )
    return points, medians


def _medians(alt: Any, rows: list[dict[str, Any]], at: Places) -> Any:
    chart = alt.Chart(alt.Data(values=rows))
    if at.words:
        return chart.mark_rule(strokeWidth=2.4).encode(x2="until:Q", y="median:Q")
    return chart.mark_line(strokeWidth=2.2).encode(y="median:Q")


def _line(
    alt: Any, line: Line, at: Places, x: Any, y: Any, colours: Mapping[str, str]
) -> list[Any]:
    """A line of a theorem or of guessing, level to both edges, with its label where it has no
    colour of a series.
    """
    known = {value: height for value, height in line.points if value in at.at}
    if not known:
        return []
    ordered = sorted((at.at[value], height) for value, height in known.items())
    left, right = at.ends
    if at.words:
        # nothing lies between words: a step at each of them
        half = 0.5 * at.gap
        ends = [(place + side, height) for place, height in ordered for side in (-half, half)]
    else:
        ends = [(left, ordered[0][1]), *ordered, (right, ordered[-1][1])]
    rows = [
        {"at": place, "low": height, "label": line.label, "order": number}
        for number, (place, height) in enumerate(ends)
    ]
    colour = colours.get(line.series, MUTED)
    drawn = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(color=colour, strokeDash=list(line.dash), strokeWidth=1.6)
        .encode(x=x, y=y, order="order:Q")
    )
    if line.series:
        return [drawn]
    text = (
        alt.Chart(alt.Data(values=rows[:1]))
        .mark_text(align="left", baseline="bottom", dx=4, dy=-2, fontSize=11.5, color=colour)
        .encode(x=x, y=y, text="label:N")
    )
    return [drawn, text]
