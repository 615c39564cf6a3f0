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

from separatrix.core.document.document import Document
from separatrix.core.document.parts import Cells, Heading, Line, Part, Plot, Table

__all__ = ["Cells", "Document", "Heading", "Line", "Part", "Plot", "Table"]
