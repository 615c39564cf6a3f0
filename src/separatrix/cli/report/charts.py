"""The two charts of a cell: bits needed against bits there are, and trained accuracy against n."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from statistics import median
from typing import Any

from separatrix.core.document.drawing import (
    FAILS,
    INK,
    MEASURED,
    MUTED,
    SOLVES,
    Chart,
    draw,
    libraries,
)
from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.records import Measurement
from separatrix.core.numbers.accuracy import WHOLE
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task
from separatrix.theory.trained import trained_ceiling

_WIDTH = 370
_LABEL_GAP = 0.075
_LARGEST = 1e300
_LEVELS = {"ceiling": ([1, 0], "highest"), "stored": ([2, 3], "stored")}
"""Dashes and label of what no weights exceed, and of what storing facts reaches."""
_SHORT = {"need": "bits needed", "have": "bits of cache"}
"""What lines are named in the chart; their captions say more."""
CEILING_TIPS = {"ceiling": "no weights exceed", "stored": "storing facts reaches"}
_ASIDE = 0.0147
"""Share of a chart's doublings between two seeds of one size."""
_NEAR = 128
"""A bound that lies at most so many times beyond the sizes measured is drawn at its place."""


def bound_chart(bound: dict[str, Any], *, name: str, bites: Sequence[int] = ()) -> Chart | None:
    """Bits needed against bits there are, log axes, the crossing marked; None when fewer than two
    points can be drawn.

    `bites` holds the exact n of verdicts; the first that lies at the drawn crossing labels it.
    Raises EvidenceError for a damaged bound.
    """
    alt, _ = libraries()
    lists = (bound["n"], bound["have"], bound["need"])
    fixed = bound.get("fixed")
    if len({len(x) for x in (*lists, *(() if fixed is None else (fixed,)))}) != 1:
        raise EvidenceError(
            f"bound of {name}: n, have and need have {', '.join(str(len(x)) for x in lists)}"
            " entries; they must be equally many"
        )
    points = sorted(tuple(_real(x) for x in point) for point in zip(*lists, strict=True))
    rows = [
        {"n": p[0], "have": p[1], "need": p[2]} for p in points if min(p) > 0 and max(p) < _LARGEST
    ]
    if len(rows) < 2:
        return None
    drawn = [("need", FAILS), ("have", SOLVES)]
    if fixed is not None:
        heights = {_real(n): _real(bits) for n, bits in zip(bound["n"], fixed, strict=True)}
        if all(heights[row["n"]] > 0 for row in rows):
            rows = [{**row, "fixed": heights[row["n"]]} for row in rows]
            drawn.append(("fixed", MUTED))
    crossing = _crossing(rows, bites)
    last = rows[-1]
    x = _log_n(alt, [row["n"] for row in rows], title=bound["x"])
    scale = alt.Scale(type="log", nice=True)
    axis = _bits_axis(alt, [row[key] for row in rows for key, _ in drawn])
    tooltip = [
        alt.Tooltip("n:Q", format=",", title=bound["x"]),
        alt.Tooltip("need:Q", format=",.1f", title=f"needed: {bound['need_title']}"),
        alt.Tooltip("have:Q", format=",.0f", title=f"there are: {bound['have_title']}"),
    ]
    layers: list[Any] = []
    if crossing is not None:
        start = {"n": crossing["n"], "have": crossing["bits"], "need": crossing["bits"]}
        beyond = _data(alt, [start, *(row for row in rows if row["n"] > crossing["n"])])
        layers.append(
            beyond.mark_area(color=FAILS, opacity=0.14).encode(
                x=x, y=alt.Y("have:Q", scale=scale), y2="need:Q"
            )
        )
    if "fixed" in rows[0]:
        tooltip.append(alt.Tooltip("fixed:Q", format=",.0f", title=bound["fixed_title"]))
    ends = sorted((last[key], key) for key, _ in drawn)
    for key, colour in drawn:
        line = _data(alt, rows).encode(
            x=x, y=alt.Y(f"{key}:Q", scale=scale, axis=axis, title="bits"), tooltip=tooltip
        )
        layers += [
            line.mark_line(color=colour, strokeWidth=2.2),
            line.mark_point(
                color=colour, size=34 if len(rows) <= 12 else 14, filled=True, opacity=1
            ),
        ]
        above = (last[key], key) != ends[0]
        title = _SHORT.get(key) or bound[f"{key}_title"]
        end = _data(alt, [{"n": last["n"], "bits": last[key], "title": title}])
        text = end.mark_text(
            align="right",
            dx=-2,
            dy=-11 if above else 14,
            color=colour,
            fontSize=12,
            fontWeight="bold",
        )
        layers.append(text.encode(x=x, y=alt.Y("bits:Q", scale=scale), text="title:N"))
    if crossing is not None:
        layers.append(_data(alt, [crossing]).mark_rule(color=INK, strokeDash=[3, 3]).encode(x=x))
        text = _data(alt, [crossing]).mark_text(
            align="left", baseline="top", dx=5, color=INK, fontSize=12, fontWeight="bold"
        )
        layers.append(text.encode(x=x, y=alt.value(2), text="label:N"))
    return draw(alt.layer(*layers), name=name, width=_WIDTH)


