"""One Document for every face: what a command says as headings, lines, tables and plots, and three
printers that show it.

A command works out facts (what `--json` prints), and lays them out once:

    document = Document(
        Heading("gdn*4", "4 layers: 4 Gated DeltaNet"),
        Table([("Carries", "4.0 MiB"), ("Reads", "4.0 MiB of cache for a token")], labels=True),
        Heading("What can it do?"),
        Table([("recall", "OPEN", "fails from n = 67,109 on"), ...]),
        Heading(),
        Line("--why recall opens one"),
    )

- `document.lines(80)`: lines of at most 80 columns for a terminal, and what of them is bold;
  `separatrix.cli.printing.show(document)` prints these, the statuses coloured;
- `document.markdown()`;
- `document.html()`: elements without a style of their own; `document.page()` with one, for
  notebooks.

Texts are plain: no markup is read. The words SOLVABLE, FAILS and OPEN are coloured wherever they
stand. Widths, wrapping, bold and colours are the printers' own; a layout says none of these.
"""

from __future__ import annotations

from separatrix.core.document import html, markdown, terminal
from separatrix.core.document.parts import Cells, Fold, Heading, Line, Part, Plot, Table

__all__ = ["Cells", "Document", "Fold", "Heading", "Line", "Part", "Plot", "Table"]


class Document:
    """Headings, lines, tables, plots, and what folds others up."""

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

    def html(self, said: html.Said = str) -> str:
        """For a page that has a style for statuses (classes solves, fails, open) and wide tables
        (scroll); `said` is what becomes of each text before it is escaped.
        """
        return html.document(self.parts, said)

    def page(self) -> str:
        """For a notebook: with a style of its own."""
        return f'<div class="separatrix"><style>{html.STYLE}</style>{self.html()}</div>'
