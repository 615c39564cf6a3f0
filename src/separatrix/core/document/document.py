"""The Document: parts in order, and the printers that show them."""

from __future__ import annotations

from collections.abc import Callable

from separatrix.core.document import html, markdown, terminal
from separatrix.core.document.parts import Part


class Document:
    """Headings, lines, tables and plots."""

    def __init__(self, *parts: Part) -> None:
        self.parts = parts

    def __add__(self, other: Document) -> Document:
        return Document(*self.parts, *other.parts)

    def lines(self, width: int) -> list[terminal.Shown]:
        """For a terminal of so many columns."""
        return list(terminal.shown(self.parts, width))

    def text(self, width: int) -> str:
        """The same without bold."""
        return "\n".join(line.text for line in self.lines(width))

    def markdown(self) -> str:
        """For a file of Markdown."""
        return markdown.document(self.parts)

    def html(self, said: Callable[[str], str] = str) -> str:
        """For a page that has a style for statuses (classes solves, fails, open); `said` is what
        becomes of each text before it is escaped.
        """
        return html.document(self.parts, said)

    def page(self) -> str:
        """For a notebook: with a style of its own."""
        return f'<div class="separatrix"><style>{html.STYLE}</style>{self.html()}</div>'