def accuracy_chart(
    measured: Sequence[Measurement],
    *,
    name: str,
    bites: Sequence[int] = (),
    solvable: bool = False,
) -> Chart | None:
    """Accuracy against n: every seed with its own Wilson interval, a line through the medians,
    chance dashed; None without any.

    Where Theorem A speaks of the task, two more lines for each stack: what no weights exceed, which
    no measurement may cross, and dotted what storing as many facts as fit reaches. `bites` holds
    the n of verdicts: the first is drawn at its place, or at the edge where it lies far beyond.
    `solvable` draws what some weights reach.
    """
    alt, _ = libraries()
    rows: list[dict[str, Any]] = []
    seeds: list[dict[str, Any]] = []
    ceilings: list[dict[str, Any]] = []
    chances: dict[float, float] = {}
    sizes = sorted({float(task_size(m.task)) for m in measured})
    left = sizes[0] / 1.35 if sizes else 1.0
    right = _right_edge(sizes, bites) if sizes else 1.0
    apart = (right / left) ** _ASIDE
    for m in sorted(measured, key=lambda m: (m.architecture, task_size(m.task))):
        n = float(task_size(m.task))
        chances[n] = float(Fraction(m.chance))
        common = {"n": n, "architecture": m.architecture}
        rows.append({**common, "median": median(m.correct) / m.total})
        ceiling = trained_ceiling(Architecture.parse(m.architecture), parse_task(m.task))
        if ceiling is not None:
            shares = {"ceiling": ceiling.at_most / WHOLE, "stored": ceiling.stored / WHOLE}
            ceilings.append({**common, **shares})
        each = zip(m.seeds, m.correct, m.intervals, strict=True)
        for place, (seed, correct, (low, high)) in enumerate(each):
            # seeds stand side by side, so that none hides another
            aside = n * apart ** (place - (len(m.seeds) - 1) / 2)
            seeds.append(
                {
                    **common,
                    "at": aside,
                    "seed": seed,
                    "ended": m.ended[place] if m.ended else "",
                    "accuracy": correct / m.total,
                    "low": float(low),
                    "high": float(high),
                }
            )
    if not rows:
        return None
    for larger in _larger(measured, sizes[-1], right):
        n = float(task_size(larger.spec))
        chances[n] = float(larger.chance)
        for stack in sorted({m.architecture for m in measured}):
            ceiling = trained_ceiling(Architecture.parse(stack), larger)
            if ceiling is not None:
                shares = {"ceiling": ceiling.at_most / WHOLE, "stored": ceiling.stored / WHOLE}
                ceilings.append({"n": n, "architecture": stack, **shares})
    ns = sizes
    drawn = sorted(chances)
    first = min(bites, default=None)
    ticks = ns if first is None or not ns[-1] < first < right else [*ns, float(first)]
    x = _log_n(alt, ticks, title="n", domain=[left, right])
    aside = _log_n(alt, ticks, title="n", domain=[left, right], field="at")
    tooltip = [
        alt.Tooltip("architecture:N"),
        alt.Tooltip("n:Q", format=","),
        alt.Tooltip("seed:Q"),
        alt.Tooltip("ended:N", title="training ended"),
        *share_tips({"accuracy": "accuracy", "low": "95 % from", "high": "95 % to"}),
    ]
    guess = [
        {"n": n, "chance": chances[near]}
        for n, near in ((left, drawn[0]), *((n, n) for n in drawn), (right, drawn[-1]))
    ]

    # where everything fits, both lines are one
    bounded = any(row["ceiling"] < 1 for row in ceilings)
    levels = {
        key: level for key, level in _LEVELS.items() if ceilings and (bounded or key == "ceiling")
    }
    told = [alt.Tooltip("architecture:N"), *share_tips(CEILING_TIPS)]
    points = _data(alt, seeds).encode(x=aside)
    layers = [
        _data(alt, guess)
        .mark_line(color=MUTED, strokeDash=[5, 4], strokeWidth=1.5)
        .encode(x=x, y=share("chance")),
        *(
            _data(alt, _to_the_edges(ceilings, left, right))
            .mark_line(color=FAILS, strokeDash=dash, strokeWidth=1.8)
            .encode(x=x, y=share(key), detail="architecture:N", tooltip=told)
            for key, (dash, _) in levels.items()
        ),
        _data(alt, rows)
        .mark_line(color=MEASURED, strokeWidth=2.2)
        .encode(x=x, y=share("median"), detail="architecture:N"),
        points.mark_rule(color=MEASURED, strokeWidth=2).encode(y=share("low"), y2="high:Q"),
        points.mark_point(color=MEASURED, filled=True, size=60, opacity=1).encode(
            y=share("accuracy"), tooltip=tooltip
        ),
    ]
    if first is not None:
        layers += _bound_line(alt, first, left, right, x)
    named = {(row["architecture"], row["median"]) for row in rows if row["n"] == ns[-1]}
    # one size alone has no line
    heights = [height for _, height in sorted(named) if len(ns) > 1]
    # beside the last points, where the axis goes on to a bound
    aside_words = right > 1.5 * ns[-1]
    words = [] if aside_words else [(height, "median", MEASURED) for height in heights]
    if aside_words:
        ends = [{"n": ns[-1], "at": height, "label": "median"} for height in heights]
        text = _data(alt, ends).mark_text(
            align="left", dx=12, color=MEASURED, fontSize=12, fontWeight="bold"
        )
        layers.append(text.encode(x=x, y=share("at"), text="label:N"))
    for key, (_, word) in levels.items():
        heights = {row[key] for row in ceilings if row["n"] == drawn[-1]}
        words += [(height, word, FAILS) for height in sorted(heights)]
    if solvable:
        words.append((1.0, "some weights", SOLVES))
        ends = [{"n": left, "at": 1.0}, {"n": right, "at": 1.0}]
        rule = _data(alt, ends).mark_line(color=SOLVES, strokeWidth=1.8, strokeDash=[6, 3])
        layers.insert(0, rule.encode(x=x, y=share("at")))
    for height, label, tint in spread(
        [*words, (chances[drawn[-1]], "chance", MUTED)], gap=_LABEL_GAP
    ):
        text = _data(alt, [{"n": right, "at": height, "label": label}])
        text = text.mark_text(align="left", dx=6, color=tint, fontSize=12, fontWeight="bold")
        layers.append(text.encode(x=x, y=share("at"), text="label:N"))
    return draw(alt.layer(*layers), name=name, width=_WIDTH - 70)


