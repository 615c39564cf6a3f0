"""The capability card of an architecture in a terminal: one screen, and what `--why` opens. Prints
facts and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from separatrix.cards.short import ALL, ASKED, FAR, NOTHING_SPEAKS, TOPICS
from separatrix.cli.report.costs import cost_rows, costs_explained, costs_notes
from separatrix.cli.report.statuses import COLOURS, theorem_name
from separatrix.core.errors import SpecError
from separatrix.core.numbers.amounts import bytes_of, format_bytes, format_count
from separatrix.stacks.architecture.spec import fold
from separatrix.theory.fits import in_construct
from separatrix.theory.judge import THEOREMS

if TYPE_CHECKING:
    from separatrix.cards import CardFacts, CardLine
    from separatrix.cards.memory import Row
    from separatrix.core.evidence.records import Verdict

LEGEND = "SOLVABLE: weights are known. FAILS: no weights do it. OPEN: neither is known."
_LONGEST_NAME = 32
_DEFAULTS = "not said in the spec, taken by default: "


def render_card(facts: CardFacts) -> RenderableType:
    """One screen, in ASCII: what is carried, read and forgotten, and what is asked of it."""
    rows: list[tuple[RenderableType, ...]] = []
    for row in facts.table:
        status = Text(row.status, COLOURS[row.status])
        rows.append((indented(f"  {row.asks}"), status, Text(row.said)))
    notes = [LEGEND]
    if any(row.decides == FAR for row in facts.table):
        notes.append(NOTHING_SPEAKS)
    granted = len(facts.assumptions) + bool(facts.defaults) + bool(facts.unknown)
    if facts.defaults:
        notes.append(f"{_DEFAULTS}{', '.join(facts.defaults)}")
    if facts.context_from:
        notes.append(f"{_tokens(facts.context)}: {facts.context_from}; --context asks at another")
    opens = ", ".join(dict.fromkeys(row.key for row in facts.table if row.key))
    notes.append(f"--why {opens}, memory, costs, assumptions ({granted}) or all")
    return Group(
        *_header(facts),
        Text(),
        _grid([(Text(label, "bold"), Text(said)) for label, said in _carried(facts)]),
        Text(),
        Text(f"Can some weights do it at {_tokens(facts.context)}?", "bold"),
        _grid(rows),
        Text(),
        *(Text(note) for note in notes),
    )


def render_why(facts: CardFacts, asked: str) -> RenderableType:
    """What stands behind a question, a topic, or the whole card: theorem, sentence, numbers,
    assumptions, sources. Raises SpecError for a question that is not asked of this model.
    """
    parts = opened_parts(facts, asked)
    if not parts:
        raise SpecError(
            f"--why {asked}: '{ASKED[asked]}' is not asked of {facts.name}: no theorem here speaks"
            f" of it, or {facts.context:,} tokens have no room for it"
        )
    return Group(*_header(facts), Text(), *parts[:-1])


def opened_parts(facts: CardFacts, asked: str) -> list[RenderableType]:
    """The same without the head; nothing of a question that is not asked."""

    topics: dict[str, Callable[[CardFacts], list[RenderableType]]] = {
        "memory": _memory,
        "costs": _costs,
        "assumptions": _assumptions,
    }
    parts: list[RenderableType] = []
    for name in (*TOPICS[:2], *ASKED, *TOPICS[2:]):
        if asked not in (name, ALL):
            continue
        if name in topics:
            parts += [*topics[name](facts), Text()]
        elif name in ASKED:
            parts += _lines_opened(facts.lines, name)
    return parts


def _lines_opened(lines: Iterable[CardLine], key: str) -> list[RenderableType]:
    """A question's lines, each with its answer and all that stands behind it, each record once."""
    parts: list[RenderableType] = []
    seen: set[str] = set()
    for line in lines:
        if line.key != key:
            continue
        head = Text(f"{line.question}: ", "bold")
        head.append(line.status, COLOURS[line.status])
        if line.where and line.bound is None:
            head.append(f" {line.where}", "not bold")
        said = [("says", line.reason), ("means", line.explain)]
        if line.grade is not None:
            accuracy = f"{theorem_name(line.grade.verdict.theorem)}: {line.grade.said}"
            said.append(("at best", f"{accuracy}. {line.grade.why}"))
        if line.record is not None and line.record.digest not in seen:
            seen.add(line.record.digest)
            said += _recorded(line.record)
        theorem = THEOREMS.get(line.theorem)
        if theorem is not None and line.theorem != "none" and line.theorem not in seen:
            seen.add(line.theorem)
            said.append(("by", f"{theorem.cited}: {theorem.title}"))
            said.append(("source", f"{theorem.source}; `separatrix theorems show {theorem.key}`"))
        rows = [(Text(f"  {label}"), Text(text)) for label, text in said if text]
        parts += [head, _grid(rows), Text()]
    return parts


def _recorded(record: Verdict) -> Iterator[tuple[str, str]]:
    """What a record adds; the sizes of the file and its formats stand with all assumptions."""
    numbers = (f"{name} {value:,}" for name, value in record.numbers.items())
    yield "numbers", ", ".join(numbers)
    # one word of a hundred letters has no room in a terminal
    yield "task", record.task.replace(",", ", ")
    yield "built", in_construct(record)
    for i, text in enumerate(record.assumptions):
        yield "" if i else "assumes", text


