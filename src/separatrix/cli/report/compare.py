"""Models side by side: what a theorem separates, what costs separate, and what nothing does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from separatrix.cards.apart import KINDS as HOW
from separatrix.cards.apart import asked_of_all
from separatrix.cards.costs import MEASURES
from separatrix.cards.short import ALL
from separatrix.cli.report.card import growth_text, opened_parts
from separatrix.cli.report.card_json import card_json
from separatrix.cli.report.costs import (
    Pair,
    cost_rows,
    crossing_rows,
    crossing_text,
    crossings_json,
)
from separatrix.cli.report.statuses import COLOURS
from separatrix.core.numbers.accuracy import WHOLE, percent
from separatrix.core.numbers.amounts import format_bytes

if TYPE_CHECKING:
    from separatrix.cards import CardFacts
    from separatrix.cards.curve import Curve, Point

_LABEL = 23
_NARROWEST = 17
_GAP = 2
COSTS = "Costs"
EARLY = 1_024
"""Tokens within which it is no matter that costs cross."""


@dataclass(frozen=True)
class Aligned:
    """A row: what it is about, and what each model has there, "-" for nothing."""

    part: str
    label: str
    cells: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.cells)) > 1


def aligned(cards: Sequence[CardFacts]) -> list[Aligned]:
    """Every question and every cost, whether it separates or not."""
    asked = asked_of_all(cards)
    said = (Aligned("Questions", one.asks, tuple(a.said for a in one.answers)) for one in asked)
    return [*said, *_priced(cards)]


def separated(cards: Sequence[CardFacts]) -> tuple[list[Aligned], list[str]]:
    """The rows in which models differ, what theorems separate first; and the questions and costs
    that separate nothing.
    """
    asked = asked_of_all(cards)
    rows = [
        Aligned(title, one.asks, tuple(answer.said for answer in one.answers))
        for kind, title in HOW.items()
        for one in asked
        if one.kind == kind
    ]
    priced = list(_priced(cards))
    rows += [row for row in priced if row.differs]
    alike = [one.asks for one in asked if not one.kind]
    return rows, [*alike, *(row.label for row in priced if not row.differs)]


def compare_json(
    cards: Sequence[CardFacts], curves: Sequence[Curve] = (), pairs: Sequence[Pair] = ()
) -> dict[str, Any]:
    """The cards as `analyze --json` gives them, what separates them, the rows that differ, how many
    random facts each model recalls at the most (null: no bound) and by storing what fits, and where
    costs cross.
    """
    return {
        "context": cards[0].context,
        "models": [card_json(facts) for facts in cards],
        "questions": [one.to_json() for one in asked_of_all(cards)],
        "recall": {
            "contexts": [point.context for point in curves[0]] if curves else [],
            "at_most": [[_share(point.at_most) for point in curve] for curve in curves],
            "stored": [[_share(point.stored) for point in curve] for curve in curves],
        },
        "crossings": crossings_json(pairs),
        "rows": [
            {"part": row.part, "row": row.label, "cells": list(row.cells), "differs": row.differs}
            for row in (*aligned(cards), *_recalled(curves))
        ],
    }


def render_comparison(cards: Sequence[CardFacts], pairs: Sequence[Pair] = ()) -> RenderableType:
    """What separates the models, in ASCII; as many beside each other as the width has room for."""
    rows, alike = separated(cards)
    notes = [
        f"{MEASURES[crossing.what]}: {crossing_text(crossing, pair.short)}"
        for pair in pairs
        for crossing in pair.crossings
        if len(cards) == 2 and any(since.token > EARLY for since in crossing.since or ())
    ]
    context = cards[0].context
    said = f"Nothing here separates: {', '.join(alike)}."
    notes.append(said if alike else "All that is asked here separates them.")
    notes.append(
        f"Not decided here: perplexity, quality, what trained weights do at {context:,} tokens."
    )
    if cards[0].context_from:
        notes.append(f"{context:,} tokens: {cards[0].context_from}; --context asks at another")
    notes.append("--why QUESTION, memory, costs, assumptions or all")
    return _table(cards, rows, notes)


def render_compared_why(
    cards: Sequence[CardFacts], curves: Sequence[Curve], pairs: Sequence[Pair], asked: str
) -> RenderableType:
    """What stands behind a question or a topic, model by model, then what they share: how many
    random facts each recalls over contexts, and where costs cross.
    """
    parts: list[RenderableType] = []
    for facts in cards:
        own = opened_parts(facts, asked) or [Text("no theorem here speaks of it"), Text()]
        parts += [Text(facts.name, "bold underline"), *own]
    notes: list[str] = []
    if asked in ("costs", ALL):
        for pair in pairs:
            notes.append(f"{pair.names[0]} and {pair.names[1]}, up to 10^12 tokens")
            notes += [f"  {title}: {said}" for title, said in crossing_rows(pair)]
    rows = list(_recalled(curves)) if asked in ("recall", ALL) else []
    return Group(*parts, *([_table(cards, rows, notes)] if rows or notes else []))


def _table(
    cards: Sequence[CardFacts], rows: Sequence[Aligned], notes: Sequence[str]
) -> RenderableType:
    return _Comparison(
        tuple(facts.name for facts in cards), tuple(rows), cards[0].context, tuple(notes)
    )


@dataclass(frozen=True)
class _Comparison:
    names: tuple[str, ...]
    rows: tuple[Aligned, ...]
    context: int
    notes: tuple[str, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        across = self._across(options.max_width)
        for start in range(0, len(self.names), across):
            if start:
                yield Text()
            shown = range(start, min(start + across, len(self.names)))
            yield from self._page(shown, (options.max_width - _LABEL) // across - _GAP)
        yield Text()
        for note in self.notes:
            yield Padding(Text(note.lstrip()), (0, 0, 0, len(note) - len(note.lstrip())))

    def _across(self, width: int) -> int:
        """How many models stand beside each other: so many that no word is broken, and about as
        many on every page.
        """
        words = [self._longest(i) for i in range(len(self.names))]
        column = max(_NARROWEST, *words) + _GAP
        most = max(1, min(len(self.names), (width - _LABEL) // column))
        pages = -(-len(self.names) // most)
        return -(-len(self.names) // pages)

    def _longest(self, i: int) -> int:
        """The longest word in a model's column."""
        return max(len(word) for text in self._texts(i) for word in text.split())

    def _texts(self, i: int) -> list[str]:
        return [self.names[i], *(row.cells[i] for row in self.rows)]

    def _page(self, shown: range, room: int) -> Iterator[RenderableType]:
        """The models of a range beside each other, a table for each part, all of one width."""
        widths = [min(max(map(len, self._texts(i))), max(1, room)) for i in shown]
        head = self._grid(widths)
        names = (Text(self.names[i], "bold") for i in shown)
        head.add_row(Text(f"at {self.context:,} tokens", "bold"), *names)
        yield head
        for part, rows in groupby(self.rows, lambda row: row.part):
            yield Text()
            yield Text(part, "bold")
            grid = self._grid(widths)
            for row in rows:
                label = Padding(Text(row.label), (0, 0, 0, 2))
                grid.add_row(label, *(_coloured(row.cells[i]) for i in shown))
            yield grid

    def _grid(self, widths: Sequence[int]) -> Table:
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        for width in (_LABEL, *widths):
            grid.add_column(width=width, overflow="fold")
        return grid


