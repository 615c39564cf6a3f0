"""What training found of layouts that `design` looks at, in a terminal and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from separatrix.design.measured import Measured, Ranked, Rung, told_apart
from separatrix.numbers.amounts import bytes_of, format_bytes, format_count
from separatrix.practice.matching import Match
from separatrix.practice.nearest import PLACED
from separatrix.practice.words import accuracy, beyond, chance, decimal, interval, seeds
from separatrix.report.practice import COLOUR, row_json
from separatrix.theory.words import counted_as

if TYPE_CHECKING:
    from rich.console import RenderableType

    from separatrix.practice.table import Row
    from separatrix.tasks import Task

_SHOWN = 6
PROVED = "proved sufficient"
NOT_PROVED = "not excluded"
CAUTIONS = (
    "that the order holds at this size: rows stand for layouts many times larger",
    "that layouts whose intervals overlap differ",
    "that what failed to train cannot be trained",
)


def measured_json(found: Measured) -> dict[str, Any]:
    """The findings as plain data, apart from what is proved."""
    return {
        "ranked": [_ranked_json(one) for one in found.ranked],
        "layouts_without_rows": found.unmatched,
        "tasks_not_measured": [task.spec for task in found.unmeasured],
        "placement": [
            {"task": task.spec, "places": {place: row_json(row) for place, row in rows}}
            for task, rows in found.places
        ],
        "full_layers": [
            {
                "full": rung.full,
                "cache_bytes": bytes_of(rung.cost.cache_bits),
                "flops_per_token": rung.cost.flops,
                "steps_proved": rung.steps,
                "measured": {
                    asked: None if row is None else row_json(row) for asked, row in rung.measured
                },
            }
            for rung in found.rungs
        ],
        "more_full_layers": _steps(found.rungs),
        "not_to_be_concluded": list(CAUTIONS),
    }


def render_measured(found: Measured, *, everything: bool = False) -> list[RenderableType]:
    """Three parts: layouts in order, where full layers stand, and what one more of them buys."""
    from rich.text import Text

    parts: list[RenderableType] = [
        Text.assemble(
            ("Measured", COLOUR),
            ": what training found on smaller tasks like these; no proof",
        )
    ]
    parts += [_indented(text) for text in _missing(found)]
    parts += _ranking(found.ranked if everything else found.ranked[:_SHOWN])
    if len(found.ranked) > _SHOWN and not everything:
        parts.append(_indented(f"and {len(found.ranked) - _SHOWN:,} more; --all prints them"))
    if found.places:
        parts += [Text(), Text("Where the full layers stand", "bold")]
        parts += [_indented(text) for task, rows in found.places for text in _placed(task, rows)]
    if len(found.rungs) > 1:
        parts += [Text(), Text("One more full layer", "bold"), _indented(_table(found.rungs))]
        parts += map(_indented, _steps(found.rungs))
    if found.ranked:
        parts += [Text(), Text("Do not conclude", "bold"), *map(_indented, CAUTIONS)]
    return parts


def _missing(found: Measured) -> Iterator[str]:
    for task in found.unmeasured:
        yield f"{task.spec}: no experiment measured it with such layouts, so it ranks none"
    if not found.ranked:
        yield "no layout within the budget is like one that was trained: nothing to rank"
    elif found.unmatched:
        yield f"{counted_as(found.unmatched, 'layout')} of a shape that was not trained left out"


def _ranking(ranked: Sequence[Ranked]) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    for place, one in enumerate(ranked):
        alike = place > 0 and not told_apart(ranked[place - 1], one)
        lines = [
            one.layout.architecture.spec,
            *(f"{task.spec}: {_matched(match)}" for task, match in one.matches),
            *(
                f"{task.spec}: {_matched(match)}"
                for task, match in one.places
                if match not in (known for _, known in one.matches)
            ),
        ]
        if alike:
            lines.append("not told apart from the one above: their intervals overlap")
        memory = format_bytes(one.cost.cache_bits)
        work = f"{format_count(one.cost.flops)} FLOPs/token"
        others = f" (+ {counted_as(one.others, 'dearer layout')})" if one.others else ""
        yield _indented(
            Text.assemble(
                f"{place + 1}. ",
                (f"{decimal(one.row.median)}   {memory}   {work}", "bold"),
                f"   {_readers(one)}, {PROVED if one.proved else NOT_PROVED}{others}",
            )
        )
        yield from (Padding(Text(line), (0, 0, 0, 6)) for line in lines)


def _readers(one: Ranked) -> str:
    full = one.layout.arrangement.reading
    if not one.layout.arrangement.bounded:
        return f"all {counted_as(full, 'layer')} full"
    return f"{counted_as(full, 'full layer')}, {one.layout.place}" if full else "no full layer"


def _matched(match: Match) -> str:
    """The rows that stand for a layout, and how far it lies beyond them."""
    rows = " and ".join(f"{accuracy(row)}, {seeds(row)}" for row in match.rows)
    row = match.row
    far = beyond(match.distances)
    return (
        f"measured {rows} ({match.experiment} experiment: {match.laid_out}, {row.task.length:,}"
        f" tokens, {chance(row)}){f'; extrapolated {far}' if far else ''}"
    )


def _placed(task: Task, rows: Sequence[tuple[Any, Row]]) -> Iterator[str]:
    best = max(rows, key=lambda item: item[1].median)
    yield f"{task.spec} (placement experiment, {rows[0][1].task.length:,} tokens)"
    for place, row in rows:
        behind = "" if row is best[1] else f"   {_change(best[1], row)}"
        yield f"  {PLACED[place]}: {accuracy(row)} ({seeds(row)}){behind}"


def _table(rungs: Sequence[Rung]) -> RenderableType:
    from rich.table import Table

    grid = Table.grid(padding=(0, 3))
    for _ in range(3):
        grid.add_column(justify="right")
    asked = [title for title, _ in rungs[0].measured]
    grid.add_row("full", "cache", "steps proved", *(f"measured, {title}" for title in asked))
    for rung in rungs:
        grid.add_row(
            f"{rung.full}",
            format_bytes(rung.cost.cache_bits),
            f"{rung.steps}",
            *("not measured" if row is None else accuracy(row) for _, row in rung.measured),
        )
    return grid


def _steps(rungs: Sequence[Rung]) -> list[str]:
    """What full layers buy, from each number of them that was measured to the next: "1 -> 2 full
    layers: +1 step proved, +0.69 measured accuracy (composition, 2 steps), +0.5 GiB".
    """
    last: dict[str, tuple[int, Row]] = {}
    steps: list[str] = []
    for place, rung in enumerate(rungs):
        fewer = rungs[place - 1] if place else None
        said: list[str] = []
        for title, row in rung.measured:
            if row is None:
                continue
            before = last.get(title)
            if before is not None and fewer is not None:
                since = "" if before[0] == fewer.full else f" since {before[0]}"
                said.append(f"{_change(before[1], row)} measured accuracy{since} ({title})")
            last[title] = rung.full, row
        if fewer is not None:
            proved = rung.steps - fewer.steps
            memory = rung.cost.cache_bits - fewer.cost.cache_bits
            bought = f"{proved:+d} step{'' if abs(proved) == 1 else 's'} proved"
            bytes_more = f"{'+' if memory >= 0 else '-'}{format_bytes(abs(memory))}"
            name = f"{fewer.full} -> {rung.full} full layer{'' if rung.full == 1 else 's'}"
            steps.append(f"{name}: {', '.join((bought, *said, bytes_more))}")
    return steps


def _change(before: Row, after: Row) -> str:
    """How much more is right, and whether intervals and seeds leave it open."""
    low, high = sorted((before, after), key=lambda row: row.median)
    if interval(low)[1] >= interval(high)[0]:
        within = " (within the intervals)"
    else:
        within = " (seeds overlap)" if low.most >= high.least else ""
    return f"{_signed(after.median - before.median)}{within}"


def _signed(value: Fraction) -> str:
    return f"{'-' if value < 0 else '+'}{decimal(abs(value))}"


def _ranked_json(one: Ranked) -> dict[str, Any]:
    return {
        "architecture": one.layout.architecture.spec,
        "place": one.layout.place,
        "cache_bytes": bytes_of(one.cost.cache_bits),
        "flops_per_token": one.cost.flops,
        "reading_layers": one.cost.reading,
        "proved_sufficient": one.proved,
        "accuracy": float(one.row.median),
        "solved": one.solved,
        "other_layouts": one.others,
        "evidence": [_match_json(task, match) for task, match in one.matches],
        "placement": [_match_json(task, match) for task, match in one.places],
    }


def _match_json(task: Task, match: Match) -> dict[str, Any]:
    return {
        "task": task.spec,
        "experiment": match.experiment,
        "laid_out": match.laid_out,
        "times_beyond": {what: float(far) for what, far in match.distances.items()},
        "rows": [row_json(row) for row in match.rows],
    }


def _indented(text: Any) -> RenderableType:
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text(text) if isinstance(text, str) else text, (0, 0, 0, 2))
