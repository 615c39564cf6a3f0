"""How commands print: JSON for machines, documents for people."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from separatrix.core.document import Document, Table

COLOURS = {
    "SOLVABLE": "bold blue",
    "FAILS": "bold red",
    "OPEN": "bold yellow",
    "FAIL": "bold red",
}
"""Words that a terminal colours: the three answers, and a law that is broken."""


class Answer(ABC):
    """What a command found: data for machines, a document for people, and the code to exit with."""

    code: int = 0
    after: Callable[[], object] | None = None
    """What is done once it is printed."""

    @abstractmethod
    def to_json(self) -> Any:
        """What the command prints with --json."""

    @abstractmethod
    def document(self) -> Document:
        """What the command prints."""

    def json(self) -> str:
        """The data as text."""
        return json.dumps(self.to_json(), indent=2, allow_nan=False)


@dataclass(frozen=True)
class Told(Answer):
    """Both in hand already."""

    data: Any
    shown: Document
    code: int = 0
    after: Callable[[], object] | None = None

    def to_json(self) -> Any:
        return self.data

    def document(self) -> Document:
        return self.shown


def show(document: Document) -> None:
    """Prints a document, on a terminal with its statuses coloured."""
    import typer
    from rich.console import Console
    from rich.text import Text

    target = Console(highlight=False)
    width = target.width or 80  # COLUMNS=0 says nothing
    if not target.is_terminal:
        typer.echo(document.text(width))
        return
    lines = [
        Text.assemble((line.text[: line.bold], "bold"), line.text[line.bold :])
        for line in document.lines(width)
    ]
    for line in lines:
        for status, colour in COLOURS.items():
            line.highlight_regex(rf"\b{status}\b", colour)
    target.print(Text("\n").join(lines), soft_wrap=True)


def rows_table(rows: Sequence[Mapping[str, Any]], spared: Sequence[str] = ()) -> Table:
    """Rows with the same keys, which are the headings."""
    cells = [[str(value) for value in row.values()] for row in rows]
    return Table(cells, list(rows[0]), spared=spared)
