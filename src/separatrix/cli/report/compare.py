"""Models side by side: what a theorem separates, what costs separate, and what nothing does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from separatrix.cards import CardFacts
from separatrix.cards.apart import KINDS as HOW
from separatrix.cards.apart import Asked, Curve, Point, asked_of_all
from separatrix.cards.facts import ALL
from separatrix.cards.questions import values_of
from separatrix.cli.report.card import (
    DEFAULTS,
    card_json,
    lines_opened,
    of_each,
    opened,
    tokens,
    topics,
)
from separatrix.cli.report.costs import UNKNOWN, cost_rows
from separatrix.core.document import Cells, Document, Fold, Heading, Line, Part, Table
from separatrix.core.numbers.accuracy import WHOLE, percent
from separatrix.core.numbers.amounts import format_bytes

COSTS = "Costs"


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
    return [*(_row("Questions", one) for one in asked_of_all(cards)), *_priced(cards)]


def _row(part: str, asked: Asked) -> Aligned:
    return Aligned(part, asked.asks, tuple(row.answer for row in asked.answers))


def compare_json(cards: Sequence[CardFacts], curves: Sequence[Curve] = ()) -> dict[str, Any]:
    """The cards as `analyze --json` gives them, what separates them, the rows that differ, and how
    many random facts each model recalls at the most (null: no bound) and by storing what fits.
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
        "rows": [
            {"part": row.part, "row": row.label, "cells": list(row.cells), "differs": row.differs}
            for row in (*aligned(cards), *_recalled(curves))
        ],
    }


def comparison_document(cards: Sequence[CardFacts]) -> Document:
    """What separates the models, as many beside each other as the width has room for."""
    asked, priced = asked_of_all(cards), list(_priced(cards))
    rows = [_row(title, one) for kind, title in HOW.items() for one in asked if one.kind == kind]
    rows += [row for row in priced if row.differs]
    alike = [one.asks for one in asked if not one.kind]
    same = [row.label for row in priced if not row.differs and row.cells[0] != UNKNOWN]
    notes: list[str] = []
    context = tokens(cards[0].context)
    values = [f"{n:,}" for n in dict.fromkeys(values_of(facts.architecture) for facts in cards)]
    if len(values) > 1:
        notes.append(f"Each is asked about as many values as it has tokens: {'; '.join(values)}.")
    if alike:
        notes.append(f"Nothing here separates: {', '.join(alike)}.")
    elif any(row.part != COSTS for row in rows):
        notes.append("All that is asked here separates them.")
    if same:
        notes.append(f"The same of all: {', '.join(same)}.")
    notes.append(f"Not decided here: perplexity, quality, what trained weights do at {context}.")
    if defaults := dict.fromkeys(name for facts in cards for name in facts.defaults):
        notes.append(f"{DEFAULTS}{', '.join(defaults)}")
    if cards[0].context_from:
        notes.append(f"{context}: {cards[0].context_from}; --context asks at another")
    notes.append("--why QUESTION, memory, costs, assumptions or all")
    return Document(_table(cards, rows), Heading(), *map(Line, notes))


def compared_page(cards: Sequence[CardFacts]) -> list[Part]:
    """The same for a page: each question opens what stands behind its answers."""
    asked = asked_of_all(cards)
    parts: list[Part] = []
    for kind, title in {**HOW, "": "Alike"}.items():
        if not kind:
            parts = parts or [Heading("Nothing that is asked here separates them")]
            parts.append(_table(cards, [row for row in _priced(cards) if row.differs]))
        own = [one for one in asked if one.kind == kind]
        parts += [Heading(title)] if own else []
        for one in own:
            behind = of_each(cards, (lines_opened(row.lines) for row in one.answers))
            parts.append(Fold((one.asks, *(row.answer for row in one.answers)), behind))
    return [*parts, *topics(*cards)]


def compared_why_document(
    cards: Sequence[CardFacts], curves: Sequence[Curve], asked: str
) -> Document:
    """What stands behind a question or a topic, model by model, then how many random facts each
    recalls over contexts.
    """
    none: list[Part] = [Line("no theorem here speaks of it")]
    parts = of_each(cards, (opened(facts, asked) or none for facts in cards))
    rows = list(_recalled(curves)) if asked in ("recall", ALL) else []
    if rows:
        parts += [Heading(), _table(cards, rows)]
    return Document(*parts)


def _table(cards: Sequence[CardFacts], rows: Sequence[Aligned]) -> Table:
    cells: list[Cells | str] = []
    for part, own in groupby(rows, lambda row: row.part):
        cells += [part, *((f"  {row.label}", *row.cells) for row in own)]
    names = (f"at {tokens(cards[0].context)}", *(facts.name for facts in cards))
    return Table(cells, names, turns=True)


def _priced(cards: Sequence[CardFacts]) -> Iterator[Aligned]:
    """What serving costs, in short: the cache, what a token adds to it, reads and takes."""
    yield Aligned(COSTS, "cache", tuple(format_bytes(facts.bits) for facts in cards))
    grows = [", ".join(r.growth for r in f.memory if r.limit is None) for f in cards]
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
