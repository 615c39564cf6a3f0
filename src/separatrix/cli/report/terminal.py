"""The table of results for a terminal: status, deciding number, the paper's entry and the three
marks, within 100 columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from separatrix.cli.report.notation import subscripted
from separatrix.cli.report.statuses import FACES
from separatrix.cli.report.view import MARKS, Cell, View, view

_WIDEST = 100


@dataclass(frozen=True)
class _Signs:
    """The signs of statuses and marks, in unicode or in ASCII."""

    status: dict[str, str]
    present: dict[str, str]
    absent: dict[str, str]


_UNICODE = _Signs(
    status={status: face.sign for status, face in FACES.items()},
    present={"proved": "■", "witnessed": "◆", "measured": "●"},
    absent={"proved": "□", "witnessed": "◇", "measured": "○"},
)
_ASCII = _Signs(
    status={status: face.ascii_sign for status, face in FACES.items()},
    present={"proved": "P", "witnessed": "W", "measured": "M"},
    absent=dict.fromkeys(MARKS, "."),
)


def render_terminal(bundle_body: Mapping[str, Any]) -> RenderableType:
    """The table as something rich prints, at most 100 columns wide, in ASCII where the terminal
    has no more. Raises EvidenceError as `view` does.
    """
    return _TerminalTable(view(bundle_body))


@dataclass(frozen=True)
class _TerminalTable:
    seen: View

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        ascii_only = options.ascii_only
        signs = _ASCII if ascii_only else _UNICODE
        table = Table(
            title=_text(self.seen.title, ascii_only),
            title_justify="left",
            show_lines=True,
            width=min(_WIDEST, options.max_width),
        )
        table.add_column("", ratio=4, overflow="fold")
        for column in self.seen.columns:
            head = _text(column["title"], ascii_only)
            size = _text(column["size_class"], ascii_only, style="not bold dim")
            table.add_column(head.append("\n").append_text(size), ratio=5, overflow="fold")
        for row in self.seen.rows:
            cells = [
                _cell(self.seen.cells[row["key"], column["key"]], signs, ascii_only)
                for column in self.seen.columns
            ]
            table.add_row(_text(row["title"], ascii_only), *cells)
        yield table
        yield Text(
            "  ".join(f"{signs.present[name]} {name}" for name in MARKS)
            + f"  {signs.absent['measured']} not here",
            style="dim",
        )


def _cell(cell: Cell, signs: _Signs, ascii_only: bool) -> Text:
    marks = " ".join(
        (signs.present if there else signs.absent)[name] for name, there in cell.marks.items()
    )
    text = Text(f"{signs.status[cell.status]} {cell.status}", style=FACES[cell.status].colour)
    text.append(f"  {marks}\n", style="default")
    text.append_text(_text(cell.number, ascii_only, style="not bold default"))
    for line in (cell.stack, cell.training):
        text.append("\n").append_text(_text(line, ascii_only, style="not bold default"))
    if cell.paper:
        text.append("\n").append_text(
            _text(f"paper: {cell.paper}", ascii_only, style="not bold dim default")
        )
    return text


def _text(text: str, ascii_only: bool, style: str = "") -> Text:
    """`text` as it stands (no markup is read, no control character kept), in ASCII where the
    terminal asks for it.
    """
    if ascii_only:
        return Text("".join(c if " " <= c <= "~" else "?" for c in text), style=style)
    return Text(subscripted(text), style=style)
