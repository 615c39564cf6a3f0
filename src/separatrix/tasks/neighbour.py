from __future__ import annotations

from math import comb
from typing import ClassVar

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import ladder, size
from separatrix.tasks.base.layout import Layout, Part
from separatrix.tasks.base.task import PLAIN, Batch, Task, Tokens
from separatrix.tasks.drawing.distinct import distinct, one_of, shuffled

MOST_BITS = 40
_LEAST_DRAWN = 4
_PLACES = 200
"""Choices of places to flip that are tried before fewer are flipped."""
_ENTRIES = 1 << 16
"""Pairs of strings compared at once."""


class Neighbour(Task):
    """Nearest neighbour: n strings of d bits with labels, then a string; answer the label of the
    string nearest to it.

        d = 3, V = 2:   position   0     1   2     3   4     5   6
                        token      001   b   110   a   111   b   010
                        input      1     9   6     8   7     9   2
                        target     .     .   .     .   .     .   0

        any d, V:       position   0     1         2     3         ...   2n
                        input      x_1   2^d+y_1   x_2   2^d+y_2   ...   x
                        target     .     .         .     .         ...   y_j

    A string is one token, its bits read as a number (the first bit counts most); label y is id 2^d
    + y. Near means few bits that differ (Hamming distance). Above 010 differs from 110 in one bit,
    from the others in two. If several strings are nearest they must agree in the label: a prompt
    where they do not is no instance.

    Drawn: n >= V labelled strings. Answers are drawn uniform, so that chance is 1/V exactly. Drawn
    for (n-1) (1 + d + d(d-1)/2) < 2^d and d >= 4: then n strings exist of which any two differ in
    three bits at least.

    Such strings come first. Then labels in uniform order, each equally often; where V does not
    divide n, some stand once more, and a uniform shift says which. Then the answer, uniform,
    without a look at these; then one of the strings that have it, to be the nearest one; and then a
    query. So nothing that stands before the query tells the answer, nor which string is asked for,
    and labels with the query do not either.

    The query is the nearest string with r of its bits flipped, a uniform choice of places among
    those that leave every other string more than r bits away. By a fair coin r is R or R - 1, so
    that how many bits are set says nothing. R is the largest number for which n - 1 balls of that
    radius hold at most 2^d strings, but 2 at least, and beyond that less than d/2. (Where 200
    choices of places do not fit, r falls by two, at last to 1, which always fits.)

    No bit is unlike another: all strings may have their bits rearranged in one way without a change
    of probability. So whoever looks at some bits only is right as often as those are unflipped and
    tell strings apart. To count differences in nearly all bits is the task on fewer bits, and right
    nearly always. Looking up compares the first bits, or the last, as many as tell ("bits",
    "nearest key"), which is right less often as d grows beyond log2 n. No sampler avoids it: near
    means just that most bits agree. Therefore the label whose strings, added up, are most like the
    query is often right ("likeness").

    Counted: Not known. At least V^n for n <= 2^d: prefixes with the same different strings are told
    apart by asking for one whose labels differ (so [Bha24]: linear size). Often more [here], since
    other strings divide the queries between them in other ways: for d = 3, n = V = 2 there are 16.

    From: [Bha24], nearest neighbour: labelled vectors, then a vector, answer the label of the
    vector nearest to it by a margin, in two layers of logarithmic size. Theirs are unit vectors;
    strings as vectors of +-1/sqrt(d) are such, with the same order of distances. A single query and
    V labels are ours
    """

    name = "neighbour"
    title = (
        "nearest neighbour: n labelled strings of d bits, then a string; answer the label of the"
        " nearest"
    )
    source = "[Bha24]"
    shifts: ClassVar[dict[str, str]] = {
        "equal": "strings are any different ones, the query is one of them: associative recall"
    }
    shortcuts = ("bits", "likeness")
    measured = ("nearest key", *shortcuts)
    grid = ladder("""
        n=4,d=12,V=2 n=8,d=14,V=4 n=12,d=15,V=3 n=32,d=16,V=4 n=128,d=17,V=8 n=256,d=18,V=16
    """)

    n: int = size(2)
    d: int = size(3, MOST_BITS, told="bits of a string")
    V: int = size(2, lambda task: task.n, told="labels")

    def drawn_from(self, size: str) -> int:
        """From so many bits on there is room for n strings, any two of which differ in three."""
        return _least_bits(self.n) if size == "d" and self.shift == PLAIN else 0

    def layout(self) -> Layout:
        return Layout(
            length=2 * self.n + 1,
            ids={"string": self.strings, "label": self.V},
            answers={"label": self.V},
            prefix=2 * self.n,
            parts={
                "a string": Part("string", slice(0, -1, 2)),
                "a label": Part("label", slice(1, None, 2)),
                "the query": Part("string", -1),
            },
            spelling="A string is written as its bits, its label behind it as a number.",
        )

    @property
    def strings(self) -> int:
        """2^d, and the id of label 0."""
        return 1 << self.d

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        slots = shuffled(batch, self.n, rng)
        start = rng.integers(self.V, size=batch)
        labels = (slots + start[:, None]) % self.V
        answers = rng.integers(self.V, size=batch)
        strings, query = self._strings(one_of(labels == answers[:, None], rng), rng)
        return Batch(self.write(strings, labels, query), answers)

    def _strings(self, nearest: Tokens, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
        """Strings (batch, n), number `nearest` the nearest one to the query (batch,)."""
        batch = len(nearest)
        n = self.n
        if self.shift == "equal":
            if n > self.strings:
                raise self.refused(
                    f"only {self.strings} strings differ; draw with n of at most that, or a larger"
                    " d"
                )
            strings = distinct(batch, n, self.strings, rng)
            return strings, strings[np.arange(batch), nearest]
        strings = np.empty((batch, n), np.int64)
        query = np.empty(batch, np.int64)
        rows = max(1, _ENTRIES // (n * n))
        for start in range(0, batch, rows):
            block = slice(start, start + rows)
            strings[block] = self._apart(len(nearest[block]), rng)
            query[block] = self._queries(strings[block], nearest[block], rng)
        return strings, query

    def _apart(self, batch: int, rng: np.random.Generator) -> Tokens:
        """Strings (batch, n), any two three bits apart at least; those too near are drawn again."""
        strings = np.empty((batch, self.n), np.int64)
        row, place = np.divmod(np.arange(batch * self.n), self.n)
        # where an entry stands among those to be drawn; 0: it stays
        since = np.tile(np.arange(1, self.n + 1), (batch, 1))
        while len(row):
            strings[row, place] = rng.integers(self.strings, size=len(row))
            near = np.bitwise_count(strings[row] ^ strings[row, place][:, None]) < 3
            again = (near & (since[row] <= place[:, None])).any(axis=1)
            since[row[~again], place[~again]] = 0
            row = row[again]
            place = place[again]
        return strings

    @property
    def _radius(self) -> int:
        """R of `words.drawn`: most bits in which a query differs from the nearest string."""
        ball = 1 + self.d + comb(self.d, 2)
        radius = 2
        while radius < (self.d - 1) // 2:
            ball += comb(self.d, radius + 1)
            if (self.n - 1) * ball > self.strings:
                break
            radius += 1
        return radius

    def _queries(self, strings: Tokens, nearest: Tokens, rng: np.random.Generator) -> Tokens:
        """Queries (batch,) to which string number `nearest` is the only nearest one."""
        batch = len(nearest)
        chosen = strings[np.arange(batch), nearest]
        query = np.empty(batch, np.int64)
        flipped = self._radius - rng.integers(2, size=batch)
        left = np.arange(batch)
        tried = 0
        while len(left):
            if tried and tried % _PLACES == 0:
                flipped[left] = np.maximum(flipped[left] - np.where(flipped[left] > 2, 2, 1), 1)
            tried += 1
            order = rng.random((len(left), self.d)).argsort(axis=1, kind="stable")
            flips = np.where(np.arange(self.d) < flipped[left, None], 1 << order, 0).sum(axis=1)
            drawn = chosen[left] ^ flips
            # the chosen one alone lies within as many bits as were flipped
            near = np.bitwise_count(strings[left] ^ drawn[:, None]) <= flipped[left, None]
            fits = near.sum(axis=1) == 1
            query[left[fits]] = drawn[fits]
            left = left[~fits]
        return query

    def _nearest(self, strings: Tokens, labels: Tokens, query: Tokens) -> tuple[Tokens, Tokens]:
        distance = np.bitwise_count(strings ^ query[:, None])
        nearest = distance == distance.min(axis=1, keepdims=True)
        return np.where(nearest, labels, self.V).min(axis=1), np.where(nearest, labels, -1).max(
            axis=1
        )

    def word(self, token: int) -> str:
        strings = 1 << self.d
        return f"{token:0{self.d}b}" if token < strings else str(token - strings)

    def answer(self, tokens: Tokens) -> Tokens:
        least, most = self._nearest(*self.read(tokens))
        if (least != most).any():
            raise self.refused(
                "strings nearest to the query have different labels; an instance has one answer"
            )
        return least


def _least_bits(n: int) -> int:
    return next(
        d
        for d in range(_LEAST_DRAWN, 2 * MOST_BITS)
        if (n - 1) * (1 + d + d * (d - 1) // 2) < 1 << d
    )
