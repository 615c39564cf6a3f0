"""All that is drawn: bits needed beside bits kept over contexts, trained accuracy over n, and the
map of a construction's precision.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import cycle
from statistics import median
from typing import TYPE_CHECKING

from separatrix.cli.report.view import task_size
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
    VIOLET,
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
from separatrix.core.evidence.records import Measurement
from separatrix.core.numbers.accuracy import WHOLE
from separatrix.core.numbers.amounts import format_bytes, format_share
from separatrix.core.progress import shortened
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, parse_task
from separatrix.theory.base import counted
from separatrix.theory.fails.a_accuracy import trained_ceiling

if TYPE_CHECKING:
    from separatrix.constructions.precision import Family, Line

_LINES = (SOLVES, INK, VIOLET, GREEN, OCHRE, PINK, MUTED)
_STACKS = (INK, GREEN, PINK, OCHRE, SOLVES)
"""Colours of the stacks of a column."""
_GAP = 0.05
"""Share of a chart's height between two names at its right edge."""
_WIDTH, _HEIGHT, _ROOM = 330, 220, 96
"""Of a chart of the report."""
_EDGE = 1.35
_ASIDE = 0.0147
"""Share of a chart's doublings between two seeds of one size."""

Points = Sequence[tuple[float, float]]


CONTEXTS = tuple(1 << power for power in range(10, 31))
"""At which `states` is drawn: 1k to 1G tokens."""
VALUES = 50_000
"""Of the facts that `states` is about, whatever a model's own vocabulary."""


def states(models: Mapping[str, Architecture], contexts: Sequence[int] = CONTEXTS) -> Drawing:
    """Bits that a context full of facts of one token needs to tell all its prefixes apart, and bits
    that each model keeps of it, over contexts and where a cache becomes too small.
    """

    def needed(n: int) -> float:
        return float(counted(Eva(n=n, V=VALUES)).log2_str(16))

    at = {*contexts}
    for m in models.values():
        every = range(contexts[0], contexts[-1])
        short = bisect_left(every, True, key=lambda n, m=m: needed(n) > m.cache_bits(n))
        at.add(contexts[0] + short)
    need = [(float(n), needed(n)) for n in sorted(at)]
    kept = {name: [(x, float(m.cache_bits(int(x)))) for x, _ in need] for name, m in models.items()}
    title = "tokens of context, each a fact (k is 1,024)"
    return needed_and_kept(title, need, kept)


def needed_and_kept(title: str, need: Points, kept: Mapping[str, Points]) -> Drawing:
    """Bits needed, shaded below, and lines of bits that are kept, a cross at the first place where
    one is too small.
    """
    every = [bits for line in (need, *kept.values()) for _, bits in line if bits]
    x = log_axis(title, need[0][0], need[-1][0], _thousands, base=2, most=8)
    y = log_axis("memory", min(every) / 2, max(every) * 2, _bits, base=2, grid=True)

    def ends(line: Points) -> str:
        (first, low), (last, high) = line[0], line[-1]
        return f"{_bits(low)} at {_thousands(first)} to {_bits(high)} at {_thousands(last)}"

    marks: list[Mark] = [
        Stroke([*need, (x.high, y.low), (x.low, y.low)], FAILS, fill=True),
        Stroke(need, FAILS, width=3, told=f"needed: {ends(need)}"),
    ]
    names = [(need[-1][1], "needed", FAILS)]
    for (name, line), colour in zip(kept.items(), cycle(_LINES), strict=False):
        drawn = [(n, max(bits, y.low)) for n, bits in line]
        short = (at for at, (_, asked) in zip(drawn, need, strict=True) if at[1] < asked)
        at, told = next(short, None), f"{name}: {ends(line)}"
        if at is not None:
            told += f", too small at {at[0]:,.0f}"
            marks.append(Dot(at[0], at[1], colour, told, "cross"))
        marks.append(Stroke(drawn, colour, told=told))
        names.append((drawn[-1][1], shortened(name), colour))
    marks += named(x.high, y, names, _GAP)
    return Drawing(x=x, y=y, marks=marks, room=190)


def _bits(bits: float) -> str:
    """An amount, in round units."""
    return format_bytes(round(bits), decimals=0)


def _size_said(n: float) -> str:
    return f"{n:,.0f}" if n < 10**9 else f"{n:.1e}"


