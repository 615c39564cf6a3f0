"""Nearest neighbour: n strings of d bits with labels, then a string; answer the label of the
string nearest to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.errors import SizeError
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import LARGEST_SIZE, PLAIN, Batch, Family, Task, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.drawing.distinct import distinct, one_of, shuffled

WORDS = Words(
    asks="""
        Nearest neighbour: n strings of d bits with labels, then a string; answer the label of the
        string nearest to it.
    """,
    table="""
        d = 3, V = 2:   position   0     1   2     3   4     5   6
                        token      001   b   110   a   111   b   010
                        input      1     9   6     8   7     9   2
                        target     .     .   .     .   .     .   0

        any d, V:       position   0     1         2     3         ...   2n
                        input      x_1   2^d+y_1   x_2   2^d+y_2   ...   x
                        target     .     .         .     .         ...   y_j
    """,
    rules="""
        A string is one token, its bits read as a number (the first bit counts most); label y is id
        2^d + y. Near means few bits that differ (Hamming distance). Above 010 differs from 110 in
        one bit, from the others in two. If several strings are nearest they must agree in the
        label: a prompt where they do not is no instance.
    """,
    drawn="""
        n >= V labelled strings of 3 <= d <= 40 bits, V >= 2 labels. Answers are drawn uniform, so
        that chance is 1/V exactly. Drawn for (n-1) (1 + d + d(d-1)/2) < 2^d and d >= 4: then n
        strings exist of which any two differ in three bits at least.

        Such strings come first. Then labels in uniform order, each equally often; where V does not
        divide n, some stand once more, and a uniform shift says which. Then the answer, uniform,
        without a look at these; then one of the strings that have it, to be the nearest one; and
        then a query. So nothing that stands before the query tells the answer, nor which string is
        asked for. Neither do the labels with the query, nor how many bits of it are set: it differs
        from the nearest string in an odd or an even number of bits, by a fair coin.

        Strings whose ids are near tend to be near (110 and 111), so that the label behind the
        nearest id would be right too often. Therefore in one case of n the query's id is nearer to
        that of its nearest string than to any other, and else another string's is nearer: then the
        label behind the nearest id is right with probability 1/n + (1 - 1/n) (n/V - 1)/(n - 1) =
        1/V exactly. Every string must have such queries of both kinds, with one bit flipped and
        with two of the six lowest or six highest; otherwise all strings are drawn again. Candidates
        are all of these, and d others with a uniform number of bits flipped from 3 to
        floor((d-1)/2); of those that fit, the one is taken whose rank in the order of distances
        between ids is next to a uniform rank. So the label behind the id of any other rank is right
        about as often as any. The ids of labels lie further off than the nearest id.

        (Bits do tell: a string that agrees with the query in a given bit is more likely the nearest
        one, as near means just that.)
    """,
    counted="""
        Not known. At least V^n for n <= 2^d: prefixes with the same different strings are told
        apart by asking for one whose labels differ (so [Bha24]: linear size). Often more [here],
        since other strings divide the queries between them in other ways: for d = 3, n = V = 2
        there are 16, namely both constants, the 3 bits and their opposites, and for 4 strings x and
        their opposites whether most bits are those of x.
    """,
    origin="""
        [Bha24], nearest neighbour: labelled vectors, then a vector, answer the label of the vector
        nearest to it by a margin, in two layers of logarithmic size. Theirs are unit vectors;
        strings as vectors of +-1/sqrt(d) are such, with the same order of distances. A single query
        and V labels are ours
    """,
)

MOST_BITS = 40
_LEAST_DRAWN = 4
_NOISE = 1 / 8
_TRIES = 1000
_ENTRIES = 1 << 16
"""Pairs of strings compared at once."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Neighbour(Task):
    """The label of the nearest of n strings of d bits."""

    name: ClassVar[str] = "neighbour"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = (
        "nearest neighbour: n labelled strings of d bits, then a string; answer the label of the"
        " nearest"
    )
    usage: ClassVar[str] = "n, d (bits of a string), V (labels), shift=equal|clusters"
    source: ClassVar[str] = "[Bha24]"
    shifts: ClassVar[dict[str, str]] = {
        "equal": "strings are any different ones, the query is one of them: associative recall",
        "clusters": (
            "the strings of a label lie about a centre, each bit flipped with probability 1/8, and"
            " so does the query"
        ),
    }
    grid: ClassVar[tuple[str, ...]] = (
        "n=4,d=7,V=2",
        "n=8,d=9,V=4",
        "n=12,d=10,V=3",
        "n=32,d=12,V=4",
        "n=128,d=15,V=8",
        "n=256,d=17,V=16",
    )

    n: int
    d: int
    V: int
    shift: str = PLAIN

    def __post_init__(self) -> None:
        require(self.name, "d", self.d, 3, MOST_BITS)
        require(self.name, "V", self.V, 2, LARGEST_SIZE)
        require(self.name, "n", self.n, self.V, LARGEST_SIZE)
        self._check_shift(self.shift)

    @property
    def length(self) -> int:
        return 2 * self.n + 1

    @property
    def strings(self) -> int:
        """2^d, and the id of label 0."""
        return 1 << self.d

    @property
    def vocabulary(self) -> int:
        return self.strings + self.V

    @property
    def answers(self) -> int:
        return self.V

    @property
    def chance(self) -> Fraction:
        return Fraction(1, self.V)

    @property
    def prefix_length(self) -> int:
        return 2 * self.n

    def prefix_classes(self) -> None:
        """None: not known; `words.counted` has bounds."""
        return None

    def family(self) -> Family[Neighbour]:
        """d and V stay."""
        return Family(
            f"d = {self.d}, V = {self.V:,}", lambda n: Neighbour(n=n, d=self.d, V=self.V), self.V
        )

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        slots = shuffled(batch, self.n, rng)
        start = rng.integers(self.V, size=batch)
        labels = (slots + start[:, None]) % self.V
        answers = rng.integers(self.V, size=batch)
        if self.shift == "clusters":
            strings, query, answers = self._clusters(labels, rng)
        else:
            strings, query = self._strings(one_of(labels == answers[:, None], rng), rng)
        tokens = np.empty((batch, self.length), np.int64)
        tokens[:, 0:-1:2] = strings
        tokens[:, 1::2] = self.strings + labels
        tokens[:, -1] = query
        return Batch(tokens, answers)

    def _strings(self, nearest: Tokens, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
        """Strings (batch, n), of which number `nearest` is the nearest one to the query
        (batch,).
        """
        batch = len(nearest)
        n = self.n
        d = self.d
        if self.shift == "equal":
            if n > self.strings:
                raise SizeError(
                    f"{self.spec}: only {self.strings} strings differ; draw with n of at most that,"
                    " or a larger d"
                )
            strings = distinct(batch, n, self.strings, rng)
            return strings, strings[np.arange(batch), nearest]
        if d < _LEAST_DRAWN or (n - 1) * (1 + d + d * (d - 1) // 2) >= self.strings:
            least = next(
                more
                for more in range(max(d, _LEAST_DRAWN), 2 * MOST_BITS)
                if (n - 1) * (1 + more + more * (more - 1) // 2) < 1 << more
            )
            raise SizeError(
                f"{self.spec}: strings this short leave no room for {n} of which any two differ in"
                f" three bits; draw with d of {least}"
            )
        strings = np.empty((batch, n), np.int64)
        query = np.empty(batch, np.int64)
        rows = max(1, _ENTRIES // (n * max(n, 2 * d)))
        for start in range(0, batch, rows):
            block = slice(start, start + rows)
            strings[block] = self._memories(len(nearest[block]), rng)
            query[block] = self._queries(strings[block], nearest[block], rng)
        return strings, query

    def _memories(self, batch: int, rng: np.random.Generator) -> Tokens:
        """Strings (batch, n), any two at least three bits apart, each with queries of both kinds
        one bit away and two.
        """
        memories = np.empty((batch, self.n), np.int64)
        left = np.arange(batch)
        for _ in range(_TRIES):
            if not len(left):
                return memories
            drawn = self._apart(len(left), rng)
            memories[left] = drawn
            left = left[~self._askable(drawn)]
        raise SizeError(
            f"{self.spec}: hardly any strings have queries of both kinds; draw with a larger d"
        )

    def _apart(self, batch: int, rng: np.random.Generator) -> Tokens:
        """Strings (batch, n), any two at least three bits apart: those too near an earlier one
        or one that stays are drawn again until none is.
        """
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
    def _flips(self) -> Tokens:
        """Bits flipped for the queries every string must have: single ones, and pairs among the
        six lowest or the six highest.
        """
        places = range(self.d)
        pairs = [(a, b) for a in places for b in range(a) if a < 6 or b >= self.d - 6]
        return np.array([1 << a for a in places] + [1 << a | 1 << b for a, b in pairs])

    def _askable(self, strings: Tokens) -> Bools:
        """Whether all strings of a row have queries one bit and two bits away whose id is
        nearest to theirs, and ones whose id is not.
        """
        S = self.strings
        flips = self._flips
        batch = len(strings)
        own = np.abs((strings[:, :, None] ^ flips) - strings[:, :, None])
        edged = np.pad(
            np.sort(strings, axis=1), ((0, 0), (1, 1)), constant_values=((0, 0), (-S, 2 * S))
        )  # no id is as far as these
        # a row and its two sentinels span 3 S, so that rows 4 S apart never mix in one search
        offset = 4 * S * np.arange(batch)[:, None]
        edged = (edged + offset).ravel()
        ids = (strings[:, :, None] ^ flips) + offset[:, None]
        following = np.searchsorted(edged, ids.ravel()).reshape(ids.shape)
        above = edged[following] - ids
        below = ids - edged[following - 1]
        least = np.minimum(above, below)
        # nearer than any label, whose ids begin at S
        valid = (least < S - (strings[:, :, None] ^ flips)) & ~self._shared(strings, flips)
        nearest = valid & (least == own) & (above != below)
        further = valid & (least < own)
        kinds = [
            kind[:, :, part].any(axis=2)
            for kind in (nearest, further)
            for part in (slice(self.d), slice(self.d, None))
        ]
        return np.logical_and.reduce(kinds).all(axis=1)

    def _shared(self, strings: Tokens, flips: Tokens) -> Bools:
        """Whether a string with bits flipped, at most two of them, is as near to another: only
        strings less than five bits apart share one.
        """
        batch, n = strings.shape
        differing = strings[:, :, None] ^ strings[:, None]
        row, one, other = np.nonzero((differing > 0) & (np.bitwise_count(differing) < 5))
        shared = np.zeros((batch * n, len(flips)), bool)
        if len(row):
            string = row * n + one
            start = np.flatnonzero(np.append(True, string[1:] != string[:-1]))
            # two flips among at most four differing bits leave at most two to the other string
            within = (differing[row, one, other][:, None] & flips == flips) & (
                np.bitwise_count(flips) == 2
            )
            shared[string[start]] = np.logical_or.reduceat(within, start)
        return shared.reshape(batch, n, len(flips))

    def _queries(self, strings: Tokens, nearest: Tokens, rng: np.random.Generator) -> Tokens:
        """Queries (batch,) to which string number `nearest` is the only nearest one, its id too
        in one case of n.
        """
        batch = len(nearest)
        n = self.n
        d = self.d
        chosen = strings[np.arange(batch), nearest]
        flips = np.broadcast_to(self._flips, (batch, len(self._flips)))
        if (most := (d - 1) // 2) > 2:
            order = 1 << rng.random((batch, d, d)).argsort(axis=2)
            several = np.where(
                np.arange(d) < rng.integers(3, most + 1, size=(batch, d, 1)), order, 0
            ).sum(axis=2)
            flips = np.concatenate((flips, several), axis=1)
        query = chosen[:, None] ^ flips
        bits = np.bitwise_count(flips)
        # no string but the chosen one lies within as many bits as were flipped
        fit = (np.bitwise_count(strings[:, None] ^ query[:, :, None]) <= bits[:, :, None]).sum(
            axis=2
        ) == 1
        far = np.abs(strings[:, None] - query[:, :, None])
        own = np.abs(chosen[:, None] - query)
        rank = (far < own[:, :, None]).sum(axis=2)
        as_near = (far == own[:, :, None]).sum(axis=2) > 1
        wanted = self._wanted((strings < chosen[:, None]).sum(axis=1), rng)[:, None]
        fit &= (far.min(axis=2) < self.strings - query) & np.where(
            wanted > 0, rank > 0, (rank == 0) & ~as_near
        )
        fit &= (bits & 1) == rng.integers(2, size=(batch, 1))
        # fractions below 1 choose among equally good ones; n + 1 is more than any that fits
        off = np.abs(rank - wanted) + rng.random(rank.shape)
        return query[np.arange(batch), np.where(fit, off, n + 1.0).argmin(axis=1)]

    def _wanted(self, place: Tokens, rng: np.random.Generator) -> Tokens:
        """Ranks (batch,) that strings at a place in the order of ids have for a query in a uniform
        gap, between ids that alternate in distance.

        For every gap, strings of different places have different ranks: so of a uniform string the
        rank is uniform.
        """
        gap = rng.integers(self.n + 1, size=len(place))
        # strings nearer to the gap on the string's own side, and all on the other
        before = np.where(place >= gap, place - gap, gap - 1 - place)
        other = np.where(place >= gap, gap, self.n - gap)
        first = (place >= gap) == (rng.integers(2, size=len(place)) == 1)
        return before + np.minimum(other, before + ~first)

    def _clusters(self, labels: Tokens, rng: np.random.Generator) -> tuple[Tokens, Tokens, Tokens]:
        """Strings, queries and answers; prompts whose nearest strings differ in label are drawn
        again.
        """
        strings = np.empty_like(labels)
        query = np.empty(len(labels), np.int64)
        answers = np.empty(len(labels), np.int64)
        left = np.arange(len(labels))
        for _ in range(_TRIES):
            if not len(left):
                return strings, query, answers
            centres = rng.integers(self.strings, size=(len(left), self.V))
            asked = rng.integers(self.V, size=(len(left), 1))
            about = np.take_along_axis(
                centres, np.concatenate((labels[left], asked), axis=1), axis=1
            )
            for bit in range(self.d):
                about ^= (rng.random(about.shape) < _NOISE).astype(np.int64) << bit
            strings[left], query[left] = about[:, :-1], about[:, -1]
            least, most = self._nearest(strings[left], labels[left], query[left])
            answers[left] = least
            left = left[least != most]
        raise SizeError(
            f"{self.spec}: of strings this short the nearest ones differ in label nearly always;"
            " draw with a larger d or a smaller n"
        )

    def _nearest(self, strings: Tokens, labels: Tokens, query: Tokens) -> tuple[Tokens, Tokens]:
        """The smallest and the largest label of the strings nearest to the query."""
        distance = np.bitwise_count(strings ^ query[:, None])
        nearest = distance == distance.min(axis=1, keepdims=True)
        return np.where(nearest, labels, self.V).min(axis=1), np.where(nearest, labels, -1).max(
            axis=1
        )

    def word(self, token: int) -> str:
        strings = 1 << self.d
        return f"{token:0{self.d}b}" if token < strings else str(token - strings)

    @property
    def spelling(self) -> str:
        return "A string is written as its bits, its label behind it as a number."

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        strings = tokens[:, 0:-1:2]
        labels = tokens[:, 1::2] - self.strings
        query = tokens[:, -1]
        self._below(strings, self.strings, "a string")
        self._below(query, self.strings, "the query")
        if labels.size and labels.min() < 0:
            raise SizeError(
                f"{self.spec}: a label is token {labels.min() + self.strings}; labels are the ids"
                f" from 2^d = {self.strings} on"
            )
        least, most = self._nearest(strings, labels, query)
        if (least != most).any():
            raise SizeError(
                f"{self.spec}: strings nearest to the query have different labels; an instance has"
                " one answer"
            )
        return least
