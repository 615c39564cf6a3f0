"""Tables and texts as Markdown shows them as they stand."""

from __future__ import annotations

from collections.abc import Sequence

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
