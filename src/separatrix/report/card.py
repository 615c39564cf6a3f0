"""The capability card of an architecture in a terminal. Nothing here decides anything: see
card_json.py for where its facts come from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from separatrix.architecture import Architecture
from separatrix.numbers.amounts import check_context
from separatrix.report.card_json import assumptions, bytes_of, card_json, card_lines, unknown
from separatrix.report.memory import KINDS, Row, pattern, rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from separatrix.cards import CardLine

__all__ = ["card_json", "card_lines", "render_card"]

_LONGEST_NAME = 32
_WIDEST_QUESTION = 32
_COLOURS = {"SOLVABLE": "bold blue", "FAILS": "bold red", "OPEN": "bold yellow"}


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
    ]
    parts += [_meaning(lines, explain), Text(), Text("Taken for granted", "bold")]
    parts += [
        Padding(Text(text), (0, 0, 0, 2))
        for text in (*assumptions(architecture), *_unknown_text(architecture))
    ]
    return Group(*parts)


def size_text(bits: int) -> str:
    """Bits as bytes for people: 16.4 MiB."""
    value = bits / 8
    unit = "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024:
            break
        value = value / 1024
        unit = larger
    return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:,.1f} {unit}"


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
        grid.add_row(f"  {KINDS[row.kind]}", f"{row.bits:,} bits", _growth(row), "")
    limits = [row.limit for row in memory if row.limit is not None]
    bounded = len(limits) == len(memory)
    together = size_text(sum(limits)) if bounded else "grows with the context"
    grid.add_row(
        "  together",
        size_text(sum(row.bits for row in memory)),
        together,
        "does not grow" if bounded else "",
    )
    parts: list[RenderableType] = [grid]
    if architecture.reading:
        h = max(architecture.read_bits(index) for index in architecture.reading)
        many = len(architecture.reading)
        where = "the reading layer" if many == 1 else f"each of the {many:,} reading layers"
        reading = Text(
            f"one token, its query fixed, reads at most {h:,} bits of the past in {where}"
        )
        parts.append(Padding(reading, (0, 0, 0, 2)))
    return parts


def _growth(row: Row) -> str:
    if row.limit is not None:
        return f"{row.limit:,} bits"
    return (
        f"{bytes_of(row.per_token):,} bytes per token"
        if row.per_token
        else f"{size_text(row.per_doubling)} more per doubling"
    )


_SHORTEST = ("III", "IV", "V")
"""Theorems whose n is the shortest prompt shown to fail, not a size from which all do."""


def _meaning(lines: Sequence[CardLine], explain: bool) -> RenderableType:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3))
    grid.add_column(max_width=_WIDEST_QUESTION, overflow="fold")
    grid.add_column(overflow="fold")
    for line in lines:
        answer = Text(line.status, _COLOURS.get(line.status, ""))
        if line.n is not None:
            since = "at" if line.theorem in _SHORTEST else "from"
            answer.append(
                (
                    f" {since} n = {line.n:,}"
                    if line.n < 10**24
                    else f" {since} n of about 10^{len(str(line.n)) - 1}"
                ),
                "not bold",
            )
        cited = theorem_text(line.theorem)
        reason = line.text if cited in line.text else ": ".join(filter(None, (cited, line.text)))
        said = [Text(line.explain, "dim italic")] if explain and line.explain else []
        grid.add_row(
            Text(line.question),
            Text("\n").join([answer, *([Text(reason)] if reason else []), *said]),
        )
    return Padding(grid, (0, 0, 0, 2))


def theorem_text(key: str) -> str:
    """A theorem's key as people cite it: "Theorem I", "[Ye26, Theorem 1.1]", "construction:
    retrieval".
    """
    if key in ("", "none"):
        return ""
    if re.fullmatch(r"[IVX]+'?", key):
        return f"Theorem {key}"
    cited = re.fullmatch(r"([A-Za-z]+\d*)-(\d[\d.]*)", key)
    return f"[{cited[1]}, Theorem {cited[2]}]" if cited else f"construction: {key}"


def _unknown_text(architecture: Architecture) -> list[str]:
    names = {
        "vocabulary": "the size of the vocabulary",
        "context": "the longest context it was made for",
    }
    missing = [names[name] for name in unknown(architecture)]
    return [f"not known: {', '.join(missing)}"] if missing else []
