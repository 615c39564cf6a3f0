"""One drawing for every chart: strokes, dots and words on two axes, as SVG.

Colours are variables of a page (`var(--ink)`), so that one drawing serves light, dark and print; a
file gets their values, and an SVG those of a dark page too. What is told of a mark shows under the
pointer, without a script.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple

from separatrix.core.errors import OutputError
from separatrix.core.evidence.folder import check_new, write_atomic

COLOURS = {
    "page": ("#fdfdfc", "#11161b"),
    "panel": ("#ffffff", "#171d24"),
    "sunk": ("#f4f5f6", "#1e262e"),
    "ink": ("#16202a", "#e8ecf0"),
    "muted": ("#56626e", "#9eabb8"),
    "line": ("#e2e5e9", "#2b353f"),
    "strong": ("#b4bcc5", "#4f5d6b"),
    "link": ("#0b5c97", "#7cbcf0"),
    "solves": ("#0a62a0", "#6cb6f2"),
    "fails": ("#bf4a0b", "#f4915a"),
    "open": ("#5b6570", "#a4b0bb"),
    "violet": ("#6a3d9a", "#b497e0"),
    "green": ("#2e7d32", "#7cc47f"),
    "ochre": ("#a8760d", "#dcae4a"),
    "pink": ("#b05aa0", "#dc9ad0"),
}
"""The colours of all pages and pictures: name -> on a light page, on a dark one."""
PAGE, INK, MUTED, LINE, SOLVES, FAILS, VIOLET, GREEN, OCHRE, PINK = (
    f"var(--{n})"
    for n in ("page", "ink", "muted", "line", "solves", "fails", "violet", "green", "ochre", "pink")
)
DASHED, DOTTED = "5 4", "2 3"
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_BOTTOM = 44
_LETTER = 6.6
"""Pixels of a letter, about."""


class Stroke(NamedTuple):
    """A line through points; with `fill` the area that it encloses."""

    points: Sequence[tuple[float, float]]
    colour: str = INK
    dash: str = ""
    width: float = 2.2
    told: str = ""
    fill: bool = False


class Dot(NamedTuple):
    """A mark at a point: a circle, a triangle or a cross."""

    x: float
    y: float
    colour: str = INK
    told: str = ""
    shape: str = "circle"
    size: float = 4.4
    hollow: bool = False


class Words(NamedTuple):
    """A text beside a point, so many pixels to the right and below."""

    x: float
    y: float
    text: str
    colour: str = INK
    right: float = 6
    below: float = 4
    anchor: str = "start"
    bold: bool = True


Mark = Stroke | Dot | Words


@dataclass(frozen=True)
class Axis:
    """From where to where, and what stands at it."""

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = True
    grid: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high one."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(value)
        return (at - low) / ((high - low) or 1.0)

    def at(self, share: float) -> float:
        """The value that lies there."""
        if self.log:
            return self.low * (self.high / self.low) ** share
        return self.low + share * (self.high - self.low)


def log_axis(
    title: str,
    low: float,
    high: float,
    said: Callable[[float], str] = "{:,.0f}".format,
    *,
    base: int = 10,
    most: int = 7,
    at: Sequence[float] = (),
    grid: bool = False,
) -> Axis:
    """A logarithmic axis: ticks `at` these values, else at powers of the base, few enough to be
    read.
    """
    values = list(at) if len(at) <= most else []
    if not values:
        first, last = math.ceil(math.log(low, base)), math.floor(math.log(high, base) + 1e-9)
        values = [float(base) ** e for e in range(first, last + 1)]
        values = values[:: max(1, -(-len(values) // most))]
    return Axis(title, low, high, [(value, said(value)) for value in values], True, grid)


def linear_axis(title: str, high: float, *, most: int = 6) -> Axis:
    """From 0 to so much, ticks at ones, twos or fives."""
    step = 10.0 ** math.floor(math.log10(high / most))
    step *= next(m for m in (1, 2, 5, 10) if high / (m * step) <= most)
    ticks = [(k * step, f"{k * step:,.0f}") for k in range(int(high / step) + 1)]
    return Axis(title, 0.0, high, ticks, log=False)


def share_axis(title: str = "accuracy") -> Axis:
    """From 0 to 100 %."""
    ticks = [(quarter / 4, f"{25 * quarter} %") for quarter in range(5)]
    return Axis(title, 0.0, 1.0, ticks, log=False, grid=True)


def named(
    x: float, y: Axis, ends: Iterable[tuple[float, str, str]], gap: float, right: float = 6
) -> Iterator[Words]:
    """Names beside where lines end, so (value, name, colour), lowest first; moved apart by `gap` of
    the axis, so that none covers another or leaves the top.
    """
    placed = sorted((y.share(at), name, colour) for at, name, colour in ends)
    heights = [height for height, *_ in placed]
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    top = 1.0
    for i in reversed(range(len(heights))):
        heights[i] = min(heights[i], top)
        top = heights[i] - gap
    for height, (_, name, colour) in zip(heights, placed, strict=True):
        yield Words(x, y.at(height), name, colour, right)


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Marks on two axes; `width` and `height` are those of the field, `room` is left for words on
    its right.
    """

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    width: int = 620
    height: int = 380
    room: int = 14
    title: str = ""
    below: Sequence[str] = ()

    @property
    def words(self) -> str:
        """What its lines tell, for those who do not see them."""
        told = [mark.told for mark in self.marks if isinstance(mark, Stroke) and mark.told]
        axes = [axis.title for axis in (self.y, self.x) if axis.title]
        return ". ".join(filter(None, (self.title, " over ".join(axes), "; ".join(told))))

    @property
    def svg(self) -> str:
        """The drawing as one element."""
        x, y, width, height = self.x, self.y, self.width, self.height
        left = 24 + round(_LETTER * max((len(said) for _, said in y.ticks), default=0))
        top = 12 + (24 + 17 * len(self.below) if self.title else 0)

        def place(a: float, b: float) -> tuple[float, float]:
            return left + width * x.share(a), top + height * (1 - y.share(b))

        parts = [*_words_above(self.title, self.below)]
        parts += _axes(x, y, left, top, width, height)
        parts += [_mark(mark, place) for mark in self.marks]
        wide, tall = left + width + self.room, top + height + _BOTTOM
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" width="{wide}"'
            f' height="{tall}" font-family="{_FONT}" font-size="12">{"".join(parts)}</svg>'
        )

    def _alone(self) -> str:
        """The drawing with colours of its own and the page behind it."""
        drawn = re.sub(r"var\(--(\w+)\)", lambda match: COLOURS[match[1]][0], self.svg)
        behind = f'<rect width="100%" height="100%" fill="{COLOURS["page"][0]}"/>'
        return drawn.replace(">", f">{_DARK}{behind}", 1)

    def _repr_html_(self) -> str:
        """In a notebook, and in the lesson: light or dark as what stands around it."""
        source = f"data:image/svg+xml;base64,{b64encode(self._alone().encode()).decode()}"
        return f'<figure class="drawn"><img src="{source}" alt="{escape(self.words)}"></figure>'

    def write(self, path: Path) -> None:
        """Writes it to a file, whole or not at all. Raises as `check_plot` does."""
        check_plot(path)
        write_atomic(path, f"{self._alone()}\n")


