"""Capability cards side by side: rows aligned by what they say, rows that differ marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from separatrix.architecture.spec import fold
from separatrix.cards.memory import KINDS
from separatrix.numbers.accuracy import WHOLE, percent
from separatrix.numbers.amounts import format_bytes
from separatrix.report.card import growth_text
from separatrix.report.card_json import card_json
from separatrix.report.costs import (
    MIXING,
    Pair,
    cost_rows,
    costs_explained,
    crossing_rows,
    crossings_json,
)
from separatrix.report.practice import found_briefly
from separatrix.report.statuses import COLOURS
from separatrix.report.theorem_names import theorem_name

if TYPE_CHECKING:
    from separatrix.cards import CardFacts, CardLine
    from separatrix.cards.curve import Curve, Point
    from separatrix.cards.memory import Row

_LABEL = 23
_NARROWEST = 17
_LEAST = 12
_GAP = 2
_DETAIL = re.compile(r"(?:,\s+|\s+\()")
MARK = "*"


@dataclass(frozen=True)
class Aligned:
    """A row: what it is about, and what each model has there, "-" for nothing."""

    part: str
    label: str
    cells: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.cells)) > 1


def aligned(
    cards: Sequence[CardFacts], curves: Sequence[Curve] = (), *, explain: bool = False
) -> list[Aligned]:
    """Every row of the comparison of cards at one context, and of their curves over contexts."""
    return [
        *_layers(cards),
        *_memory(cards),
        *_costs(cards),
        *_meaning(cards, explain=explain),
        *_found(cards),
        *_recalled(curves),
    ]


def compare_json(
    cards: Sequence[CardFacts], curves: Sequence[Curve] = (), pairs: Sequence[Pair] = ()
) -> dict[str, Any]:
    """The cards as `analyze --json` gives them, the rows that differ, how many random facts each
    model recalls at the most (null: no bound) and by storing what fits, and where costs cross.
    """
    return {
        "context": cards[0].context,
        "models": [card_json(facts) for facts in cards],
        "recall": {
            "contexts": [point.context for point in curves[0]] if curves else [],
            "at_most": [[_share(point.at_most) for point in curve] for curve in curves],
            "stored": [[_share(point.stored) for point in curve] for curve in curves],
        },
        "crossings": crossings_json(pairs),
        "rows": [
            {"part": row.part, "row": row.label, "cells": list(row.cells), "differs": row.differs}
            for row in aligned(cards, curves)
        ],
    }


def render_comparison(
    cards: Sequence[CardFacts],
    curves: Sequence[Curve] = (),
    pairs: Sequence[Pair] = (),
    *,
    explain: bool = False,
) -> RenderableType:
    """The comparison as something rich prints, in ASCII; as many models beside each other as the
    width has room for, then the next ones, then where costs of pairs of them cross.

    `explain` adds two sentences of plain English to every answer.
    """
    names = tuple(facts.name for facts in cards)
    rows = tuple(aligned(cards, curves, explain=explain))
    notes = (MIXING, *((costs_explained(),) if explain else ()))
    return _Comparison(names, rows, cards[0].context, cards[0].context_from, tuple(pairs), notes)


@dataclass(frozen=True)
class _Comparison:
    names: tuple[str, ...]
    rows: tuple[Aligned, ...]
    context: int
    context_from: str
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]
    """What rows of costs count."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        across = self._across(options.max_width)
        for start in range(0, len(self.names), across):
            if start:
                yield Text()
            shown = range(start, min(start + across, len(self.names)))
            yield self._page(shown, (options.max_width - _LABEL) // across - _GAP)
        for pair in self.pairs:
            yield Text()
            yield from _crossed(pair)
        yield Text()
        for note in self.notes:
            yield Text(f"costs: {note}", "dim")
        if self.context_from:
            yield Text(
                f"{self.context:,} tokens: {self.context_from}; --context asks at another", "dim"
            )
        yield Text(
            f"{MARK} the models differ    reasons and assumptions: separatrix analyze MODEL"
            f" --context {self.context}",
            "dim",
        )

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

    def _page(self, shown: range, room: int) -> Table:
        """The models of a range beside each other, each with that much room at least."""
        table = Table(
            box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", expand=False
        )
        table.add_column(f"at {self.context:,} tokens", width=_LABEL, overflow="fold")
        for i in shown:
            least = min(max(self._longest(i), _LEAST), room)
            table.add_column(self.names[i], ratio=1, overflow="fold", min_width=least)
        part = ""
        for row in self.rows:
            if row.part != part:
                part = row.part
                table.add_row()
                table.add_row(Text(part, "bold"))
            label = Text(
                f"{MARK if row.differs else ' '} {row.label}", "bold" if row.differs else "dim"
            )
            table.add_row(label, *(_coloured(row.cells[i], row.differs) for i in shown))
        return table


def _coloured(cell: str, differs: bool) -> Text:
    text = Text(cell, "" if differs else "dim")
    for word, colour in COLOURS.items():
        text.highlight_regex(rf"\b{word}\b", colour)
    return text


def _layers(cards: Sequence[CardFacts]) -> Iterator[Aligned]:
    part = "Layers"
    for kind in cards[0].layers:
        counts = [facts.layers[kind] for facts in cards]
        if kind == "total" or any(counts):
            label = "together" if kind == "total" else kind
            yield Aligned(part, label, tuple(f"{count:,}" for count in counts))
    yield Aligned(part, "pattern", tuple(fold(facts.symbols) for facts in cards))
    yield Aligned(part, "formats", tuple(facts.formats or "-" for facts in cards))
    if any(facts.positions for facts in cards):
        yield Aligned(part, "positions", tuple(facts.positions or "-" for facts in cards))
    if any(facts.defaults for facts in cards):
        yield Aligned(part, "by default", tuple(", ".join(f.defaults) or "-" for f in cards))


def _memory(cards: Sequence[CardFacts]) -> Iterator[Aligned]:
    part = "Memory of the past"
    memory = [{row.title: row for row in facts.memory} for facts in cards]
    for title in KINDS.values():
        if any(title in own for own in memory):
            yield Aligned(part, title, tuple(_kept(own.get(title)) for own in memory))
    yield Aligned(part, "together", tuple(format_bytes(facts.bits) for facts in cards))
    yield Aligned(part, "one query returns", tuple(_read_text(facts) for facts in cards))


def _read_text(facts: CardFacts) -> str:
    if not facts.readers:
        return "-"
    return f"at most {facts.read_bits:,} bits in each of {facts.readers:,}"


def _kept(row: Row | None) -> str:
    if row is None:
        return "-"
    here = format_bytes(row.bits)
    return here if row.limit is not None else f"{here}, {growth_text(row)}"


def _costs(cards: Sequence[CardFacts]) -> Iterator[Aligned]:
    context = cards[0].context
    written = [dict(cost_rows(facts.costs)) for facts in cards]
    titles = max((list(rows) for rows in written), key=len)
    for title in titles:
        cells = (
            rows[title](facts.costs.here(context)) if title in rows else "-"
            for facts, rows in zip(cards, written, strict=True)
        )
        yield Aligned("Cost of a token", title, tuple(cells))


def _crossed(pair: Pair) -> Iterator[RenderableType]:
    """Where costs of two designs cross, a line for each."""
    yield Text(f"{pair.names[0]} and {pair.names[1]}, up to 10^12 tokens", "bold")
    grid = Table.grid(padding=(0, _GAP))
    grid.add_column(max_width=_LABEL + 10, overflow="fold")
    grid.add_column(overflow="fold")
    for title, said in crossing_rows(pair):
        grid.add_row(title, said)
    yield Padding(grid, (0, 0, 0, _GAP))


def _meaning(cards: Sequence[CardFacts], *, explain: bool) -> Iterator[Aligned]:
    """A row for every question, in the order of the first card that asks it; several lines of
    one card on it stand below each other.
    """
    order: list[str] = []
    for facts in cards:
        before = 0
        for question in (_question(line)[0] for line in facts.lines):
            if question not in order:
                order.insert(before, question)
            before = order.index(question) + 1
    for question in order:
        cells = (
            "\n".join(
                _answer(line, explain) for line in facts.lines if _question(line)[0] == question
            )
            or "-"
            for facts in cards
        )
        yield Aligned("What that means", question, tuple(cells))


def _found(cards: Sequence[CardFacts]) -> Iterator[Aligned]:
    """A row for every question and experiment, with what training found of stacks like these."""
    cells = [
        {
            (_asked(finding.question), finding.experiment): found_briefly(finding)
            for finding in facts.practice
        }
        for facts in cards
    ]
    found = dict.fromkeys(key for own in cells for key in own)
    for asked in dict.fromkeys(_asked(line.question) for facts in cards for line in facts.lines):
        for question, experiment in found:
            if question == asked:
                texts = tuple(own.get((question, experiment), "-") for own in cells)
                yield Aligned("What training found", f"{question} ({experiment})", texts)


def _recalled(curves: Sequence[Curve]) -> Iterator[Aligned]:
    """A row for every context: what no weights exceed, and what storing facts reaches."""
    part = "Random facts recalled, at most (by storing as many as fit)"
    for points in zip(*curves, strict=True):
        yield Aligned(part, f"{points[0].context:,}", tuple(_accuracy(point) for point in points))


def _accuracy(point: Point) -> str:
    if point.at_most is None:
        return "no bound"
    return f"{percent(point.at_most)} ({percent(point.stored, up=False)})"


def _share(millionths: int | None) -> float | None:
    return None if millionths is None else millionths / WHOLE


def _asked(question: str) -> str:
    """What all cards ask alike."""
    return _parts(question)[0]


def _question(line: CardLine) -> tuple[str, str]:
    """What all cards ask alike, and what this one adds: "composition", "L <= 12 steps"."""
    return _parts(line.question)


def _parts(question: str) -> tuple[str, str]:
    text = question.rstrip()
    found = _DETAIL.search(text)
    if (
        found is None
        or not any(sign.isdigit() for sign in text[found.end() :])
        or text[found.end() :].startswith("S_")
    ):
        return text, ""
    return text[: found.start()], text[found.end() :].rstrip(")")


def _answer(line: CardLine, explain: bool) -> str:
    detail = _question(line)[1]
    cited = theorem_name(line.theorem)
    said = " ".join(filter(None, (line.status, line.where)))
    if line.bound is not None:
        said = line.answer
        near = line.where and not line.bound.out_of_reach
        cited += f" bites {line.where}" if near else f": {line.bound.said.split(' is ')[-1]}"
    if cited:
        said += f" ({cited})"
    answer = f"{detail}: {said}" if detail else said
    return f"{answer}\n{line.explain}" if explain and line.explain else answer
