"""A document as lines for a terminal. No word is broken where there is room for it, and no line
ends in blanks.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from separatrix.core.document.parts import Cells, Fold, Heading, Line, Part, Plot, Table
from separatrix.core.errors import printable

GAP = 2
"""Columns between two columns of a table."""
ROOMY = 20
"""Letters in which a cell can be read well."""
BESIDE = 30
"""The same of a cell beside columns that can be left out."""
LABEL = 28
"""The most letters of a column that stands beside others in turns."""


class Shown(NamedTuple):
    """A line, and how many of its letters are bold, from the first on."""

    text: str
    bold: int = 0


def shown(parts: Iterable[Part], most: int) -> Iterator[Shown]:
    """The lines of parts at so many columns."""
    for number, part in enumerate(parts):
        match part:
            case Heading():
                yield from _heading(part, most, first=number == 0)
            case Line():
                for _, lines in groupby(printable(part.text).split("\n"), _is_row):
                    yield from map(Shown, wrapped_rows([*lines], most))
            case Table():
                table, gone = _with_room(part, most) if part.spared else (part, [])
                yield from laid(table, most)
                if gone:
                    said = f"A wider terminal also shows: {', '.join(gone)}"
                    yield from map(Shown, ["", *wrap(said, most)])
            case Plot():
                if part.caption:
                    yield from shown([Line(part.caption)], most)
                yield from map(Shown, [*map(printable, part.drawn)] or wrap(part.words, most))
            case Fold():
                yield from shown([Line("   ".join(part.line)), *part.parts], most)


def _heading(heading: Heading, most: int, *, first: bool) -> Iterator[Shown]:
    if not first:
        yield Shown("")
    text, beside = printable(heading.text), printable(heading.beside)
    if text and beside and len(text) + len(beside) + 3 <= most:
        yield Shown(f"{text}   {beside}", len(text))
        return
    yield from (Shown(line, len(line)) for line in (wrap(text, most) if text else ()))
    yield from map(Shown, wrap(beside, most) if beside else ())


def _with_room(table: Table, most: int) -> tuple[Table, list[str]]:
    """The table without the columns that have no room, and their names."""
    every = [{*column} for column in zip(table.columns, *table.cells, strict=True)]
    asked = [max(max(_longest_word(c), min(len(c), BESIDE)) + GAP for c in own) for own in every]
    wanted = dict(zip(table.columns, asked, strict=True))
    gone: list[str] = []
    for name in table.spared:
        if sum(wanted.values()) - GAP > most:
            gone.append(name)
            del wanted[name]
    kept = [place for place, name in enumerate(table.columns) if name in wanted]
    rows = [row if isinstance(row, str) else [row[i] for i in kept] for row in table.rows]
    return replace(table, rows=rows, columns=[*wanted]), gone


def laid(table: Table, most: int) -> Iterator[Shown]:
    """A table of at most so many columns of text, its cells wrapped between words."""
    rows = [row if isinstance(row, str) else [printable(c) for c in row] for row in table.rows]
    columns = [*map(printable, table.columns)]
    grid = [*([columns] if columns else []), *(row for row in rows if not isinstance(row, str))]
    if not grid:
        return
    every = [{*column} for column in zip(*grid, strict=True)]
    least = [max(map(_longest_word, column)) for column in every]
    natural = [max(len(line) for cell in column for line in cell.split("\n")) for column in every]
    wanted = least
    if table.turns:
        # what can take turns need not be crammed, and what they are about is short
        natural[0] = min(natural[0], max(least[0], LABEL))
        wanted = [max(low, min(high, ROOMY)) for low, high in zip(least, natural, strict=True)]
    room = most - GAP * (len(least) - 1)
    fits = sum(wanted) <= room
    if table.turns and len(least) > 2 and not fits:
        yield from _in_turns(table, columns, rows, most, wanted)
        return
    widths = _widths(natural, wanted if fits else least, room)
    side = [*_side_by_side(table, columns, rows, widths, most)]
    # a matrix stays one
    if table.turns or (fits and (table.labels or len(least) == 1)):
        yield from side
        return
    told = (_cell(r, most) if isinstance(r, str) else _paragraph(columns, r, most) for r in rows)
    below = [Shown(line) for lines in told for line in lines]
    # cells beside each other that are crammed take more lines than paragraphs
    yield from side if fits and len(side) <= len(below) else below


def _in_turns(
    table: Table, columns: Cells, rows: Sequence[Cells | str], most: int, least: Sequence[int]
) -> Iterator[Shown]:
    """As many columns beside the first as there is room for, about as many each time."""
    others = range(1, len(least))
    each = max(1, (most - least[0]) // (max(least[1:]) + GAP))
    pages = -(-len(others) // each)
    each = -(-len(others) // pages)
    for start in range(0, len(others), each):
        if start:
            yield Shown("")
        chosen = [0, *others[start : start + each]]
        own = [row if isinstance(row, str) else [row[i] for i in chosen] for row in rows]
        names = [columns[i] for i in chosen] if columns else ()
        yield from laid(Table(own, names, labels=table.labels, turns=True), most)


def _widths(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """One cap for all columns: narrow ones keep their width, wide ones share what is left."""

    def capped(cap: int) -> list[int]:
        return [max(low, min(high, cap)) for low, high in zip(least, natural, strict=True)]

    return next((w for cap in range(room, 0, -1) if sum(w := capped(cap)) <= room), capped(1))


def _side_by_side(
    table: Table, columns: Cells, rows: Sequence[Cells | str], widths: Sequence[int], most: int
) -> Iterator[Shown]:
    if columns:
        yield from (Shown(line, len(line)) for line in _lines(columns, widths, at_the_foot=True))
    # rows whose cells have several lines of their own are set apart
    apart = any("\n" in cell for row in rows if not isinstance(row, str) for cell in row)
    bold = widths[0] if table.labels else 0
    for number, row in enumerate(rows):
        if isinstance(row, str):
            if number or columns:
                yield Shown("")
            yield from (Shown(line, len(line)) for line in _cell(row, most))
            continue
        if apart and (number or columns):
            yield Shown("")
        yield from (Shown(line, bold) for line in _lines(row, widths))


def _longest_word(text: str) -> int:
    lines = text.split("\n")
    # what a cell begins with is not broken off its first word
    return max(
        len(line) - len(line.lstrip()) + max(map(len, line.split()), default=0) for line in lines
    )


def _lines(cells: Cells, widths: Sequence[int], *, at_the_foot: bool = False) -> list[str]:
    """The lines of a row; cells with fewer lines stand at its top, or `at_the_foot`."""
    wrapped = [_cell(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, wrapped))
    columns = []
    for cell, width in zip(wrapped, widths, strict=True):
        blank = [""] * (height - len(cell))
        lines = [*blank, *cell] if at_the_foot else [*cell, *blank]
        columns.append([line.ljust(width) for line in lines])
    return [(" " * GAP).join(pieces).rstrip() for pieces in zip(*columns, strict=True)]


def _cell(text: str, width: int) -> list[str]:
    """Its lines; one that begins with blanks goes on below them."""
    if len(text) <= width and "\n" not in text:
        return [text.rstrip()]
    found: list[str] = []
    for line in text.split("\n"):
        blanks = " " * (len(line) - len(line.lstrip()))
        found += wrap(line.strip(), width, indent=blanks, hanging=blanks)
    return found


def _paragraph(headings: Cells, row: Cells, most: int) -> list[str]:
    first, *others = row
    names = headings or [""] * len(row)
    # a number alone would not say of what
    named = f"{names[0]}: {first}" if names[0] and first.isdecimal() else first
    blanks = len(named) - len(named.lstrip())
    lines = _cell(named, most)
    pairs = (pair for pair in zip(names[1:], others, strict=True) if pair[1])
    for heading, text in pairs:
        said = f"{heading}: {text}" if heading else text
        lines += wrap(said, most, indent=" " * (blanks + 2), hanging=" " * (blanks + 4))
    return lines


def wrap(text: str, most: int, *, indent: str = "", hanging: str = "") -> list[str]:
    """Lines of at most `most` characters, broken between words; runs of blanks stay in a line."""
    return textwrap.wrap(
        text,
        max(1, most),
        initial_indent=indent,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [indent]


def wrapped_line(line: str, most: int) -> list[str]:
    """A line; one that is too long goes on below, at its own beginning, or where its second column
    begins.
    """
    if len(line) <= most:
        return [line.rstrip()]
    text = line.strip()
    start = len(line) - len(line.lstrip())
    column = _COLUMN.match(text)
    hang = start + column.end() if column and column.end() <= most // 2 else start
    return wrap(text, most, indent=" " * start, hanging=" " * hang)


def wrapped_rows(lines: Sequence[str], most: int) -> list[str]:
    """Rows of a table that stands in a text. One that is too wide is cut where all rows have a gap:
    a wide one between two tables, else behind what only the first row begins with, else the last
    with room; the rest stands below.
    """
    width = max(map(len, lines))
    columns = zip(*(line.ljust(width) for line in lines), strict=True)
    blank = "".join(" " if set(column) == {" "} else "." for column in columns)
    start, *gaps = [gap for gap in re.finditer("^ *| {3,}", blank) if gap.start() <= most]
    if width <= most or len(lines) < 3 or not _is_row(lines[0]) or not gaps:
        return [told for line in lines for told in wrapped_line(line, most)]
    wide = [gap for gap in gaps if len(gap[0]) > 3]
    titles = [gap for gap in gaps if not "".join(line[: gap.start()] for line in lines[1:]).strip()]
    cut = (wide or titles or gaps)[-1]
    left = [line[: cut.start()].rstrip() for line in lines]
    right = [f"{start[0]}{line[cut.end() :]}".rstrip() for line in lines]
    apart = [""] * any(left[1:])
    return [*filter(None, left), *apart, *wrapped_rows(right, most)]


def _is_row(line: str) -> bool:
    return _ROW.match(line) is not None


_ROW = re.compile(r" {4,}\S.*\S {3,}\S")
"""A line of a table in a text: moved to the right, and with columns farther apart than the signs of
formulas are.
"""
_COLUMN = re.compile(r"(?:-|\S+(?: \S+)* ) +(?=\S)")
"""A first column: words with two blanks or more behind them, or the dash of a list."""
