"""Capability cards side by side: rows aligned by what they say, rows that differ marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from separatrix.architecture import Architecture
from separatrix.architecture.spec import _fold
from separatrix.numbers.amounts import check_context, format_bytes
from separatrix.report.card import formats_text, growth_text
from separatrix.report.card_json import card_json, card_lines
from separatrix.report.memory import KINDS, Row, layer_counts, rows, symbol
from separatrix.report.statuses import COLOURS
from separatrix.report.theorem_names import since, theorem_name

if TYPE_CHECKING:
    from separatrix.cards import CardLine

_LABEL = 23
_NARROWEST = 17
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
    architectures: Sequence[Architecture], context: int, *, explain: bool = False
) -> list[Aligned]:
    """Every row of the comparison. Raises SizeError for a context that is not positive."""
    check_context(context)
    cards = [card_lines(architecture, context) for architecture in architectures]
    return _rows(architectures, context, cards, explain=explain)


def _rows(
    architectures: Sequence[Architecture],
    context: int,
    cards: Sequence[Sequence[CardLine]],
    *,
    explain: bool = False,
) -> list[Aligned]:
    return [
        *_layers(architectures),
        *_memory(architectures, context),
        *_meaning(cards, explain=explain),
    ]


def compare_json(architectures: Sequence[Architecture], context: int) -> dict[str, Any]:
    """The cards as `analyze --json` gives them, and the rows that differ."""
    cards = [card_lines(architecture, context) for architecture in architectures]
    return {
        "context": context,
        "models": [
            card_json(architecture, context, lines=own)
            for architecture, own in zip(architectures, cards, strict=True)
        ],
        "rows": [
            {"part": row.part, "row": row.label, "cells": list(row.cells), "differs": row.differs}
            for row in _rows(architectures, context, cards)
        ],
    }


def render_comparison(
    architectures: Sequence[Architecture], context: int, *, explain: bool = False
) -> RenderableType:
    """The comparison as something rich prints, in ASCII; as many models beside each other as the
    width has room for, then the next ones.

    `explain` adds two sentences of plain English to every answer.
    """
    names = tuple(str(architecture) for architecture in architectures)
    return _Comparison(names, tuple(aligned(architectures, context, explain=explain)), context)


@dataclass(frozen=True)
class _Comparison:
    names: tuple[str, ...]
    rows: tuple[Aligned, ...]
    context: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        across = self._across(options.max_width)
        for start in range(0, len(self.names), across):
            if start:
                yield Text()
            yield self._page(range(start, min(start + across, len(self.names))))
        yield Text()
        yield Text(
            f"{MARK} the models differ    reasons and assumptions: separatrix analyze MODEL"
            f" --context {self.context}",
            "dim",
        )

    def _across(self, width: int) -> int:
        """How many models stand beside each other: so many that no word is broken, and about as
        many on every page.
        """
        words = [
            max(len(word) for text in self._texts(i) for word in text.split())
            for i in range(len(self.names))
        ]
        column = max(_NARROWEST, *words) + _GAP
        most = max(1, min(len(self.names), (width - _LABEL) // column))
        pages = -(-len(self.names) // most)
        return -(-len(self.names) // pages)

    def _texts(self, i: int) -> list[str]:
        return [self.names[i], *(row.cells[i] for row in self.rows)]

    def _page(self, shown: range) -> Table:
        table = Table(
            box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", expand=False
        )
        table.add_column(f"at {self.context:,} tokens", width=_LABEL, overflow="fold")
        for i in shown:
            table.add_column(self.names[i], ratio=1, overflow="fold", min_width=min(_NARROWEST, 12))
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


def _layers(architectures: Sequence[Architecture]) -> Iterator[Aligned]:
    counts = [layer_counts(architecture) for architecture in architectures]
    for kind in counts[0]:
        if kind == "total" or any(count[kind] for count in counts):
            yield Aligned(
                "Layers",
                "together" if kind == "total" else kind,
                tuple(f"{count[kind]:,}" for count in counts),
            )
    yield Aligned(
        "Layers",
        "pattern",
        tuple(_fold([symbol(layer) for layer in architecture]) for architecture in architectures),
    )
    yield Aligned(
        "Layers",
        "formats",
        tuple(formats_text(architecture) or "-" for architecture in architectures),
    )


def _memory(architectures: Sequence[Architecture], context: int) -> Iterator[Aligned]:
    memory = [
        {row.kind: row for row in rows(architecture, context)} for architecture in architectures
    ]
    part = "Memory of the past"
    for kind, title in KINDS.items():
        if any(kind in own for own in memory):
            yield Aligned(part, title, tuple(_kept(own.get(kind)) for own in memory))
    yield Aligned(
        part,
        "together",
        tuple(format_bytes(sum(row.bits for row in own.values())) for own in memory),
    )
    yield Aligned(part, "one query returns", tuple(_read_text(one) for one in architectures))


def _read_text(architecture: Architecture) -> str:
    if not architecture.reading:
        return "-"
    most = max(architecture.read_bits(i) for i in architecture.reading)
    return f"at most {most:,} bits in each of {len(architecture.reading):,}"


def _kept(row: Row | None) -> str:
    if row is None:
        return "-"
    here = format_bytes(row.bits)
    return here if row.limit is not None else f"{here}, {growth_text(row)}"


def _meaning(cards: Sequence[Sequence[CardLine]], *, explain: bool) -> Iterator[Aligned]:
    """A row for every question, in the order of the first card that asks it; several lines of
    one card on it stand below each other.
    """
    order: list[str] = []
    for lines in cards:
        before = 0
        for question in (_question(line)[0] for line in lines):
            if question not in order:
                order.insert(before, question)
            before = order.index(question) + 1
    for question in order:
        cells = (
            "\n".join(_answer(line, explain) for line in lines if _question(line)[0] == question)
            or "-"
            for lines in cards
        )
        yield Aligned("What that means", question, tuple(cells))


def _question(line: CardLine) -> tuple[str, str]:
    """What all cards ask alike, and what this one adds: "composition", "L <= 12 steps"."""
    text = line.question.rstrip()
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
    said = f"{line.status}{since(line.n, line.theorem)}{f' ({cited})' if cited else ''}"
    answer = f"{detail}: {said}" if detail else said
    return f"{answer}\n{line.explain}" if explain and line.explain else answer