def palette() -> str:
    """The colours as variables of a page, after its colour scheme: the system's unless the page
    sets another; on paper light.
    """
    pairs = (f"--{name}:light-dark({light},{dark});" for name, (light, dark) in COLOURS.items())
    paper = "@media print{:root{color-scheme:light !important}}"
    return f":root{{color-scheme:light dark;{''.join(pairs)}}}\n{paper}\n"


_DARK = "<style>@media (prefers-color-scheme: dark){{{}}}</style>".format(
    "".join(
        f'[{of}="{light}"]{{{of}:{dark}}}'
        for light, dark in COLOURS.values()
        for of in ("fill", "stroke")
    )
)
"""Of a picture's own colours, those of a dark page; what reads no style sheets shows the light."""


def _words_above(title: str, below: Sequence[str]) -> Iterator[str]:
    if title:
        yield _text(14, 22, title, INK, "start", bold=True, size=14)
        for number, line in enumerate(below):
            yield _text(14, 42 + 17 * number, line, MUTED, "start")


def _axes(x: Axis, y: Axis, left: int, top: int, width: int, height: int) -> Iterator[str]:
    bottom = top + height
    for value, said in x.ticks:
        at = left + width * x.share(value)
        end = top if x.grid else bottom + 4
        yield _line([(at, bottom), (at, end)], LINE if x.grid else MUTED, 1)
        yield _text(at, bottom + 18, said, MUTED, "middle")
    for value, said in y.ticks:
        at = top + height * (1 - y.share(value))
        yield _line([(left, at), (left + width if y.grid else left - 4, at)], LINE, 1)
        yield _text(left - 7, at + 4, said, MUTED, "end")
    yield _line([(left, bottom), (left + width, bottom)], MUTED, 1)
    yield _text(left + width / 2, bottom + 38, x.title, MUTED, "middle")
    turned = f' transform="rotate(-90 11 {top + height / 2:.1f})"'
    yield _text(11, top + height / 2, y.title, MUTED, "middle", more=turned)