def accuracy_chart(
    stacks: Mapping[str, Sequence[Measurement]],
    bites: Mapping[str, tuple[int, str]],
    *,
    intervals: bool = False,
) -> Drawing | None:
    """Trained accuracy over n: every seed a dot (with its own Wilson interval), a line through the
    medians, chance, Theorem A's line dotted, and upright the n from which on, as `bites` has it, no
    weights do it. None where nothing was trained.
    """
    measured = [m for own in stacks.values() for m in own]
    if not measured:
        return None
    sizes = sorted({float(task_size(m.task)) for m in measured})
    excluded = [float(n) for n, _ in bites.values()]
    ticks = [*sizes, *(n for n in sorted(excluded) if n > sizes[-1])]
    apart = [b for a, b in zip([0.0, *ticks], ticks, strict=False) if b > 1.3 * a]
    low, high = min([*sizes, *excluded]), max([*sizes, *excluded])
    x = log_axis("n", low / _EDGE, high * _EDGE, _size_said, base=2, most=8, at=apart)
    y = share_axis()
    chance = sorted({(float(task_size(m.task)), float(Fraction(m.chance))) for m in measured})
    level = [(x.low, chance[0][1]), *chance]
    marks: list[Mark] = [Stroke(level, MUTED, DASHED, 1.5)]
    ends = [(chance[-1][1], "chance", MUTED)]
    for (title, own), colour in zip(stacks.items(), cycle(_STACKS), strict=False):
        if title in bites:
            n, said = bites[title]
            at = [(float(n), 0.0), (float(n), 1.0)]
            marks.append(Stroke(at, colour, DASHED, 2, f"{title}: no weights{said}"))
        if own:
            marks.append(Stroke(_ceilings(own), colour, DOTTED, 1.5))
            marks += _seeds(title, own, x, colour, intervals=intervals)
            ends.append((float(_medians(own)[-1][1]), title.removesuffix(" attention"), colour))
    last = sizes[-1]
    marks += named(last, y, ends, 0.085, right=10)
    room = 24 if x.high > 8 * last else _ROOM
    return Drawing(x=x, y=y, marks=marks, width=_WIDTH, height=_HEIGHT, room=room)


def _seeds(
    title: str, own: Sequence[Measurement], x: Axis, colour: str, *, intervals: bool
) -> Iterator[Mark]:
    """A line through the medians, and each seed; seeds stand side by side, so that none hides
    another.
    """
    middle = _medians(own)
    told = ", ".join(f"{format_share(share)} at n = {n:,}" for n, share in middle)
    line = [(n, float(share)) for n, share in middle]
    yield Stroke(line, colour, told=f"{title}: median {told}")
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


def _medians(own: Sequence[Measurement]) -> list[tuple[int, Fraction]]:
    return sorted((task_size(m.task), Fraction(median(m.correct)) / m.total) for m in own)


def _ceilings(own: Sequence[Measurement]) -> list[tuple[float, float]]:
    """What no weights exceed, where Theorem A speaks."""
    tasks = {task_size(m.task): (m.architecture, m.task) for m in own}
    found = (
        (n, trained_ceiling(Architecture.parse(stack), parse_task(task)))
        for n, (stack, task) in sorted(tasks.items())
    )
    return [(float(n), one.at_most / WHOLE) for n, one in found if one is not None]


def _thousands(context: float) -> str:
    """Contexts as commands read them: k is 1,024 tokens."""
    for power, unit in ((40, "T"), (30, "G"), (20, "M"), (10, "k")):
        if context >= 2**power:
            return f"{context / 2**power:g}{unit}"
    return f"{context:g}"


def precision(kind: str, family: Family, lines: Sequence[Line], most: int) -> Drawing:
    """Digits of each format against the sizes that are proved, and those that fail. Formats without
    a size on either side have no mark.
    """
    marks: list[Mark] = []
    for line in lines:
        for size, said, colour in ((line.proved, "proved", SOLVES), (line.fails, "fails", FAILS)):
            if size is not None:
                shape = "circle" if said == "proved" else "cross"
                told = f"{line.format}, {line.digits} digits: {said} at {size:,}"
                marks.append(Dot(size, line.digits, colour, told, shape))
        # formats with a name of their own are labelled; pN are told by their digits
        if line.proved is not None and not line.format.startswith("p"):
            marks.append(
                Words(line.proved, line.digits, line.format, right=2, below=18, bold=False)
            )
    theory = list(_theory(family, lines))
    sizes = [mark.x for mark in marks if isinstance(mark, Dot)] or [1, 2]
    sizes += [x for line in theory for x, _ in line.points]
    digits = [line.digits for line in lines]
    low, high = min(digits) - 1, max(digits) + 1
    step = max(1, (high - low) // 8)
    ticks = [(float(d), str(d)) for d in range(low, high + 1, step)]
    title = f"{family.size}, of {family.text}"
    return Drawing(
        x=log_axis(title, min(sizes) / 1.25, max(sizes) * 1.25, base=2, most=8),
        y=Axis("significant binary digits of the format", low, high, ticks, log=False, grid=True),
        marks=[*marks, *theory],
        title=f"Precision of '{kind}'",
        below=[
            "blue: the largest size proved, for every input; orange: the smallest size at which a"
            " wrong answer was found",
            *said_of_slopes(family, lines, most),
        ],
    )


def _theory(family: Family, lines: Sequence[Line]) -> Iterator[Stroke]:
    """The slope of the theory through the middle of the sizes proved."""
    proved = sorted(
        (line.digits, line.proved) for line in lines if line.proved is not None and not line.capped
    )
    if family.slope and len(proved) > 1:
        middle, size = proved[len(proved) // 2]
        ends = (proved[0][0], proved[-1][0])
        line = [(size * 2 ** ((digits - middle) / family.slope), float(digits)) for digits in ends]
        yield Stroke(line, MUTED, DASHED)


def said_of_slopes(family: Family, lines: Sequence[Line], most: int) -> list[str]:
    """What the map says of digits against size, in sentences."""
    from separatrix.constructions.precision import slope

    below = [line for line in lines if not line.capped]
    proved = slope([(line.digits, line.proved) for line in below if line.proved is not None])
    failing = slope([(line.digits, line.fails) for line in lines if line.fails is not None])
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
