"""Copying: a string, a mark, then the string again, token by token."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Power
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.facts import Table
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import LARGEST_SIZE, NO_ANSWER, PLAIN, Batch, Family, Task, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.drawing.balanced import balanced, other, share

WORDS = Words(
    asks="Copying: a string, a mark, then the string again, token by token.",
    table="""
        n = 4, V = 3, length 3:   position   0   1   2   3   4   5   6   7   8
                                  input      2   0   2   |   _   _   _   .   .
                                  target     .   .   .   .   2   0   2   .   .

        length m <= n:            position   0     ...   m-1   m   m+1   ...   2m    2m+1   ...   2n
                                  input      x_1   ...   x_m   |   _     ...   _     .      ...   .
                                  target     .     ...   .     .   x_1   ...   x_m   .      ...   .
    """,
    rules="""
        Values are the ids 0..V-1, the mark | is V, a blank _ is V + 1, what fills the rest is V +
        2. The string has 1 to n values. After the i-th blank behind the mark its i-th value is due.
        Blanks stand where a copy would be written, so that no answer is told by the ones before it.
    """,
    drawn="""
        n >= 2, V >= 2. The length m is uniform between ceil(n/2) and n. Values stand equally often,
        or as nearly so as m allows, in uniform order.

        Any one value says nothing: the values asked for are uniform, whichever values stand in the
        prompt, and where V divides m so is one of them given all counts. With lengths that differ,
        no place counted from either end holds the answer: m + 1 places back is right for one length
        of M = n - ceil(n/2) + 1, and the i-th place for one of m values at most. (A string of fixed
        length would be copied by one fixed look back, with nothing counted.)
    """,
    counted="""
        V^n, for the first n tokens [here]: two strings of n values differ at a place, which is
        asked for. (Shorter strings go on in other ways than longer ones, and are fewer.)
    """,
    origin="""
        the copying tasks of Arjovsky, Shah, Bengio, arXiv 1511.06464, and Jelassi et al., arXiv
        2402.01032. Blanks instead of the copy itself and a length that differs are ours
    """,
)


@dataclass(frozen=True, kw_only=True)
class Copying(Task):
    """A string of at most n values, written out again."""

    name: ClassVar[str] = "copying"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = "copying: a string of at most n values, a mark; answer the string again"
    usage: ClassVar[str] = "n, V, shift=full"
    source: ClassVar[str] = "arXiv 1511.06464; arXiv 2402.01032"
    several: ClassVar[bool] = True
    due: ClassVar[str] = "due after several tokens; the loss is taken there"
    shifts: ClassVar[dict[str, str]] = {
        "full": "every string has n values, independent and uniform"
    }
    shortcuts: ClassVar[tuple[str, ...]] = ("expected place",)
    grid: ClassVar[tuple[str, ...]] = (
        "n=24,V=4",
        "n=32,V=8",
        "n=48,V=6",
        "n=128,V=16",
        "n=512,V=32",
        "n=2048,V=64",
    )

    n: int
    V: int
    shift: str = PLAIN

    def __post_init__(self) -> None:
        require(self.name, "n", self.n, 2, LARGEST_SIZE)
        require(self.name, "V", self.V, 2, LARGEST_SIZE)
        self._check_shift(self.shift)

    def layout(self) -> Layout:
        """Behind the mark and a blank the string's first value is due, the others later."""
        return Layout(
            length=2 * self.n + 1,
            ids={"value": self.V, "mark": 1, "blank": 1, "filling": 1},
            answers={"value": self.V},
            prefix=self.n,
            classes=Power(self.V, self.n),
            table=Table(self.n, self.V, shared=1),
            written={"mark": "|", "blank": "_", "filling": "."},
            spelling="The mark is written |, a blank _, what fills the rest a dot.",
        )

    def family(self) -> Family[Self]:
        """V stays."""
        return self._growing(f"V = {self.V:,}", 2)

    @property
    def shortest(self) -> int:
        return (self.n + 1) // 2

    def level(self, probe: str) -> Fraction:
        """Of counts, the share of the most frequent value. A place is the one asked for in one of M
        lengths, or of m values, and else one of the others, which says what one entry says of
        another; so does any token near the end. The id next to a blank's is the mark's, and behind
        that stands a blank.
        """
        if probe in ("constant", "nearest key"):
            return self.chance
        shortest = self.shortest
        if probe == "counts":
            return max(share(m, self.V) for m in range(shortest, min(self.n, 2 * shortest) + 1))
        if probe == "last tokens":
            return other(shortest, self.V)
        hit = Fraction(1, min(shortest, self.n - shortest + 1))
        return hit + (1 - hit) * other(shortest, self.V)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        if self.shift == PLAIN:
            lengths = rng.integers(self.shortest, self.n + 1, size=batch)
        else:
            lengths = np.full(batch, self.n)
        strings = np.zeros((batch, self.n), np.int64)
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            strings[rows, :length] = (
                balanced(len(rows), length, self.V, rng)
                if self.shift == PLAIN
                else rng.integers(self.V, size=(len(rows), length))
            )
        return self._laid(strings, lengths)

    def _laid(self, strings: Tokens, lengths: Tokens) -> Batch:
        """Prompts and targets of strings (batch, n), of which the first values count."""
        shape = (len(strings), self.length)
        place = np.arange(self.length)
        m = lengths[:, None]
        tokens = np.full(shape, self.V + 2, np.int64)
        tokens[:, : self.n] = strings
        tokens = np.where(place >= m, np.where(place > 2 * m, self.V + 2, self.V + 1), tokens)
        tokens[np.arange(len(strings)), lengths] = self.V
        targets = np.full(shape, NO_ANSWER, np.int64)
        due = (place > m) & (place <= 2 * m)
        # due places and values follow one another in the same order
        targets[due] = strings[np.arange(self.n) < m]
        return Batch(tokens, targets)

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        marks = tokens == self.V
        lengths = marks.argmax(axis=1)
        if tokens.size and not (marks.sum(axis=1) == 1).all():
            raise SizeError(f"{self.spec}: a prompt must hold the mark {self.V} exactly once")
        if lengths.size and not (lengths.min() >= 1 and lengths.max() <= self.n):
            raise SizeError(
                f"{self.spec}: the mark stands at {lengths.min()} to {lengths.max()}; a string has"
                f" 1 to {self.n} values"
            )
        strings = tokens[:, : self.n].copy()
        held = np.arange(self.n) < lengths[:, None]
        self._are("value", a_string=strings[held])
        laid = self._laid(np.where(held, strings, 0), lengths)
        if (laid.tokens != tokens).any():
            raise SizeError(
                f"{self.spec}: behind the mark stand as many blanks, {self.V + 1}, as the string"
                f" has values, then only {self.V + 2}"
            )
        return laid.targets
