"""The capability card of an architecture in a terminal. Nothing here decides anything: see
card_json.py for where its facts come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from separatrix.architecture import Architecture
from separatrix.numbers.amounts import bytes_of, check_context, format_bytes
from separatrix.report.card_json import assumptions, card_json, card_lines, unknown
from separatrix.report.memory import KINDS, Row, pattern, rows
from separatrix.report.statuses import COLOURS
from separatrix.report.theorem_names import since, theorem_name

if TYPE_CHECKING:
    from rich.console import RenderableType

    from separatrix.cards import CardLine

__all__ = ["card_json", "card_lines", "render_card"]

_LONGEST_NAME = 32
_WIDEST_QUESTION = 32


def render_card(
    architecture: Architecture,
    context: int,
    *,
    lines: Sequence[CardLine] | None = None,
    explain: bool = False,
) -> RenderableType:
    """The card as something rich prints, in ASCII; `lines` as `card_lines` gives them; `explain`
    adds two sentences of plain English to each.

    Raises SizeError for a context that is none.
    """
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    check_context(context)
    lines = card_lines(architecture, context) if lines is None else lines
    parts: list[RenderableType] = [
        _header(architecture),
        Text(),
        *_memory(architecture, context),
        Text(),
        Text("What that means", "bold"),
        meaning(lines, explain=explain),
        Text(),
        Text("Assumptions", "bold"),
    ]
    granted = (*assumptions(architecture), *_unknown_text(architecture))
    return Group(*parts, *(Padding(Text(text), (0, 0, 0, 2)) for text in granted))


def layers_text(architecture: Architecture) -> str:
    """Layers by mechanism, most frequent first: "18 RG-LRU   8 windowed (2,048)   0 full"."""
    counts = Counter(
        tuple(dict.fromkeys(part.card_title for part in layer)) for layer in architecture
    )
    words = [f"{number:,} {' | '.join(kinds)}" for kinds, number in counts.most_common()]
    if not any(part.group == "full" for layer, _ in architecture.counted() for part in layer):
        words.append("0 full")
    return "   ".join(words)


def formats_text(architecture: Architecture) -> str:
    """Number formats: "bf16, recurrent state fp32 (assumed)"."""
    mixing = [part for layer in architecture for part in layer if part.mixes_tokens]
    formats = sorted({part.format for part in mixing})
    states = sorted(
        {
            part.sizes()["state_format"] or part.format
            for part in mixing
            if "state_format" in part.sizes()
        }
    )
    assumed = any(
        note.startswith("recurrent state") and "(assumed)" in note for note in architecture.notes
    )
    words = ["/".join(formats)] if formats else []
    if states and states != formats:
        words.append(f"recurrent state {'/'.join(states)}{' (assumed)' if assumed else ''}")
    return ", ".join(words)


def _header(architecture: Architecture) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3))
    total = len(architecture)
    name = str(architecture)
    counted = f"{total:,} layer{'s' if total > 1 else ''}"
    first = Text("   ".join(filter(None, (counted, formats_text(architecture)))))
    if len(name) <= _LONGEST_NAME:
        grid.add_row(Text(name, "bold"), first)
    else:
        grid.add_row("", Text(name, "bold"))
        grid.add_row("", first)
    grid.add_row("", Text(" ".join(pattern(architecture))))
    grid.add_row("", Text(layers_text(architecture)))
    return grid


def _memory(architecture: Architecture, context: int) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3))
    for justify in ("left", "right", "right", "left"):
        grid.add_column(justify=justify, overflow="fold")
    grid.add_row(
        Text("Memory of the past", "bold"),
        f"{context:,} token{'s' if context > 1 else ''}",
        "any length",
        "",
    )
    memory = rows(architecture, context)
    for row in memory:
        grid.add_row(f"  {KINDS[row.kind]}", format_bytes(row.bits), growth_text(row))
    limits = [row.limit for row in memory if row.limit is not None]
    total = sum(row.bits for row in memory)
    if len(limits) == len(memory):
        grid.add_row("  together", format_bytes(total), format_bytes(sum(limits)), "does not grow")
    else:
        grid.add_row("  together", format_bytes(total), "grows with the context")
    # theorems count in bits
    grid.add_row("", f"{total:,} bits")
    return [grid, *(Padding(Text(text), (0, 0, 0, 2)) for text in _reading_text(architecture))]


def growth_text(row: Row) -> str:
    """What a kind of memory becomes: its size at any length, or by how much it grows."""
    if row.limit is not None:
        return format_bytes(row.limit)
    if row.per_token:
        return f"{bytes_of(row.per_token):,} bytes per token"
    return f"{format_bytes(row.per_doubling)} more per doubling"


def _reading_text(architecture: Architecture) -> list[str]:
    many = len(architecture.reading)
    if not many:
        return []
    most = max(architecture.read_bits(index) for index in architecture.reading)
    where = "the reading layer" if many == 1 else f"each of the {many:,} reading layers"
    return [f"one query returns at most {most:,} bits of the past in {where}"]


def meaning(lines: Sequence[CardLine], *, explain: bool = False) -> RenderableType:
    """Questions beside their answers and reasons."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3))
    grid.add_column(max_width=_WIDEST_QUESTION, overflow="fold")
    grid.add_column(overflow="fold")
    for line in lines:
        answer = Text(line.status, COLOURS[line.status])
        answer.append(since(line.n, line.theorem), "not bold")
        parts = [answer]
        cited = theorem_name(line.theorem)
        reason = line.text if cited in line.text else ": ".join(filter(None, (cited, line.text)))
        if reason:
            parts.append(Text(reason))
        if explain and line.explain:
            parts.append(Text(line.explain, "dim italic"))
        grid.add_row(Text(line.question), Text("\n").join(parts))
    return Padding(grid, (0, 0, 0, 2))


def _unknown_text(architecture: Architecture) -> list[str]:
    names = {
        "vocabulary": "the size of the vocabulary",
        "context": "the longest context it was made for",
    }
    missing = [names[name] for name in unknown(architecture)]
    return [f"not known: {', '.join(missing)}"] if missing else []
