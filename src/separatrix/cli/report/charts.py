"""The charts of the report: bits needed against bits there are, and trained accuracy against n;
what they show in words, for those who do not see them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from statistics import median
from typing import Any

from separatrix.cli.report.evidence import ceiling_of, share_text
from separatrix.cli.report.statuses import where
from separatrix.cli.report.view import Cell, task_size
from separatrix.core.document.plot import (
    DASHED,
    DOTTED,
    FAILS,
    GREEN,
    INK,
    MUTED,
    OCHRE,
    PINK,
    SOLVES,
    Axis,
    Dot,
    Drawing,
    Mark,
    Stroke,
    Words,
    log_axis,
    named,
    share_axis,
)
from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.records import Measurement
from separatrix.core.numbers.accuracy import WHOLE, percent
from separatrix.core.numbers.amounts import format_count
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task
from separatrix.theory import THEOREMS
from separatrix.theory.fails.a_accuracy import trained_ceiling

_WIDTH, _HEIGHT, _ROOM = 330, 220, 96
_LABEL_GAP = 0.075
_LARGEST = 1e300
_NEAR = 128
"""A bound that lies at most so many times beyond the sizes measured is drawn at its place."""
_EDGE = 1.35
_ASIDE = 0.0147
"""Share of a chart's doublings between two seeds of one size."""
STACKS = (INK, GREEN, PINK, OCHRE, SOLVES)
"""Colours of the stacks of a column."""


def bound_chart(bound: dict[str, Any], *, bites: Sequence[int] = ()) -> Drawing | None:
    """Bits needed against bits there are, log axes, the crossing marked; None when fewer than two
    points can be drawn.

    `bites` holds the exact n of verdicts; the first that lies at the drawn crossing labels it.
    Raises EvidenceError for a damaged bound.
    """
    names = [name for name in ("n", "need", "have", "fixed") if bound.get(name) is not None]
    if len({len(bound[name]) for name in names}) != 1:
        counts = ", ".join(f"{len(bound[name])} of {name}" for name in names)
        raise EvidenceError(f"a bound has {counts}; they must be equally many")
    points = sorted(tuple(map(_real, point)) for point in zip(*map(bound.get, names), strict=True))
    points = [point for point in points if min(point) > 0 and max(point) < _LARGEST]
    if len(points) < 2:
        return None
    x = log_axis(bound["x"], points[0][0], points[-1][0], _size_said, base=2)
    every = [bits for point in points for bits in point[1:]]
    y = log_axis("bits", min(every) / 1.5, max(every) * 1.5, _bits, grid=True)
    marks: list[Mark] = []
    crossing = _crossing(points, bites)
    if crossing is not None:
        n, bits, label = crossing
        after = [point for point in points if point[0] > n]
        above = [(n, bits), *((p[0], p[1]) for p in after)]
        marks.append(Stroke([*above, *((p[0], p[2]) for p in reversed(after))], FAILS, fill=True))
        marks.append(Stroke([(n, y.low), (n, y.high)], INK, DOTTED, 1.5))
        marks.append(Words(n, y.high, label, below=12))
    shown = (
        (1, FAILS, "bits needed", bound["need_title"]),
        (2, SOLVES, "bits of cache", bound["have_title"]),
        (3, MUTED, bound.get("fixed_title", ""), bound.get("fixed_title", "")),
    )
    ends: list[tuple[float, str, str]] = []
    for place, colour, short, title in shown[: len(names) - 1]:
        line = [(point[0], point[place]) for point in points]
        marks.append(Stroke(line, colour))
        marks += [
            Dot(n, b, colour, f"{bound['x']} = {n:,.0f}: {title}, {b:,.1f} bits", size=3)
            for n, b in line
        ]
        ends.append((line[-1][1], short, colour))
    marks += named(x.high, y, ends, _LABEL_GAP)
    return _drawing(x, y, marks, room=140)


