"""The interface of sources of rows. Rows are columns by name: each format writes what it needs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks import Task
from separatrix.tasks.exports.replies import Shape
from separatrix.tasks.text import TextTask

Rows = dict[str, Any]
"""Columns by name: lists, or for integers arrays (rows,) or (rows, length)."""
Kind = Literal["int", "ints", "text", "texts"]
MOST_CHOICES = 10
"""Most answers offered as choices: of numbers, the single digits, which every tokenizer writes
as one token.
"""


class Column(NamedTuple):
    name: str
    kind: Kind
    meaning: str


class Drawn(NamedTuple):
    """Instances before they are worded.

    `keys[i]` says what of row i must not occur twice, `answers[i]` its answer (0 for all where
    these are many), and `render(rows)` makes the columns of these rows.
    """

    keys: list[tuple[bytes, ...]]
    answers: list[int]
    render: Callable[[NDArray[np.int64]], Rows]


class Source(Protocol):
    """A task of tokens (tokens.py) or of texts (texts.py), with all that differs between them."""

    @property
    def task(self) -> Task | TextTask: ...
    @property
    def spec(self) -> str:
        """The text that asks for these rows."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]: ...

    @property
    def worded(self) -> str:
        """The text of the task that asks the same where everything is written as words."""
        ...

    @property
    def guess(self) -> str:
        """The guess that `chance` is the accuracy of."""
        ...

    @property
    def lead(self) -> str:
        """What stands above the first question, before the sentence about answers."""
        ...

    @property
    def shape(self) -> Shape:
        """What an answer looks like, for whoever reads replies."""
        ...

    @property
    def stop(self) -> str:
        """What ends the steps where they are written one after the other."""
        ...

    @property
    def largest(self) -> int:
        """The largest integer of a row."""
        ...

    def sizes(self) -> dict[str, Any]:
        """The sizes of the task and what follows from them, as plain data."""
        ...

    def facts(self) -> list[tuple[str, str]]:
        """The same for people, as names and values."""
        ...

    @property
    def length(self) -> int:
        """Tokens of a row; of texts, about how many words."""
        ...

    @property
    def choices(self) -> list[str] | Literal["choices"] | None:
        """Few answers to choose from: the same in every row, or the column that has them; None
        where there are many.
        """
        ...

    @property
    def stepwise(self) -> bool:
        """Whether the question asks for the steps too."""
        ...

    @property
    def chance(self) -> Fraction:
        """Accuracy of the best constant guess at the answer to the question."""
        ...

    @property
    def share(self) -> Fraction:
        """The same; 1 where `Drawn.answers` says nothing."""
        ...

    @property
    def words(self) -> int:
        """About how many words answer with all steps."""
        ...

    def draw(self, batch: int, rng: np.random.Generator) -> Drawn: ...


def text_columns(question: str, *, steps: bool, choices: bool) -> tuple[Column, ...]:
    """What both kinds of tasks have."""
    return (
        Column("prompt", "text", f"{question}; what follows it is a space and the completion"),
        Column("answer", "text", "the right answer"),
        Column(
            "completion",
            "text",
            "what is to be written: the answer, or the steps and then the answer",
        ),
        *((Column("steps", "texts", "what leads to the answer, in order"),) if steps else ()),
        *(
            (Column("choices", "texts", "all candidates, the answer among them"),)
            if choices
            else ()
        ),
    )


def key_of(data: NDArray[np.int64] | bytes) -> bytes:
    # 128 bits: among 2^33 keys, two agree by chance with probability below 2^-60
    return hashlib.blake2b(
        data if isinstance(data, bytes) else np.ascontiguousarray(data).data, digest_size=16
    ).digest()