def _larger(measured: Sequence[Measurement], largest: float, right: float) -> Iterator[Task]:
    """Tasks of the measured family beyond the largest, eight for each doubling, as far as the axis
    goes: what is known without training is drawn there, too.
    """
    if right < 2 * largest:
        return
    task = max((parse_task(m.task) for m in measured), key=lambda task: task_size(task.spec))
    family = task.family()
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


def _right_edge(sizes: Sequence[float], bites: Sequence[int]) -> float:
    """Where the axis ends: a little beyond the sizes, and beyond a bound that is near."""
    near = [n for n in bites[:1] if n <= _NEAR * sizes[-1]]
    return max(sizes[-1], *near) * 1.35 if near else sizes[-1] * 1.35


def _bound_line(alt: Any, first: int, left: float, right: float, x: Any) -> list[Any]:
    """From where on failure is proved; at the edge with an arrow where that lies beyond it."""
    beyond = first >= right
    before = first <= left
    place = right if beyond else left if before else float(first)
    label = f"proved to fail: n = {first:,}"
    if first >= 10**9:
        label = f"proved to fail: n = {first:.1e}"
    label = f"{label} →" if beyond else f"← {label}" if before else label
    rule = _data(alt, [{"n": place, "label": label}])
    # the word stands on the side that has more room
    ending = place > math.sqrt(left * right)
    word = rule.mark_text(
        align="right" if ending else "left",
        baseline="top",
        dx=-4 if ending else 4,
        color=FAILS,
        fontSize=12,
        fontWeight="bold",
    )
    return [
        rule.mark_rule(color=FAILS, strokeDash=[3, 3], strokeWidth=1.8).encode(x=x),
        word.encode(x=x, y=alt.value(10), text="label:N"),
    ]


