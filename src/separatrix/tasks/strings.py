"""Two strings of n bits: are they equal, and have the sets they stand for no element in common?"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from separatrix.core.numbers.counts import OneMoreThanPower, Power
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import size
from separatrix.tasks.base.layout import YES_OR_NO, Growth, Layout, TwoRuns
from separatrix.tasks.base.task import Batch, FirstPart, Task, Tokens
from separatrix.tasks.drawing.distinct import one_of

_LEAST_FRAGMENTS = 8
"""Smallest n that has room for fragments."""
_LEAST_HIDDEN = 24
"""Smallest n of which bags of log2 n neighbours are the same in both strings."""
_HIDING = (
    (3, (6,)),
    (4, (12,)),
    (5, (8, 15)),
    (6, (12, 20)),
    (7, (12, 35)),
    (8, (24, 35)),
    (11, (18, 40, 77)),
    (13, (72, 91, 110)),
    (14, (72, 130, 154)),
)
"""M, and numbers of which each of 2..M divides one, with sums of subsets far apart."""


class Strings(Task):
    """Two strings of n bits, one behind the other."""

    first: ClassVar[str]

    n: int = size(1)

    def _laid(self, runs: TwoRuns, grows: Growth) -> Layout:
        n = self.n
        return Layout(2 * n, {"bit": 2}, YES_OR_NO, n, Power(2, n), runs=runs, grows=grows)

    def first_part(self) -> FirstPart | None:
        """The last token is the last bit of v: 0, or of two sets 1. The strings u that end in 0 are
        told apart by the rest of v; those that end in 1 never match, or always meet v.
        """
        return FirstPart(self.first, OneMoreThanPower(self.n - 1)) if self.n > 1 else None


class Equality(Strings):
    """String equality: are two strings of n bits the same?

        position   0     ...   n-1   n     ...   2n-1
        input      u_1   ...   u_n   v_1   ...   v_n
        target     .     ...   .     .     ...   1 if u = v, else 0

    Drawn: Sampled so that both answers have probability 1/2 exactly.

    n >= 8: u holds fragments p10s and p01s, with p and s of r uniform bits each, which v holds
    exchanged under answer 0: p01s for p10s, and back. There are 2^f of them, at the sums of the
    subsets of f numbers, beside a uniform first place; subsets of even size hold the one kind,
    either one, the others the other. All other bits are uniform. So v - u is, as a polynomial,
    +-x^s (1 - x) times the product of the (1 - x^a), v is distributed like u, and under both
    answers the two have the same ones, the same ones at places that agree modulo every divisor of
    an a, the same sums of i^p u_i for p <= f, and the same number of every r + 1 neighbours, which
    for n >= 24 is log2 n rounded down, and so (from r = 1, n = 12, on) the same runs.

    The numbers are those of a list that hide all moduli up to the largest M and take at most two
    thirds of the string: M is 3 at n = 24, 5 at 64, 8 at 128, 11 at 256, 14 at 1024.

    What remains are other fingerprints, which no sampler avoids: ones at places modulo M + 1
    ("larger moduli"); bags of more neighbours, of which there are more kinds than places; log2 n
    random bits and as many of memory check equality nearly always, and so do fixed sums such as
    that of i^4 u_i. 2^(f+1) places differ, so that comparing one u_i with v_i is right with
    probability 1/2 + 2^f/n on average. Boosted trees compare many, and are right in 0.86 and more.

    n < 8: u is uniform over the strings that hold both bits; v is u, or u with a uniform pair of
    unequal bits exchanged. So v is as uniform as u, both have the same ones under both answers, and
    counts say nothing; sums of i u_i and runs do. (n = 1: v is u or its opposite; the two tokens
    are all there is, and one zero beside one one says that they differ. So "counts" and "last
    tokens" see the answer.)

    Counted: 2^n: of two different strings u, the continuation v = u accepts one (theory.md, section
    3).

    From: [Bha24]; theory.md, sections 2 and 3
    """

    name = "equality"
    title = "string equality: u_1, ..., u_n, v_1, ..., v_n; answer 1 if u = v"
    source = "[Bha24]"
    shortcuts = ("halves", "moduli", "larger moduli")
    grid = ("n=24", "n=32", "n=48", "n=64", "n=256")

    first = "the first string"

    def layout(self) -> Layout:
        """Two runs: the first of the two is the second string again."""
        half = self.n // 2
        runs = TwoRuns.halves(self.n, (((1,), half), ((0,), self.n - half)))
        return self._laid(runs, Growth("strings of n bits"))

    def level(self, probe: str) -> Fraction:
        """1 where there are two tokens that are seen, for bags of neighbours that a short string
        has no room to hide and for moduli that are not hidden.
        """
        seen = ("larger moduli", *(("halves",) if self.n < _LEAST_HIDDEN else ()))
        seen += ("counts", "last tokens") if self.n == 1 else ()
        return Fraction(1) if probe in seen else self.chance

    @property
    def _margin(self) -> int:
        return min(self.n.bit_length() - 2, self.n // 6 - 1)

    @property
    def _hiding(self) -> tuple[int, tuple[int, ...]]:
        """M and the numbers that hide it: the last ones that fit; 2 from the shortest strings."""
        room = 2 * self.n // 3 - self._width
        fitting = [row for row in _HIDING if sum(row[1]) <= room and row[1][0] >= self._margin + 2]
        return fitting[-1] if fitting else (2, (2 * ((self._width + 1) // 2),))

    @property
    def hidden_moduli(self) -> int:
        """M: ones at places modulo 2, ..., M are the same in both strings."""
        return self._hiding[0] if self.n >= _LEAST_FRAGMENTS else 1

    @property
    def _width(self) -> int:
        return 2 * self._margin + 2

    @property
    def _starts(self) -> list[tuple[int, int]]:
        """Where fragments stand, from the first on, and which of the two kinds each is."""
        starts = [(0, 0)]
        for more in self._hiding[1]:
            starts += [(start + more, 1 - kind) for start, kind in starts]
        return starts

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        equal = rng.integers(2, size=batch)
        if self.n >= _LEAST_FRAGMENTS:
            return Batch(self._fragments(equal, rng), equal)
        u = rng.integers(2, size=(batch, self.n))
        if self.n == 1:
            return Batch(np.column_stack((u, u[:, 0] ^ 1 - equal)), equal)
        # a constant u is the only string with as many ones
        while (constant := (u == u[:, :1]).all(1)).any():
            u[constant] = rng.integers(2, size=(int(constant.sum()), self.n))
        v = u.copy()
        rows = np.arange(batch)
        for bit in (0, 1):  # one place of each bit, uniform among them
            v[rows, one_of(u == bit, rng)] ^= 1 - equal
        return Batch(np.column_stack((u, v)), equal)

    def _fragments(self, equal: Tokens, rng: np.random.Generator) -> Tokens:
        """Prompts (batch, 2n) that hold fragments, exchanged in v where the answer is 0."""
        rows = np.arange(len(equal))[:, None]
        margin = self._margin
        starts = self._starts
        # bits that stand at one place in two fragments are one bit
        same = list(range(self._width))
        at: dict[int, int] = {}
        for start, _ in starts:
            for step in range(self._width):
                one, other = same[at.setdefault(start + step, step)], same[step]
                same = [one if each == other else each for each in same]
        first = rng.integers(self.n - starts[-1][0] - self._width + 1, size=len(equal))[:, None]
        tokens = rng.integers(2, size=(len(equal), 2 * self.n))
        u = tokens[:, : self.n]
        v = tokens[:, self.n :]
        bits = rng.integers(2, size=(len(equal), self._width))[:, same]
        u[rows, first + np.array(list(at))] = bits[:, list(at.values())]
        rises = rng.integers(2, size=(len(equal), 1)) ^ np.array([kind for _, kind in starts])
        middle = first + np.array([start for start, _ in starts]) + margin
        u[rows, middle] = rises
        u[rows, middle + 1] = rises ^ 1
        v[:] = u
        # flipping both bits of all middles exchanges the fragments and keeps the number of ones
        for step in (0, 1):
            v[rows, middle + step] ^= 1 - equal[:, None]
        return tokens

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        return (tokens[:, : self.n] == tokens[:, self.n :]).all(1).astype(np.int64)


class Disjointness(Strings):
    """Disjointness: have two sets, given as strings of n bits, no element in common?

        position   0     ...   n-1   n     ...   2n-1
        input      u_1   ...   u_n   v_1   ...   v_n
        target     .     ...   .     .     ...   1 if no i has u_i = v_i = 1, else 0

    Drawn: Sampled so that both answers have probability 1/2 exactly.

    Every element falls into u only, v only or neither, each with probability 1/3. Then a pair of
    neighbours is chosen, uniform among those of an odd place and the next (of odd n, the last place
    or the first is left out, by a fair coin), and one of the two, by a fair coin: it belongs to u,
    the other does not, and v has one of them: under answer 1 the other one, under answer 0 the
    same, which is the only element in common. So u does not depend on the answer, nor does v, nor
    how many elements either has in any part of an even number of places from an odd one on (halves,
    quarters): neither half says anything, nor does any count or single place.

    Two counts together do, where their parts divide pairs, and no sampler avoids that for all
    parts: sum s_i u_i times sum s_i v_i, for signs s, is the number of common elements but for
    noise. It is the most for odd places less even ones: under answer 0 both sums are moved alike,
    under answer 1 to opposite sides. And of the pairs, one more has an element of u beside one of v
    under answer 1, of about n/9 that do ("beside").

    Boosted trees see u_i = v_i = 1 in two splits, which is the task itself; at n = 256 they see
    nothing.

    Counted: 2^n: two sets u differ at some element, and the set v of this element alone meets one
    of them (theory.md, section 3).

    From: [Bha24]; theory.md, sections 2 and 3
    """

    name = "disjointness"
    title = (
        "disjointness of two sets of n elements: u_1, ..., u_n, v_1, ..., v_n; answer 1 if no u_i ="
        " v_i = 1"
    )
    source = "[Bha24]"
    shortcuts = measured = ("sign products", "beside")
    grid = ("n=16", "n=24", "n=32", "n=64", "n=256")

    first = "the first set"
    n: int = size(2)

    def layout(self) -> Layout:
        """Two runs: the first set holds all elements, the second none or one."""
        return self._laid(TwoRuns(1, 0, self.n, 2 * self.n), Growth("sets of n elements"))

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        labels = rng.integers(2, size=batch)
        rows = np.arange(batch)
        # of an element: 1 in u alone, 2 in v alone, any other number in neither
        kinds = rng.integers(3, size=(batch, self.n), dtype=np.int8)
        u = kinds == 1
        v = kinds == 2
        one = 2 * rng.integers(self.n // 2, size=batch) + rng.integers(1 + self.n % 2, size=batch)
        which = rng.integers(2, size=batch)
        # one of the two is in u, and one in v: the same under label 0
        for place in (0, 1):
            u[rows, one + place] = which == place
            v[rows, one + place] = (which == place) ^ (labels == 1)
        return Batch(np.concatenate((u, v), axis=1).astype(np.int64), labels)

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        u = tokens[:, : self.n] == 1
        v = tokens[:, self.n :] == 1
        return (u & v).any(1).astype(np.int64) ^ 1
