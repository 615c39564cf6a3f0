"""String equality: are two strings of n bits the same?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from separatrix.core.numbers.counts import Count, OneMoreThanPower, Power
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.runs import TwoRuns
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import (
    LARGEST_SIZE,
    PLAIN,
    Batch,
    Decision,
    Family,
    FirstPart,
    Tokens,
)
from separatrix.tasks.base.words import Words
from separatrix.tasks.drawing.distinct import one_of

WORDS = Words(
    asks="String equality: are two strings of n bits the same?",
    table="""
        position   0     ...   n-1   n     ...   2n-1
        input      u_1   ...   u_n   v_1   ...   v_n
        target     .     ...   .     .     ...   1 if u = v, else 0
    """,
    drawn="""
        n >= 1. Sampled so that both answers have probability 1/2 exactly.

        n >= 8: u holds p10s at one place and p01s at another, either first, with p and s of r
        uniform bits each; places and all other bits are uniform. r is as large as can be up to log2
        n - 1, rounded down, while the two take at most two thirds of the string, r <= n/6 - 1.
        Their distance is a multiple of D, the largest of 27720, 2520, 840, 420, 60, 12, 6, 4, 2
        that leaves two distances at least. v is u, or u with the two exchanged, so that v is
        distributed like u, and u and v together say nothing but whether they are equal: under both
        answers they have the same ones, the same ones at places that agree modulo D, the same sum
        of i u_i, and the same number of every r + 1 neighbours, which for n >= 24 is log2 n rounded
        down, and so (from r = 1, n = 12, on) the same runs. (D is 4 at n = 24, 12 from n = 34 and
        60 from n = 134 on. Counts of ones at places modulo 3 give 0.7 where 3 does not divide D.)

        What remains are other fingerprints, which no sampler avoids: bags of more neighbours, of
        which there are more kinds than places; log2 n random bits and as many of memory check
        equality nearly always, and so do fixed sums such as that of i^2 u_i. Four places differ, so
        comparing one u_i with v_i is right with probability 1/2 + 2/n on average.

        n < 8: u is uniform over the strings that hold both bits; v is u, or u with a uniform pair
        of unequal bits exchanged. So v is as uniform as u, both have the same ones under both
        answers, and counts say nothing; sums of i u_i and runs do. (n = 1: v is u or its opposite;
        the two tokens are all there is, and one zero beside one one says that they differ. So
        "counts" and "last tokens" see the answer.)

        Boosted trees on raw tokens compare u_i with v_i in two splits, for every i that they have
        seen enough of, which is the task itself: fitted to 4,000 prompts, 0.94 at n = 24, 0.90 at n
        = 48, 0.83 at n = 64, 0.53 at n = 256, and with 1,000 nothing there.
    """,
    counted="""
        2^n: of two different strings u, the continuation v = u accepts one (theory.md, section 3).
    """,
    origin="[Bha24]; theory.md, sections 2 and 3",
)

_LEAST_HIDDEN = 24
"""Smallest n of which bags of log2 n neighbours are the same in both strings."""
_MULTIPLES = (27720, 2520, 840, 420, 60, 12, 6, 4)
"""Distances with many divisors."""


@dataclass(frozen=True, kw_only=True)
class Equality(Decision):
    """Equality of two strings of n bits."""

    name: ClassVar[str] = "equality"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = "string equality: u_1, ..., u_n, v_1, ..., v_n; answer 1 if u = v"
    usage: ClassVar[str] = "n, shift=apart"
    source: ClassVar[str] = "[Bha24]"
    shifts: ClassVar[dict[str, str]] = {
        "apart": (
            "where u and v differ, v is a uniform other string with as many ones, most places apart"
        )
    }
    shortcuts: ClassVar[tuple[str, ...]] = ("halves",)
    grid: ClassVar[tuple[str, ...]] = ("n=24", "n=32", "n=48", "n=64", "n=256")

    n: int
    shift: str = PLAIN

    def __post_init__(self) -> None:
        require(self.name, "n", self.n, 1, LARGEST_SIZE)
        self._check_shift(self.shift)

    @property
    def length(self) -> int:
        return 2 * self.n

    @property
    def vocabulary(self) -> int:
        return 2

    @property
    def token_ids(self) -> dict[str, range]:
        return {"bit": range(2)}

    def level(self, probe: str) -> Fraction:
        """1 for what sees both tokens where there are two, and for bags of neighbours that a short
        string has no room to hide; else chance.
        """
        if probe == "halves" and self.n < _LEAST_HIDDEN:
            return Fraction(1)
        return Fraction(1) if self.n == 1 and probe in ("counts", "last tokens") else self.chance

    @property
    def _margin(self) -> int:
        """r, the bits on either side of what is exchanged."""
        return min(self.n.bit_length() - 2, self.n // 6 - 1)

    @property
    def _apart(self) -> int:
        """What the distance of the two fragments is a multiple of: as many divisors as leave two
        distances, so that ones at places modulo these do not tell.
        """
        width = 2 * self._margin + 2
        longest = self.n - width
        return next((m for m in _MULTIPLES if longest // m > (width - 1) // m + 1), 2)

    @property
    def prefix_length(self) -> int:
        return self.n

    def prefix_classes(self) -> Count:
        """The count that `words.counted` derives."""
        return Power(2, self.n)

    def first_part(self) -> FirstPart | None:
        """The last token is the last bit of v, say 0. The strings u that end in 0 are told apart by
        the rest of v; those that end in 1 never match.
        """
        return FirstPart("the first string", OneMoreThanPower(self.n - 1)) if self.n > 1 else None

    def two_runs(self) -> TwoRuns | None:
        """The first of the two is the second string again."""
        ones = self.n // 2
        return TwoRuns.halves(self.n, (((1,), ones), ((0,), self.n - ones)))

    def family(self) -> Family[Equality]:
        return Family("strings of n bits", lambda n: Equality(n=n), 1)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        equal = rng.integers(2, size=batch)
        if self.n >= 8 and self.shift == PLAIN:
            return Batch(self._fragments(equal, rng), equal)
        u = rng.integers(2, size=(batch, self.n))
        if self.n == 1:
            return Batch(np.column_stack((u, u[:, 0] ^ 1 - equal)), equal)
        # a constant u is the only string with as many ones
        while (constant := (u == u[:, :1]).all(1)).any():
            u[constant] = rng.integers(2, size=(int(constant.sum()), self.n))
        v = u.copy()
        rows = np.arange(batch)
        if self.shift == "apart":
            left = np.flatnonzero(equal == 0)
            while len(left):
                v[left] = rng.permuted(u[left], axis=1)
                left = left[(v[left] == u[left]).all(1)]
            return Batch(np.column_stack((u, v)), equal)
        for bit in (0, 1):  # one place of each bit, uniform among them
            v[rows, one_of(u == bit, rng)] ^= 1 - equal
        return Batch(np.column_stack((u, v)), equal)

    def _fragments(self, equal: Tokens, rng: np.random.Generator) -> Tokens:
        """Prompts (batch, 2n) that hold two fragments p10s and p01s, exchanged in v where the
        answer is 0.
        """
        rows = np.arange(len(equal))
        margin = self._margin
        width = 2 * margin + 2
        # of two starts, a multiple and at least one width apart, every choice is equally likely
        apart = self._apart
        gaps = np.arange(-(-width // apart) * apart, self.n - width + 1, apart)
        choices = np.cumsum(self.n - width - gaps + 1)
        drawn = rng.integers(choices[-1], size=len(equal))
        gap = np.searchsorted(choices, drawn, side="right")
        first = drawn - np.concatenate(([0], choices))[gap]
        start = np.column_stack((first, first + gaps[gap]))
        tokens = rng.integers(2, size=(len(equal), 2 * self.n))
        u = tokens[:, : self.n]
        v = tokens[:, self.n :]
        for step in range(width):
            u[rows, start[:, 1] + step] = u[rows, start[:, 0] + step]
        rises = rng.integers(2, size=len(equal))
        for which in (0, 1):
            u[rows, start[:, which] + margin] = rises ^ which
            u[rows, start[:, which] + margin + 1] = rises ^ 1 ^ which
        v[:] = u
        # flipping both bits of both middles exchanges the fragments and keeps the number of ones
        for step in (margin, margin + 1):
            v[rows[:, None], start + step] ^= 1 - equal[:, None]
        return tokens

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        return (tokens[:, : self.n] == tokens[:, self.n :]).all(1).astype(np.int64)
