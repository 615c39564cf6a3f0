"""The texts of a task: data for people, and for language models that are asked to solve it."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, fields
from inspect import cleandoc
from typing import Self

_LABEL = re.compile(r"^(Drawn|Counted|From): ", re.M)
WIDTH = 100
"""Columns of what is wrapped for a file."""
_ITEM = re.compile(r"\n(?=- [A-Z])")
"""Where an item of a list begins: a dash and a capital, for lines of a formula may begin so too."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a task says of itself in plain English, without a word about its code.

    Texts are written in triple quotes: indentation goes, and the lines of a paragraph or of an item
    ("- ...") are joined. Whoever shows a text wraps it again, with `wrapped`.
    """

    @classmethod
    def read(cls, text: str) -> Self:
        """From one text: what is asked, the table (indented), the rules, and paragraphs that begin
        with "Drawn:", "Counted:" and "From:".
        """
        front, _, drawn, _, counted, _, origin = _LABEL.split(cleandoc(text))
        asks, _, rest = front.partition("\n\n")
        lines = rest.split("\n")
        end = next((at for at, line in enumerate(lines) if line[:1].strip()), len(lines))
        return cls(
            asks=asks,
            # from the second line on, so that all are indented alike
            table="\n".join(["", *lines[:end]]),
            rules="\n".join(lines[end:]),
            drawn=drawn,
            counted=counted,
            origin=origin,
        )

    asks: str
    """The task in a sentence."""
    table: str
    """Examples as columns, inputs over targets; its lines stay as they are."""
    rules: str = ""
    """What the ids mean and what the right answer is."""
    drawn: str
    """How instances are drawn, and what can be guessed without solving the task."""
    counted: str
    """How many prefixes must be told apart, and why."""
    origin: str
    """Where the task comes from, and what differs there."""

    def __post_init__(self) -> None:
        for text in fields(self):
            clean = cleandoc(getattr(self, text.name))
            object.__setattr__(self, text.name, clean if text.name == "table" else flowed(clean))

    @property
    def definition(self) -> str:
        """What is asked, by example and by rule: all that a solver needs."""
        parts = (self.asks, textwrap.indent(self.table, "    "), self.rules)
        return "\n\n".join(part for part in parts if part)


def flowed(text: str) -> str:
    """Every paragraph, and every item of a list, on one line."""
    paragraphs = (_ITEM.split(paragraph) for paragraph in text.split("\n\n"))
    return "\n\n".join(
        "\n".join(" ".join(item.split()) for item in paragraph) for paragraph in paragraphs
    )


def wrapped(text: str, width: int = WIDTH) -> str:
    """A text in lines of at most `width` columns; indented lines are tables and stay whole."""
    return "\n".join(_line(line, width) for line in text.split("\n"))


def _line(line: str, width: int) -> str:
    if line.startswith(" "):
        return line
    return textwrap.fill(
        line,
        width,
        subsequent_indent="  " if _ITEM.match(f"\n{line}") else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
