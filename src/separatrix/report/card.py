"""The capability card of an architecture in a terminal: prints facts and decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from separatrix.numbers.amounts import bytes_of, format_bytes
from separatrix.report.costs import cost_rows, costs_explained, costs_notes
from separatrix.report.practice import found_text
from separatrix.report.statuses import COLOURS
from separatrix.report.theorem_names import theorem_name
from separatrix.theory.built import in_construct

if TYPE_CHECKING:
    from rich.console import RenderableType

    from separatrix.cards import CardFacts, CardLine
    from separatrix.cards.memory import Row
    from separatrix.cards.practice import Finding

_LONGEST_NAME = 32
_WIDEST_QUESTION = 32


def render_card(facts: CardFacts, *, explain: bool = False) -> RenderableType:
    """The card as something rich prints, in ASCII; `explain` adds two sentences of plain English
    to each line.
    """
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = [
        _header(facts),
        Text(),
        *_memory(facts),
        Text(),
        *_costs(facts, explain=explain),
        Text(),
        Text.assemble((f"At {_tokens(facts.context)}", "bold"), _chosen(facts.context_from)),
        meaning(facts.lines, facts.practice, explain=explain),
        Text(),
        Text("Assumptions", "bold"),
    ]
    granted = (*_defaults_text(facts), *facts.assumptions, *_unknown_text(facts))
    return Group(*parts, *(Padding(Text(text), (0, 0, 0, 2)) for text in granted))


def layers_text(titles: Iterable[tuple[int, str]]) -> str:
    """Layers by mechanism: "18 RG-LRU   8 windowed (2,048)   0 full"."""
    return "   ".join(f"{number:,} {title}" for number, title in titles)


def _tokens(number: int) -> str:
    return f"{number:,} token{'s' if number > 1 else ''}"


def _chosen(context_from: str) -> str:
    return f", {context_from}; --context asks at another" if context_from else ""


def _header(facts: CardFacts) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3))
    total = facts.layers["total"]
    counted = f"{total:,} layer{'s' if total > 1 else ''}"
    first = Text("   ".join(filter(None, (counted, facts.formats))))
    if len(facts.name) <= _LONGEST_NAME:
        grid.add_row(Text(facts.name, "bold"), first)
    else:
        grid.add_row("", Text(facts.name, "bold"))
        grid.add_row("", first)
    grid.add_row("", Text(" ".join(facts.symbols)))
    grid.add_row("", Text(layers_text(facts.titles)))
    if facts.positions:
        grid.add_row("", Text(f"positions: {facts.positions}"))
    return grid


def _memory(facts: CardFacts) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3))
    for justify in ("left", "right", "right", "left"):
        grid.add_column(justify=justify, overflow="fold")
    grid.add_row(
        Text("Memory of the past", "bold"),
        _tokens(facts.context),
        "any length",
        "",
    )
    for row in facts.memory:
        grid.add_row(f"  {row.title}", format_bytes(row.bits), growth_text(row))
    limits = [row.limit for row in facts.memory if row.limit is not None]
    total = format_bytes(facts.bits)
    if len(limits) == len(facts.memory):
        grid.add_row("  together", total, format_bytes(sum(limits)), "does not grow")
    else:
        grid.add_row("  together", total, "grows with the context")
    # theorems count in bits
    grid.add_row("", f"{facts.bits:,} bits")
    return [grid, *(Padding(Text(text), (0, 0, 0, 2)) for text in _reading_text(facts))]


def _costs(facts: CardFacts, *, explain: bool) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    found = facts.costs
    grid = Table.grid(padding=(0, 3))
    grid.add_column(overflow="fold")
    for _ in found.at:
        grid.add_column(justify="right", overflow="fold")
    heads = (_tokens(cost.context) for cost in found.at)
    grid.add_row(Text("Cost of a token after", "bold"), *heads)
    for title, said in cost_rows(found):
        grid.add_row(f"  {title}", *map(said, found.at))
    notes = [Text(text) for text in costs_notes(found)]
    if explain:
        notes.append(Text(costs_explained(), "dim italic"))
    return [grid, *(Padding(note, (0, 0, 0, 2)) for note in notes)]


def growth_text(row: Row) -> str:
    """What a kind of memory becomes: its size at any length, or by how much it grows."""
    if row.limit is not None:
        return format_bytes(row.limit)
    if row.per_token:
        return f"{bytes_of(row.per_token):,} bytes per token"
    return f"{format_bytes(row.per_doubling)} more per doubling"


def _reading_text(facts: CardFacts) -> list[str]:
    if not facts.readers:
        return []
    where = f"each of the {facts.readers:,} reading layers"
    if facts.readers == 1:
        where = "the reading layer"
    return [f"one query returns at most {facts.read_bits:,} bits of the past in {where}"]


def meaning(
    lines: Sequence[CardLine], practice: Sequence[Finding] = (), *, explain: bool = False
) -> RenderableType:
    """Questions beside their answers and reasons, and what training found."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3))
    grid.add_column(max_width=_WIDEST_QUESTION, overflow="fold")
    grid.add_column(overflow="fold")
    for line in lines:
        answer = Text(line.answer, COLOURS[line.status])
        cited = theorem_name(line.theorem)
        if line.status == "SOLVABLE" and line.verdict is not None:
            cited = f"{cited} ({in_construct(line.verdict)})"
        if line.bound is None:
            answer.append(f" {line.where}" if line.where else "", "not bold")
        else:
            answer.append(f": {line.bound.said}", "not bold")
            cited = " ".join(filter(None, (cited, line.bound.where)))
        parts = [answer]
        reason = ": ".join(filter(None, (cited, line.text)))
        if reason:
            parts.append(Text(reason))
        if explain and line.explain:
            parts.append(Text(line.explain, "dim italic"))
        if line.grade is not None:
            parts.append(Text(f"{theorem_name(line.grade.verdict.theorem)}: {line.grade.said}"))
            if explain:
                parts.append(Text(line.grade.why, "dim italic"))
        for finding in practice:
            if finding.question == line.question:
                parts += found_text(finding, explain=explain)
        grid.add_row(Text(line.question), Text("\n").join(parts))
    return Padding(grid, (0, 0, 0, 2))


def _defaults_text(facts: CardFacts) -> list[str]:
    said = ", ".join(facts.defaults)
    return [f"not said in the spec, taken by default: {said}"] if said else []


def _unknown_text(facts: CardFacts) -> list[str]:
    names = {
        "vocabulary": "the size of the vocabulary",
        "context": "the longest context it was made for",
    }
    missing = [names[name] for name in facts.unknown]
    return [f"not known: {', '.join(missing)}"] if missing else []
