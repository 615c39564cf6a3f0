"""A document as Markdown, and texts that Markdown shows as they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from separatrix.core.document.parts import Fold, Heading, Line, Part, Plot, Table
from separatrix.core.errors import printable


def plain(text: str) -> str:
    """A text as Markdown shows it as it stands, in one line."""
    text = " ".join(printable(text).split())
    for mark in ("\\", "|", "*", "_", "<", "["):
        text = text.replace(mark, f"\\{mark}")
    return text


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under headings; nothing of no rows."""
    if not rows:
        return ""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(plain, line))} |" for line in lines)


def document(parts: Iterable[Part]) -> str:
    """The parts, a blank line between any two."""
    return "\n\n".join(block for part in parts for block in _blocks(part)) + "\n"


def _blocks(part: Part) -> Iterator[str]:
    match part:
        case Heading():
            if part.text:
                yield f"### {plain(part.text)}"
            if part.beside:
                yield plain(part.beside)
        case Line():
            yield plain(part.text)
        case Table():
            width = max((len(row) for row in part.cells), default=1)
            empty = [""] * (width - 1)
            rows = [(row, *empty) if isinstance(row, str) else row for row in part.rows]
            if rows:
                yield table(part.columns or [""] * width, rows)
        case Fold():
            yield plain("   ".join(part.line))
            for one in part.parts:
                yield from _blocks(one)
        case Plot():
            yield from map(plain, filter(None, (part.caption, part.words)))
            if part.drawn:
                yield "\n".join(["```", *part.drawn, "```"])
