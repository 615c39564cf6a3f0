"""What documents are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Cells = Sequence[str]


@dataclass(frozen=True)
class Heading:
    """Begins a section, with what is said beside it; without text the section has only a gap."""

    text: str = ""
    beside: str = ""


@dataclass(frozen=True)
class Line:
    """A paragraph. Blanks that it begins with move all of it to the right."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of as many cells each; a text among them is a heading of the rows that follow. A cell
    may have several lines.
    """

    rows: Sequence[Cells | str]
    columns: Cells = ()
    """What the columns are called."""
    labels: bool = False
    """Whether the first column says what the others are."""
    turns: bool = False
    """Where a terminal has no room for all columns: whether these stand below each other in turns,
    each with the first one, or else each row becomes a paragraph.
    """
    spared: Sequence[str] = ()
    """Columns that a terminal without room for all leaves out and names, the first of them first.
    """

    @property
    def cells(self) -> list[Cells]:
        """The rows without headings."""
        return [row for row in self.rows if not isinstance(row, str)]


@dataclass(frozen=True)
class Plot:
    """A drawing: in words, in characters for a terminal, and as SVG where there is one."""

    words: str
    drawn: Sequence[str] = ()
    svg: str = ""
    caption: str = ""
    """What stands above it; of several lines the first is its title."""


@dataclass(frozen=True)
class Fold:
    """Parts behind a line of cells: in a page they open below it, elsewhere they stand there."""

    line: Cells
    parts: Sequence[Part]
    opened: bool = False


Part = Heading | Line | Table | Plot | Fold