def accuracy_chart(
    measured: Sequence[Measurement], *, bites: Sequence[int] = (), solvable: bool = False
) -> Drawing | None:
    """Accuracy against n: every seed with its own Wilson interval, a line through the medians,
    chance dashed; None without any.

    Where Theorem A speaks of the task, two more lines for each stack: what no weights exceed, which
    no measurement may cross, and dotted what storing as many facts as fit reaches. `bites` holds
    the n of verdicts: the first is drawn at its place, or at the edge where it lies far beyond.
    `solvable` draws what some weights reach.
    """
    if not measured:
        return None
    sizes = sorted({float(task_size(m.task)) for m in measured})
    near = [n for n in bites[:1] if n <= _NEAR * sizes[-1]]
    x = _sizes_axis(sizes, max(sizes[-1], *near) if near else sizes[-1], near)
    y = share_axis()
    tasks = {m.task: parse_task(m.task) for m in measured}
    larger = list(_larger(list(tasks.values()), sizes[-1], x.high))
    chances = {float(task_size(m.task)): float(Fraction(m.chance)) for m in measured}
    chances |= {float(task_size(task.spec)): float(task.chance) for task in larger}
    marks: list[Mark] = [Stroke(_level(x, sorted(chances.items())), MUTED, DASHED, 1.5)]
    ends = [(chances[max(chances)], "chance", MUTED)]
    if solvable:
        marks.append(Stroke([(x.low, 1.0), (x.high, 1.0)], SOLVES, DASHED, 1.8))
        ends.append((1.0, "some weights", SOLVES))
    for stack in sorted({m.architecture for m in measured}):
        own = [m for m in measured if m.architecture == stack]
        model = Architecture.parse(stack)
        asked = [*(tasks[m.task] for m in own), *larger]
        lines = _ceilings(model, asked)
        # where everything fits, both lines are one
        bounded = any(at_most < 1 for _, at_most, _ in lines)
        for place, (label, dash) in enumerate((("highest", ""), ("stored", DOTTED))):
            if lines and (bounded or label == "highest"):
                level = _level(x, [(line[0], line[1 + place]) for line in lines])
                told = "no weights exceed" if label == "highest" else "storing facts reaches"
                marks.append(Stroke(level, FAILS, dash, 1.8, f"{stack}: {told}"))
                ends.append((level[-1][1], label, FAILS))
        marks += _seeds(own, x, INK)
        if len(sizes) > 1:
            ends.append((_medians(own)[-1][1], "median", INK))
    if bites:
        marks += _bound_line(bites[0], x)
    marks += named(x.high, y, set(ends), _LABEL_GAP)
    return _drawing(x, y, marks)


def column_chart(cells: Sequence[Cell]) -> Drawing | None:
    """The cells of a column over n: every seed a dot, a line through the medians, Theorem A's line
    dotted, and upright the n at which a theorem excludes the stack. None without any.
    """
    kept = [cell for cell in cells if cell.own]
    if not kept:
        return None
    sizes = sorted({float(task_size(m.task)) for cell in kept for m in cell.own})
    bites = {cell.key: float(v.n) for cell in cells if (v := cell.failing) and v.n is not None}
    x = _sizes_axis(sizes, max((sizes[-1], *bites.values())), sorted(bites.values()))
    y = share_axis()
    marks: list[Mark] = []
    ends: list[tuple[float, str, str]] = []
    for cell, colour in zip(cells, STACKS, strict=False):
        title = cell.row["title"]
        if cell.key in bites:
            at = [(bites[cell.key], 0.0), (bites[cell.key], 1.0)]
            shown = cell.failing
            told = f"{title}: no weights{where(shown.n, shown.theorem) if shown else ''}"
            marks.append(Stroke(at, colour, DASHED, 2, told))
        if cell.own:
            lines = _ceilings(
                Architecture.parse(cell.stack), [parse_task(m.task) for m in cell.own]
            )
            marks.append(Stroke([(n, most) for n, most, _ in lines], colour, DOTTED, 1.5))
            marks += _seeds(cell.own, x, colour, intervals=False)
            ends.append((_medians(cell.own)[-1][1], title.removesuffix(" attention"), colour))
    last = sizes[-1]
    marks += named(last, y, ends, 0.085, right=10)
    return _drawing(x, y, marks, room=24 if x.high > 8 * last else _ROOM)


