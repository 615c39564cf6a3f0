"""How commands print: JSON for machines, tables and descriptions for people.

A table never breaks a word where the terminal has room for it, and leaves no blanks at the ends of
lines.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.core.errors import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from separatrix.cli.report.parts import Part

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
GAP = 2
"""Columns between two columns of a table."""


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def width() -> int:
    """Columns of the terminal."""
    return console().width


def show(renderable: RenderableType) -> None:
    """Prints what rich draws, without the blanks that fill its lines up."""
    from rich.segment import Segment
    from rich.text import Text

    target = console()
    lines = []
    for segments in target.render_lines(renderable, pad=False):
        simple = Segment.simplify(segments)
        line = Text.assemble(*((segment.text, segment.style or "") for segment in simple))
        line.rstrip()
        lines.append(line)
    target.print(Text("\n").join(lines), soft_wrap=True)


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def print_rows(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Rows with the same keys, as JSON or as a table with the keys as headings. Raises ValueError
    for rows with different ones.
    """
    if as_json:
        print_json(list(rows))
        return
    from rich.text import Text

    headings = list(rows[0])
    if any(list(row) != headings for row in rows):
        raise ValueError("rows of one table have the same keys in the same order")
    texts = [[printable(str(value)) for value in row.values()] for row in rows]
    target = console()
    found = table(headings, texts, target.width)
    for number, line in enumerate(found.lines):
        style = "bold" if number < found.heading_lines else ""
        target.print(Text(line, style), soft_wrap=True)


class Laid:
    """A table as lines of text, the first of them headings."""

    def __init__(self, lines: list[str], heading_lines: int) -> None:
        self.lines = lines
        self.heading_lines = heading_lines


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], most: int) -> Laid:
    """A table of at most `most` columns of text, cells wrapped between words.

    Where even the longest words do not fit beside each other, each row becomes a paragraph.
    """
    columns = list(zip(headings, *rows, strict=True))
    natural = [max(map(len, column)) for column in columns]
    least = [max(map(_longest_word, column)) for column in columns]
    room = most - GAP * (len(columns) - 1)
    if sum(least) > room:
        return Laid([line for row in rows for line in _paragraph(headings, row, most)], 0)
    # one cap for all columns: narrow ones keep their width, wide ones share what is left
    cap = next(cap for cap in range(room, 0, -1) if _total(natural, least, cap) <= room)
    widths = [max(low, min(high, cap)) for low, high in zip(least, natural, strict=True)]
    head = _row_lines(headings, widths, at_the_foot=True)
    return Laid([*head, *(line for row in rows for line in _row_lines(row, widths))], len(head))


def _total(natural: Sequence[int], least: Sequence[int], cap: int) -> int:
    return sum(max(low, min(high, cap)) for low, high in zip(least, natural, strict=True))


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _row_lines(
    cells: Sequence[str], widths: Sequence[int], *, at_the_foot: bool = False
) -> list[str]:
    """The lines of a row; cells with fewer lines stand at its top, or `at_the_foot`."""
    wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, wrapped))
    columns = []
    for cell, width in zip(wrapped, widths, strict=True):
        blank = [""] * (height - len(cell))
        lines = [*blank, *cell] if at_the_foot else [*cell, *blank]
        columns.append([line.ljust(width) for line in lines])
    return [(" " * GAP).join(pieces).rstrip() for pieces in zip(*columns, strict=True)]


def _paragraph(headings: Sequence[str], row: Sequence[str], most: int) -> list[str]:
    first, *others = row
    # a number alone would not say of what
    lines = [f"{headings[0]}: {first}" if first.isdecimal() else first]
    for heading, text in zip(headings[1:], others, strict=True):
        lines += wrap(f"{heading}: {text}", most, indent="  ", hanging="    ")
    return lines


def wrap(text: str, most: int, *, indent: str = "", hanging: str = "") -> list[str]:
    """Lines of at most `most` characters, broken between words; runs of blanks stay in a line."""
    return textwrap.wrap(
        text,
        most,
        initial_indent=indent,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [indent]


def print_description(parts: Iterable[Part], as_json: bool) -> None:
    """Parts of an explanation: an object with their keys for machines, or headings with indented
    text.
    """
    if as_json:
        print_json({part.key: {"heading": part.heading, "text": part.text} for part in parts})
        return
    most = width()
    for part in parts:
        typer.echo("\n".join(wrap(part.heading, most)))
        for line in part.text.split("\n"):
            typer.echo("\n".join(wrapped_line(line, most, indent=2)))


def print_text(text: str) -> None:
    """Lines of text, those that are too long for the terminal wrapped."""
    most = width()
    # the text of a file may hold what moves a terminal's cursor or hides words
    for line in printable(text).split("\n"):
        typer.echo("\n".join(wrapped_line(line, most)))


def wrapped_line(line: str, most: int, *, indent: int = 0) -> list[str]:
    """A line moved right; one that is too long goes on below, at its own beginning, or where its
    second column begins.
    """
    if len(line) + indent <= most:
        return [f"{' ' * indent}{line}".rstrip()]
    text = line.strip()
    start = indent + len(line) - len(line.lstrip())
    column = _COLUMN.match(text)
    hang = start + column.end() if column and column.end() <= most // 2 else start
    return wrap(text, most, indent=" " * start, hanging=" " * hang)


_COLUMN = re.compile(r"(?:-|\S+(?: \S+)* ) +(?=\S)")
"""A first column: words with two blanks or more behind them, or the dash of a list."""
