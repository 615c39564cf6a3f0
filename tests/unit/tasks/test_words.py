"""The texts of a task: what is joined, what stays, what is wrapped, by hand."""

from __future__ import annotations

from separatrix.tasks.base.described import Words, flowed, wrapped

TOLD = Words.read("""Toy: is it
    so?

        position   0   1
        input      a   b

        a stands first

    One sentence that goes
    on. 1/N + (1
    - 1/N)/N.

    - A first item that goes
      on.
    - A second.

    Drawn: Somehow.

    Counted: 2.

    From: here
    """)


def test_paragraphs_and_items_are_joined_and_tables_stay() -> None:
    assert TOLD.table == "position   0   1\ninput      a   b\n\na stands first"
    assert TOLD.rules == (
        "One sentence that goes on. 1/N + (1 - 1/N)/N.\n\n- A first item that goes on.\n- A second."
    )
    assert flowed(TOLD.rules) == TOLD.rules


def test_a_definition_holds_the_table_indented() -> None:
    asks, rows, note, *rules = TOLD.definition.split("\n\n")
    assert asks == "Toy: is it so?"
    assert rows == "    position   0   1\n    input      a   b"
    assert note == "    a stands first"
    assert "\n\n".join(rules) == TOLD.rules


def test_wrapping_breaks_between_words_and_leaves_tables_whole() -> None:
    text = f"one two three\n    {'x  ' * 20}\n- An item of words\nlong-word-without-a-blank"
    assert wrapped(text, 8).split("\n") == [
        *("one two", "three", f"    {'x  ' * 20}"),
        *("- An", "  item", "  of", "  words", "long-word-without-a-blank"),
    ]
    assert flowed(wrapped(TOLD.rules, 20)) == TOLD.rules