def share(key: str) -> Any:
    """The axis of accuracies, which a field is drawn along."""
    alt, _ = libraries()
    axis = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    return alt.Y(f"{key}:Q", scale=alt.Scale(domain=[0, 1]), axis=axis, title="accuracy")


def share_tips(titles: Mapping[str, str]) -> list[Any]:
    """What is told of accuracies under the pointer: field -> title."""
    alt, _ = libraries()
    return [alt.Tooltip(f"{key}:Q", format=".2%", title=title) for key, title in titles.items()]


def _to_the_edges(rows: list[dict[str, Any]], left: float, right: float) -> list[dict[str, Any]]:
    """Each stack's rows, drawn on level to both edges of a chart."""
    stacks: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        stacks.setdefault(row["architecture"], []).append(row)
    return [
        row
        for own in stacks.values()
        for row in ({**own[0], "n": left}, *own, {**own[-1], "n": right})
    ]


def task_size(task: str) -> int:
    """The n a measurement stands at: the task's own size n, or the length of its prompts where
    it has none.
    """
    named = re.search(r"[:,]n=(\d+)(?:,|$)", task)
    if named:
        return int(named[1])
    return parse_task(task).length


def spread(labels: Sequence[tuple[float, str, str]], *, gap: float) -> list[tuple[float, str, str]]:
    """Labels (height in [0, 1], text, colour), lowest first, moved apart by `gap` so that none
    covers another or leaves the top.
    """
    placed = sorted(labels)
    for i in range(1, len(placed)):
        placed[i] = (max(placed[i][0], placed[i - 1][0] + gap), *placed[i][1:])
    top = 1.0
    for i in reversed(range(len(placed))):
        placed[i] = (min(placed[i][0], top), *placed[i][1:])
        top = placed[i][0] - gap
    return placed


def _data(alt: Any, rows: Sequence[dict[str, Any]]) -> Any:
    return alt.Chart(alt.Data(values=list(rows)))


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


def _crossing(rows: Sequence[dict[str, float]], bites: Sequence[int]) -> dict[str, Any] | None:
    """From where on more is needed than there is: the exact n if a verdict names it, else read
    off the line between two points, without a number.
    """
    after = next(
        (i for i in range(len(rows)) if all(row["need"] > row["have"] for row in rows[i:])), None
    )
    if after is None or after == 0:
        return None
    left = rows[after - 1]
    right = rows[after]
    gaps = [math.log(row["need"] / row["have"]) for row in (left, right)]
    share = gaps[0] / (gaps[0] - gaps[1])
    exact = next((n for n in bites if left["n"] <= n <= right["n"]), None)
    n = left["n"] * (right["n"] / left["n"]) ** share if exact is None else float(exact)
    bits = left["have"] * (right["have"] / left["have"]) ** share
    return {"n": n, "bits": bits, "label": "more is needed" if exact is None else f"n = {exact:,}"}


def _log_n(
    alt: Any,
    values: Sequence[float],
    *,
    title: str,
    domain: Sequence[float] | None = None,
    field: str = "n",
) -> Any:
    if len(values) > 8:
        powers = [
            2.0**e
            for e in range(math.ceil(math.log2(values[0])), math.floor(math.log2(values[-1])) + 1)
        ]
        values = (
            powers[:: -(-len(powers) // 8)] if len(powers) > 1 else values[:: -(-len(values) // 8)]
        )
    axis = alt.Axis(
        values=list(values),
        format="," if values[-1] < 1e6 else ".3~s",
        labelOverlap=True,
        labelFlush=False,
        grid=False,
    )
    limits = alt.Undefined if domain is None else list(domain)
    return alt.X(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log", base=2, nice=False, domain=limits),
        axis=axis,
    )


def _bits_axis(alt: Any, values: Sequence[float]) -> Any:
    """Grid lines at powers of ten only, or at 1, 2, 5 where fewer than four of them fit."""
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    step = max(1, -(-(high - low) // 6))
    marks = [10.0**e for e in range(low, high + 1, step)]
    if len(marks) < 4:
        marks = [m * 10.0**e for e in range(low, high + 1) for m in (1, 2, 5)]
    return alt.Axis(values=marks, format="~s")