def _coloured(cell: str) -> Text:
    text = Text(cell)
    for word, colour in COLOURS.items():
        text.highlight_regex(rf"\b{word}\b", colour)
    return text


def _priced(cards: Sequence[CardFacts]) -> Iterator[Aligned]:
    """What serving costs, in short: the cache, what a token adds to it, reads and takes."""
    yield Aligned(COSTS, "cache", tuple(format_bytes(facts.bits) for facts in cards))
    grows = [", ".join(growth_text(r) for r in f.memory if r.limit is None) for f in cards]
    yield Aligned(COSTS, "cache grows by", tuple(text or "nothing" for text in grows))
    context = cards[0].context
    written = [dict(cost_rows(facts.costs)) for facts in cards]
    for title in max((list(rows) for rows in written), key=len):
        cells = (
            rows[title](facts.costs.here(context)) if title in rows else "-"
            for facts, rows in zip(cards, written, strict=True)
        )
        # a prompt's costs follow those of its tokens
        if not title.startswith("prefill"):
            yield Aligned(COSTS, title, tuple(cells))


RECALLED = "Random facts recalled, at most (by storing as many as fit)"


def _recalled(curves: Sequence[Curve]) -> Iterator[Aligned]:
    """A row for every context: what no weights exceed, and what storing facts reaches."""
    for points in zip(*curves, strict=True):
        yield Aligned(RECALLED, f"{points[0].context:,}", tuple(map(_accuracy, points)))


def _accuracy(point: Point) -> str:
    if point.at_most is None:
        return "no bound"
    return f"{percent(point.at_most)} ({percent(point.stored, up=False)})"


def _share(millionths: int | None) -> float | None:
    return None if millionths is None else millionths / WHOLE