def _seeds(
    own: Sequence[Measurement], x: Axis, colour: str, *, intervals: bool = True
) -> Iterator[Mark]:
    """A line through the medians, and each seed; seeds stand side by side, so that none hides
    another.
    """
    yield Stroke(_medians(own), colour)
    apart = (x.high / x.low) ** _ASIDE
    for m in own:
        n = task_size(m.task)
        for place, (seed, correct) in enumerate(zip(m.seeds, m.correct, strict=True)):
            at = n * apart ** (place - (len(m.seeds) - 1) / 2)
            low, high = map(float, m.intervals[place])
            ended = f", {m.ended[place]}" if m.ended else ""
            told = f"{m.architecture}, n = {n:,}, seed {seed}{ended}: {correct / m.total:.2%}"
            if intervals:
                yield Stroke([(at, low), (at, high)], colour, "", 2)
            yield Dot(at, correct / m.total, colour, f"{told} ({low:.2%} to {high:.2%})", size=3.6)


def _medians(own: Sequence[Measurement]) -> list[tuple[float, float]]:
    return sorted((float(task_size(m.task)), median(m.correct) / m.total) for m in own)


def _ceilings(model: Architecture, tasks: Sequence[Task]) -> list[tuple[float, float, float]]:
    """(n, what no weights exceed, what storing facts reaches) where Theorem A speaks."""
    found = ((task_size(task.spec), trained_ceiling(model, task)) for task in tasks)
    return sorted(
        (float(n), one.at_most / WHOLE, one.stored / WHOLE) for n, one in found if one is not None
    )


def _sizes_axis(sizes: Sequence[float], last: float, more: Sequence[float]) -> Axis:
    """n, from a little below the sizes to a little beyond the last; ticks at the sizes."""
    at = [*sizes, *(n for n in more if n > sizes[-1])]
    apart = [b for a, b in zip([0.0, *at], at, strict=False) if b > 1.3 * a]
    return log_axis("n", sizes[0] / _EDGE, last * _EDGE, _size_said, base=2, most=8, at=apart)


def _larger(tasks: Sequence[Task], largest: float, right: float) -> Iterator[Task]:
    """Tasks of the measured family beyond the largest, eight for each doubling, as far as the axis
    goes: what is known without training is drawn there, too.
    """
    if right < 2 * largest:
        return
    family = max(tasks, key=lambda task: task_size(task.spec)).family()
    seen = family.smallest - 1
    for eighths in range(8, 320):
        n = round(2 ** (eighths / 8))
        if n <= seen:
            continue
        seen = n
        member = family.at(n)
        size = task_size(member.spec)
        if size > right:
            return
        if size > largest:
            yield member


