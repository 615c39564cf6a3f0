"""Lines of a document at a width: no broken word, no blanks at the ends, nothing left out."""

from __future__ import annotations

from support.each import each

from separatrix.core.document import Document, Heading, Line, Plot, Table
from separatrix.core.document.terminal import wrap, wrapped_line, wrapped_rows


def text(*parts: Heading | Line | Plot | Table, width: int) -> list[str]:
    return Document(*parts).text(width).split("\n")


def test_cells_are_wrapped_between_words() -> None:
    table = Table([["a", "one two three"], ["long-name", "four"]], ["name", "what it is"])
    lines = Document(table).lines(20)
    assert [line.text for line in lines] == [
        "           what it",
        "name       is",
        "a          one two",
        "           three",
        "long-name  four",
    ]
    assert [line.bold > 0 for line in lines] == [True, True, False, False, False]


def test_rows_that_cannot_stand_side_by_side_become_paragraphs() -> None:
    link = "https://example.org/long"
    assert text(Table([["abc", link]], ["name", "source"]), width=20) == [
        *("abc", "  source:", f"    {link}")
    ]
    assert text(Table([["2", link]], ["layers", "source"]), width=20)[0] == "layers: 2"
    assert text(Table([["  abc", link]]), width=20) == ["  abc", f"    {link}"]


def test_cells_that_would_be_crammed_become_paragraphs() -> None:
    """Side by side, nine words of a column that is a word wide are nine lines."""
    row = ("a" * 20, "", "b " * 8 + "b", "c" * 20)
    table = Document(Table([row], ("name", "none", "words", "last")))
    assert table.text(48).splitlines() == [
        "a" * 20,
        "  words: b b b b b b b b b",
        f"  last: {'c' * 20}",
    ]
    assert len(table.text(80).splitlines()) == 2


def test_columns_that_cannot_stand_side_by_side_take_turns() -> None:
    rows = ["Costs", ["  cache", "1.0 GiB", "2.0 GiB", "3.0 GiB"]]
    assert text(Table(rows, ["at 8", "one", "two", "three"], turns=True), width=30) == [
        *("at 8     one      two", "", "Costs", "  cache  1.0 GiB  2.0 GiB", ""),
        *("at 8     three", "", "Costs", "  cache  3.0 GiB"),
    ]
    # one column goes over the edge rather than away
    assert len(text(Table([["a", "x" * 50]], turns=True), width=30)) == 1


def test_columns_without_room_are_left_out_in_their_order_and_named() -> None:
    rows = [["gdn*4", "s" * 28, "arXiv 2412.06464", "4"], "others", ["full", "t", "u", "2"]]
    table = Table(rows, ["stack", "spec", "source", "layers"], spared=["source", "spec"])
    # 5 + 28 + 16 + 6, and 2 between any two
    assert "wider" not in Document(table).text(61)
    for width, named in ((60, "source"), (43, "source"), (42, "source, spec"), (9, "source, spec")):
        lines = text(table, width=width)
        assert " ".join(lines).endswith(f"also shows: {named}")
        assert ("s" * 28 in " ".join(lines)) == (named == "source")
    assert "arXiv" in Document(table).markdown()
    assert "arXiv" in Document(table).html()


@each("columns", range(1, 40))
@each("turns", [False, True])
def test_a_table_keeps_all_words(columns: int, turns: bool) -> None:
    rows = [["one", "two three four", ""], "head", ["five", "six", "seven eight"]]
    lines = text(Table(rows, ["a", "b c", "d"], turns=turns), width=columns)
    words = [word.rstrip(":") for line in lines for word in line.split()]
    wanted = {"one", "two", "three", "four", "five", "six", "seven", "eight", "head"}
    assert set(words) >= wanted
    widest = max(map(len, lines))
    assert turns or widest <= columns or widest <= 4 + len("seven")
    assert all(line == line.rstrip() for line in lines)


def test_long_lines_go_on_at_their_own_beginning() -> None:
    assert wrapped_line("    one two", 10) == ["    one", "    two"]
    assert wrapped_line("  one two", 10) == ["  one two"]
    assert wrapped_line("", 10) == [""]
    assert wrapped_line("size  one two", 12) == ["size  one", "      two"]
    assert wrapped_line("  - one two three", 12) == ["  - one two", "    three"]
    assert wrapped_line("a long name  b", 12) == ["a long name", "b"]
    assert wrap("", 10) == [""]


def test_a_table_in_a_text_is_cut_where_all_its_rows_have_a_gap() -> None:
    """Between two tables, behind a title, else at the last gap with room; not where it fits."""
    two = ["    in   a   b     in   c", "    to   1   2     to   3", "    by   x   y     by   z"]
    first, other = ["    in   a   b", "    to   1   2", "    by   x   y"], ["    in   c"]
    assert wrapped_rows(two, 25) == two
    assert wrapped_rows(two, 20) == [*first, "", *other, "    to   3", "    by   z"]
    titled = ["    n = 3:   in   a", "             to   1", "             by   x"]
    assert wrapped_rows(titled, 16) == ["    n = 3:", "    in   a", "    to   1", "    by   x"]
    assert wrapped_rows(first, 12)[:5] == ["    in   a", "    to   1", "    by   x", "", "    b"]
    # two rows may be a formula
    assert wrapped_rows(titled[:2], 16)[:2] == ["    n = 3:   in", "    a"]


def test_headings_begin_sections_and_what_is_beside_them_goes_below_where_it_does_not_fit() -> None:
    document = Document(Heading("name", "4 layers"), Line("x"), Heading("Costs"), Heading())
    assert document.text(40).split("\n") == ["name   4 layers", "x", "", "Costs", ""]
    assert document.text(12).split("\n")[:2] == ["name", "4 layers"]
    assert [line.bold for line in document.lines(40)] == [4, 0, 0, 5, 0]


def test_cells_of_several_lines_and_those_that_begin_with_blanks() -> None:
    table = Table([["  one two", "a\nb"], ["c", "d"]], labels=True)
    assert text(table, width=8) == ["  one  a", "  two  b", "", "c      d"]
    assert Document(table).lines(80)[0].bold == 9


def test_nothing_that_moves_a_cursor_is_printed() -> None:
    parts = (Heading("\x1b[1m"), Line("a\x07"), Table([["\x1b"]]))
    assert "\x1b" not in Document(*parts).text(80)
    assert "\x1b" not in Document(*parts).html()
    assert "\x1b" not in Document(*parts).markdown()


def test_empty_tables_and_plots_without_a_drawing() -> None:
    assert text(Table([]), Plot("words", ["1"]), width=80) == ["1"]
    assert text(Plot("words", ["1 |  *", "0 |*"]), width=80) == ["1 |  *", "0 |*"]
