"""Modular counting: how many of n bits are ones, modulo m?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from separatrix.core.numbers.counts import Exact
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.runs import TwoRuns
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import LARGEST_SIZE, PLAIN, Batch, Family, Task, Tokens
from separatrix.tasks.base.words import Words

WORDS = Words(
    asks="Modular counting: how many of n bits are ones, modulo m?",
    table="""
        n = 6, m = 3:   position   0   1   2   3   4   5
                        input      1   0   1   1   0   1
                        target     .   .   .   .   .   1
    """,
    rules="Ids are the bits; the answer is the number of ones modulo m. Above: 4 = 1 modulo 3.",
    drawn="""
        n >= m >= 2. The number of ones is uniform below C, the largest multiple of m with C <= n +
        1, so that answers are uniform; the places of the ones are uniform.

        The answer is a function of the number of ones: who counts all n exactly has it. Everything
        else sees that number roughly. To tell it up to an interval is worth little: whatever
        intervals of numbers the m answers are guessed on, that is right with probability at most
        1/m + (m-1)/C, since an interval of k numbers holds at most ceil(k/m) of one residue. That
        is the level of every probe but exact counts, which are all there is. (With independent bits
        the number would lie within a few standard deviations, sqrt(n)/2 each, of n/2, and m
        thresholds on it would be right most of the time.)
    """,
    counted="""
        m, for the first n - 1 bits [here]: their number of ones modulo m. All m occur, and one more
        bit keeps them apart.
    """,
    origin="""
        the languages of strings whose number of ones is a multiple of m, for which see Merrill,
        Petty, Sabharwal, arXiv 2404.08819
    """,
)


@dataclass(frozen=True, kw_only=True)
class Modular(Task):
    """The number of ones among n bits, modulo m."""

    name: ClassVar[str] = "modular"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = "modular counting: how many of n bits are ones, modulo m"
    usage: ClassVar[str] = "n, m, shift=independent"
    source: ClassVar[str] = "arXiv 2404.08819"
    shifts: ClassVar[dict[str, str]] = {
        "independent": "bits are independent and fair, after the first m - 1, which make the answer"
        " uniform"
    }
    grid: ClassVar[tuple[str, ...]] = (
        "n=48,m=3",
        "n=64,m=5",
        "n=96,m=4",
        "n=256,m=7",
        "n=1024,m=16",
        "n=4096,m=60",
    )

    n: int
    m: int
    shift: str = PLAIN

    def __post_init__(self) -> None:
        require(self.name, "m", self.m, 2, LARGEST_SIZE)
        require(self.name, "n", self.n, self.m, LARGEST_SIZE)
        self._check_shift(self.shift)

    def layout(self) -> Layout:
        """Two runs: one bit more is a one, and counts that differ by 1 differ modulo every m."""
        answers = {f"number modulo {self.m}": self.m}
        runs = TwoRuns.halves(self.n)
        return Layout(self.n, {"bit": 2}, answers, self.n - 1, Exact(self.m), runs=runs)

    def family(self) -> Family[Self]:
        """m stays."""
        return self._growing(f"m = {self.m:,}", self.m)

    @property
    def numbers(self) -> int:
        """C: how many numbers of ones are drawn, from 0 on."""
        return (self.n + 1) // self.m * self.m

    def level(self, probe: str) -> Fraction:
        """As `words.drawn` derives."""
        if probe in ("constant", "counts"):
            return Fraction(1) if probe == "counts" else self.chance
        return min(Fraction(1), self.chance + Fraction(self.m - 1, self.numbers))

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        tokens = np.empty((batch, self.n), np.int64)
        if self.shift == PLAIN:
            ones = rng.integers(self.numbers, size=(batch, 1))
            tokens[:] = np.arange(self.n) < ones
            rng.permuted(tokens, axis=1, out=tokens)
        else:
            first = self.m - 1
            tokens[:] = rng.integers(2, size=tokens.shape)
            tokens[:, :first] = np.arange(first) < rng.integers(self.m, size=(batch, 1))
            rng.permuted(tokens[:, :first], axis=1, out=tokens[:, :first])
        return Batch(tokens, tokens.sum(axis=1) % self.m)

    def answer(self, tokens: Tokens) -> Tokens:
        return self._checked(tokens).sum(axis=1) % self.m
