"""Parity: is the number of ones among n bits odd?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Self

from separatrix.core.numbers.counts import Exact
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import YES_OR_NO, Layout
from separatrix.tasks.base.runs import TwoRuns
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import LARGEST_SIZE, PLAIN, Batch, Family, Task, Tokens
from separatrix.tasks.base.words import Words

WORDS = Words(
    asks="Parity: is the number of ones among n bits odd?",
    table="""
        n = 5:   position   0   1   2   3   4
                 input      1   0   1   1   0
                 target     .   .   .   .   1
    """,
    rules="Ids are the bits; the answer is their sum modulo 2.",
    drawn="""
        n >= 2 independent fair bits. Any n - 1 of them leave the answer a fair coin, so that no
        look at fewer than all tells anything.

        The answer is a function of the number of ones: who counts all n exactly has it, so counts
        may do anything. A threshold on that number alone is right in 2^(n-1) + binom(n-1,
        floor((n-1)/2)) of the 2^n prompts, which is 0.57 at n = 32.
    """,
    counted="""
        2, for prefixes of any length t from 1 to n - 1: their own parity [here]. Any continuation
        is answered differently after an even and after an odd prefix.
    """,
    origin="""
        the parity function; for transformers Hahn, arXiv 1906.06755; modular of m = 2 asks the same
        of a uniform number of ones, group of C2 the same of the same bits
    """,
)

_LEVELLED = 4096
"""Largest n whose level is computed exactly; beyond, it is that of this n, which is more."""


@dataclass(frozen=True, kw_only=True)
class Parity(Task):
    """The parity of n bits."""

    name: ClassVar[str] = "parity"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = "parity: answer 1 if the number of ones among n bits is odd"
    usage: ClassVar[str] = "n, shift=few"
    source: ClassVar[str] = "arXiv 1906.06755"
    shifts: ClassVar[dict[str, str]] = {
        "few": (
            "after the first bit, which stays fair, a bit is one with probability 1/sqrt(n): most"
            " prompts have few ones"
        )
    }
    grid: ClassVar[tuple[str, ...]] = ("n=32", "n=48", "n=64", "n=256", "n=1024", "n=4096")

    n: int
    shift: str = PLAIN

    def __post_init__(self) -> None:
        require(self.name, "n", self.n, 2, LARGEST_SIZE)
        self._check_shift(self.shift)

    def layout(self) -> Layout:
        """Two runs: one bit more is a one."""
        runs = TwoRuns.halves(self.n)
        return Layout(self.n, {"bit": 2}, YES_OR_NO, self.n - 1, Exact(2), runs=runs)

    def family(self) -> Family[Self]:
        return self._growing("bits", 2)

    def level(self, probe: str) -> Fraction:
        """Counts are all there is. The nearest key: an earlier bit unlike the last one is followed
        by one like it, so it tells the last bit or that all n are equal: for even n both prompts of
        equal bits are even, for odd n they differ.
        """
        if probe == "counts":
            return Fraction(1)
        n = min(self.n, _LEVELLED)
        gain = 2 - n % 2 if probe == "nearest key" else 0
        return Fraction((1 << (n - 1)) + gain, 1 << n)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        shape = (self._batch(batch), self.n)
        tokens = rng.integers(2, size=shape)
        if self.shift == "few":
            ones = rng.random(shape) < 1 / sqrt(self.n)
            ones[:, 0] = tokens[:, 0]
            tokens = ones.astype(np.int64)
        return Batch(tokens, tokens.sum(axis=1) % 2)

    def answer(self, tokens: Tokens) -> Tokens:
        return self._checked(tokens).sum(axis=1) % 2