def growth_text(row: Row) -> str:
    """What a kind of memory becomes: its size at any length, or by how much it grows."""
    if row.limit is not None:
        return format_bytes(row.limit)
    if row.per_token:
        return f"{bytes_of(row.per_token):,} bytes per token"
    return f"{format_bytes(row.per_doubling)} more per doubling"


def _tokens(number: int) -> str:
    return f"{number:,} token{'s' if number > 1 else ''}"


def _grid(rows: Iterable[tuple[RenderableType, ...]]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for row in rows:
        grid.add_row(*row)
    for column in grid.columns:
        column.overflow = "fold"
    return grid


def _header(facts: CardFacts) -> list[RenderableType]:
    total = facts.layers["total"]
    kinds = ", ".join(f"{number:,} {title}" for number, title in facts.titles if number)
    layers = f"{total:,} layer{'s' if total > 1 else ''}: {kinds}   {_tokens(facts.context)}"
    drawn = "   ".join(filter(None, (fold(facts.symbols), facts.formats)))
    if len(facts.name) <= _LONGEST_NAME:
        return [Text.assemble((facts.name, "bold"), f"   {layers}"), Text(drawn)]
    return [Text(facts.name, "bold"), Text(layers), Text(drawn)]


def _carried(facts: CardFacts) -> Iterator[tuple[str, str]]:
    """What a card says before its questions."""
    kinds = (f"{row.title} {format_bytes(row.bits)}{_grows(row)}" for row in facts.memory)
    whole = "" if any(row.limit is None for row in facts.memory) else ", whatever the length"
    yield "Carries", f"{format_bytes(facts.bits)}{whole}"
    if len(facts.memory) > 1 or not whole:
        yield "", ", ".join(kinds)
    costs = facts.costs
    here = costs.here(facts.context)
    if here.fetched is not None:
        weights = (
            "" if here.weights is None else f" and {format_bytes(round(here.weights))} of weights"
        )
        yield "Reads", f"{format_bytes(here.fetched)} of cache{weights} for a token"
    mixing = f"{format_count(here.decode)} operations a token to mix"
    if costs.known is not None:
        whole_token = here.decode + costs.known.operations(head=True)
        mixing += f", {format_count(whole_token)} in all"
    yield "Computes", mixing
    if costs.longest is not None and costs.serving.memory is not None:
        fits = "any number" if here.sequences is None else f"{here.sequences:,}"
        memory = format_bytes(costs.serving.memory)
        yield "Serves", f"{fits} sequences in {memory}; {costs_notes(costs)[-1]}"
    if facts.holds:
        yield "Holds", facts.holds
    if facts.forgets:
        yield "Forgets", facts.forgets


def _grows(row: Row) -> str:
    return "" if row.limit is not None else f" ({growth_text(row)})"


def _memory(facts: CardFacts) -> list[RenderableType]:
    rows: list[tuple[RenderableType, ...]] = [
        (Text("Memory of the past", "bold"), Text(_tokens(facts.context)), Text("any length")),
        *(
            (Text(f"  {row.title}"), Text(format_bytes(row.bits)), Text(growth_text(row)))
            for row in facts.memory
        ),
    ]
    limits = [row.limit for row in facts.memory if row.limit is not None]
    grows = "grows with the context"
    if len(limits) == len(facts.memory):
        grows = f"{format_bytes(sum(limits))}, does not grow"
    rows.append((Text("  together"), Text(format_bytes(facts.bits)), Text(grows)))
    # theorems count in bits
    rows.append((Text(), Text(f"{facts.bits:,} bits"), Text()))
    said = [f"positions: {facts.positions}"] if facts.positions else []
    if facts.readers:
        where = f"each of the {facts.readers:,} reading layers"
        where = "the reading layer" if facts.readers == 1 else where
        said.append(f"one query returns at most {facts.read_bits:,} bits of the past in {where}")
    return [_grid(rows), *map(indented, said)]


def _costs(facts: CardFacts) -> list[RenderableType]:
    found = facts.costs
    rows: list[tuple[RenderableType, ...]] = [
        (
            Text("Cost of a token after", "bold"),
            *(Text(_tokens(cost.context)) for cost in found.at),
        ),
        *(
            (Text(f"  {title}"), *(Text(said(cost)) for cost in found.at))
            for title, said in cost_rows(found)
        ),
    ]
    return [_grid(rows), *map(indented, (*costs_notes(found), costs_explained()))]


def _assumptions(facts: CardFacts) -> list[RenderableType]:
    names = {
        "vocabulary": "the size of the vocabulary",
        "context": "the longest context it was made for",
    }
    granted = [*facts.assumptions]
    if facts.defaults:
        granted.insert(0, f"{_DEFAULTS}{', '.join(facts.defaults)}")
    if facts.unknown:
        granted.append(f"not known: {', '.join(names[name] for name in facts.unknown)}")
    return [Text("Assumptions", "bold"), *map(indented, granted)]


def indented(text: str) -> RenderableType:
    """Moved right by the blanks that it begins with, or by two, in every line of it."""
    return Padding(Text(text.lstrip()), (0, 0, 0, max(2, len(text) - len(text.lstrip()))))