def _level(x: Axis, points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """A line drawn on level to both edges."""
    return [(x.low, points[0][1]), *points, (x.high, points[-1][1])]


def _bound_line(first: int, x: Axis) -> list[Mark]:
    """From where on failure is proved; at the edge with an arrow where that lies beyond it."""
    beyond, before = first >= x.high, first <= x.low
    place = x.high if beyond else x.low if before else float(first)
    label = f"proved to fail: n = {_size_said(first)}"
    label = f"{label} →" if beyond else f"← {label}" if before else label
    # the word stands on the side that has more room
    ending = x.share(place) > 0.5
    anchor, right = ("end", -5) if ending else ("start", 5)
    return [
        Stroke([(place, 0.0), (place, 1.0)], FAILS, DASHED, 1.8),
        Words(place, 1.0, label, FAILS, right=right, below=12, anchor=anchor),
    ]


def _drawing(x: Axis, y: Axis, marks: Sequence[Mark], room: int = _ROOM) -> Drawing:
    return Drawing(x=x, y=y, marks=marks, width=_WIDTH, height=_HEIGHT, room=room)


def _crossing(
    points: Sequence[tuple[float, ...]], bites: Sequence[int]
) -> tuple[float, float, str] | None:
    """From where on more is needed than there is: the exact n if a verdict names it, else read
    off the line between two points, without a number.
    """
    short = [need > have for _, need, have, *_ in points]
    after = next((i for i in range(len(points)) if all(short[i:])), None)
    if not after:
        return None
    left, right = points[after - 1], points[after]
    gaps = [math.log(need / have) for _, need, have, *_ in (left, right)]
    share = gaps[0] / (gaps[0] - gaps[1])
    exact = next((n for n in bites if left[0] <= n <= right[0]), None)
    n = left[0] * (right[0] / left[0]) ** share if exact is None else float(exact)
    bits = left[2] * (right[2] / left[2]) ** share
    return n, bits, "more is needed" if exact is None else f"n = {exact:,}"


def _real(value: Any) -> float:
    """A drawn coordinate from an integer or a decimal string; infinite when it is too large to
    draw.
    """
    try:
        return float(Decimal(str(value).strip("[] ").split(" ")[0]))
    except (InvalidOperation, OverflowError):
        raise EvidenceError(
            f"a bound holds {str(value)[:40]!r}, which is no number; write the bundle again"
        ) from None


def _size_said(n: float) -> str:
    return f"{n:,.0f}" if n < 10**9 else f"{n:.1e}"


# What the charts show, in words.


def accuracy_words(cell: Cell) -> str:
    """Medians at every size, chance, what no weights exceed, and where failure is proved."""
    said = (
        f"at n = {task_size(m.task):,} the median of {len(m.seeds)} seeds of {m.architecture}"
        f" answers {share_text(median(m.correct) / m.total)} (chance {m.chance})"
        for m in cell.measurements
    )
    return f"Accuracy after training: {'; '.join(said)}. {accuracy_lines(cell)}"


def accuracy_lines(cell: Cell) -> str:
    """What the lines of an accuracy chart say: Theorem A's and the bound's."""
    return f"{_highest(cell)} {_bound(cell)}"


def _highest(cell: Cell) -> str:
    ceilings = [found for found in map(ceiling_of, cell.measurements) if found is not None]
    if not ceilings:
        return "Theorem A draws no line here: it does not speak of this task."
    least = min(found.at_most for found in ceilings)
    where = "which excludes nothing at the sizes trained"
    if least < WHOLE:
        where = f"down to {percent(least)} here; dotted, what storing as many facts as fit reaches"
    return f"No weights exceed the line named highest (Theorem A), {where}."


def _bound(cell: Cell) -> str:
    if cell.failing is not None and cell.failing.n is not None:
        size = THEOREMS[cell.failing.theorem].n_shown(cell.failing.n)
        return f"Dashed upright: the size at which failure is proved, n = {size}."
    if cell.status == "SOLVABLE":
        return "Dashed on top: some weights answer everything, up to the size they are built for."
    return "No size is known at which it fails."


def bound_words(cell: Cell) -> str:
    """Bits needed and bits there are, at both ends of the chart."""
    bound = cell.bound
    if bound is None or not bound["n"]:
        return ""
    kinds = {"need": "needed", "have": "there are", "fixed": "of these do not grow"}
    said = ", ".join(
        f"{_bits(_real(bound[key][0]))} to {_bits(_real(bound[key][-1]))} bits {word}"
        for key, word in kinds.items()
        if key in bound
    )
    ends = f"{bound['x']} = {bound['n'][0]:,} to {bound['n'][-1]:,}"
    # where some do not grow another theorem decides, which counts layers and not bits alone
    crosses = cell.bites and "fixed" not in bound
    crossing = f" More is needed than there is from n = {cell.bites[0]:,}." if crosses else ""
    return f"Bits against {ends}: {said}.{crossing}"


def _bits(bits: float) -> str:
    return format_count(round(bits), shorten_from=1000) if bits < _LARGEST else "countless"
