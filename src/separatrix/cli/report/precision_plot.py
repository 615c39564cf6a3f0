"""The precision map drawn: digits of each format against the sizes that are proved, and those that
fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from separatrix.constructions.precision import Family, Line, slope
from separatrix.core.document.drawing import libraries
from separatrix.core.document.plot_file import FAILS, INK, MUTED, SOLVES, plot_spec

_ROOM = 1.25


def precision_spec(name: str, family: Family, lines: Sequence[Line], most: int) -> dict[str, Any]:
    """The Vega-Lite specification. Formats without a size on either side have no mark."""
    alt, _ = libraries()
    rows = [
        {"format": line.format, "digits": line.digits, "size": size, "what": what}
        for line in lines
        for size, what in ((line.proved, "proved"), (line.fails, "fails"))
        if size is not None
    ]
    least = min((row["size"] for row in rows), default=1)
    greatest = max((row["size"] for row in rows), default=2)
    x = alt.X(
        "size:Q",
        title=f"{family.size}, of {family.text}",
        scale=alt.Scale(type="log", base=2, nice=False, domain=[least / _ROOM, greatest * _ROOM]),
        axis=alt.Axis(format=",d", grid=False, tickCount=8),
    )
    y = alt.Y(
        "digits:Q",
        title="significant binary digits of the format",
        scale=alt.Scale(zero=False),
        axis=alt.Axis(tickMinStep=1),
    )
    tips = [alt.Tooltip(f"{key}") for key in ("format:N", "digits:Q", "what:N", "size:Q")]
    layers: list[Any] = []
    for what, colour, shape in (("proved", SOLVES, "circle"), ("fails", FAILS, "cross")):
        some = alt.Chart(alt.Data(values=[row for row in rows if row["what"] == what]))
        layers.append(
            some.mark_point(color=colour, shape=shape, filled=True, size=60).encode(
                x=x, y=y, tooltip=tips
            )
        )
    layers += _theory(family, lines, x, y)
    for line in lines:
        # formats with a name of their own are labelled; pN are told by their digits
        if line.proved is not None and not line.format.startswith("p"):
            row = {"size": line.proved, "digits": line.digits, "label": line.format}
            layers.append(
                alt.Chart(alt.Data(values=[row]))
                .mark_text(align="left", dx=2, dy=16, color=INK, fontSize=12)
                .encode(x=x, y=y, text="label:N")
            )
    return plot_spec(
        alt.layer(*layers),
        f"Precision of '{name}'",
        [
            "blue: the largest size proved, for every input; orange: the smallest size at which a"
            " wrong answer was found",
            *said_of_slopes(family, lines, most),
        ],
    )


def _theory(family: Family, lines: Sequence[Line], x: Any, y: Any) -> list[Any]:
    """The slope of the theory through the middle of the sizes proved."""
    alt, _ = libraries()
    proved = [line for line in lines if line.proved is not None and not line.capped]
    if not family.slope or len(proved) < 2:
        return []
    proved.sort(key=lambda line: line.digits)
    middle = proved[len(proved) // 2]
    assert middle.proved is not None
    rows = [
        {
            "digits": line.digits,
            "size": middle.proved * 2 ** ((line.digits - middle.digits) / family.slope),
        }
        for line in (proved[0], proved[-1])
    ]
    chart = alt.Chart(alt.Data(values=rows))
    return [chart.mark_line(color=MUTED, strokeDash=[5, 4]).encode(x=x, y=y)]


def slopes(lines: Sequence[Line]) -> tuple[float | None, float | None]:
    """Digits for each doubling of the size that is proved, and of the one that fails."""
    below = [line for line in lines if not line.capped]
    proved = [(line.digits, line.proved) for line in below if line.proved is not None]
    failing = [(line.digits, line.fails) for line in lines if line.fails is not None]
    return slope(proved), slope(failing)


def said_of_slopes(family: Family, lines: Sequence[Line], most: int) -> list[str]:
    """What the map says of digits against size, in sentences."""
    proved, failing = slopes(lines)
    said = []
    if proved is not None:
        said.append(f"each doubling of {family.size} takes {proved:.2f} more digits to be proved")
    if failing is not None:
        said.append(f"{failing:.2f} more before a failure is found")
    if family.slope and said:
        said.append(f"theory: {family.slope} (dashed)")
    if all(line.capped for line in lines):
        said.append(f"every format carries the largest size tried, {most:,}")
    return ["; ".join(said)] if said else []