def _mark(mark: Mark, place: Callable[[float, float], tuple[float, float]]) -> str:
    match mark:
        case Stroke():
            points = [place(*point) for point in mark.points]
            if mark.fill:
                where = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
                return f'<polygon points="{where}" fill="{mark.colour}" opacity=".14"/>'
            return _line(points, mark.colour, mark.width, mark.dash, mark.told)
        case Words():
            a, b = place(mark.x, mark.y)
            at = (a + mark.right, b + mark.below)
            return _text(*at, mark.text, mark.colour, mark.anchor, bold=mark.bold)
        case Dot():
            return _dot(mark, *place(mark.x, mark.y))


def _dot(dot: Dot, a: float, b: float) -> str:
    r = dot.size
    fill = PAGE if dot.hollow else dot.colour
    look = f'fill="{fill}" stroke="{dot.colour}" stroke-width="1.5"'
    path = {
        "triangle": f"M{a - r:.1f},{b - r:.1f}L{a + r:.1f},{b:.1f}L{a - r:.1f},{b + r:.1f}Z",
        "cross": f"M{a - r:.1f},{b - r:.1f}l{2 * r},{2 * r}m0,{-2 * r}l{-2 * r},{2 * r}",
    }
    if dot.shape in path:
        return f'<path d="{path[dot.shape]}" {look}>{_told(dot.told)}</path>'
    return f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{r}" {look}>{_told(dot.told)}</circle>'


def _line(
    points: Sequence[tuple[float, float]], colour: str, width: float, dash: str = "", told: str = ""
) -> str:
    where = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    look = f'fill="none" stroke="{colour}" stroke-width="{width}"{dashes}'
    return f'<polyline points="{where}" {look}>{_told(told)}</polyline>'


def _text(
    a: float,
    b: float,
    text: str,
    colour: str,
    anchor: str,
    *,
    bold: bool = False,
    size: int = 12,
    more: str = "",
) -> str:
    look = f' font-size="{size}"' if size != 12 else ""
    weight = ' font-weight="bold"' if bold else ""
    where = f'x="{a:.1f}" y="{b:.1f}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {where}{look}{weight}{more}>{escape(text)}</text>"


def _told(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def check_plot(path: Path) -> None:
    """Raises OutputError before any work is done: for another suffix than that of a drawing, and
    where something stands already.
    """
    if path.suffix.lower() != ".svg":
        raise OutputError(f"{path}: a picture is an SVG; name a file that ends in .svg")
    check_new(path)
