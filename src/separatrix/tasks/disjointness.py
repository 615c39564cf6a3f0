"""Disjointness: have two sets, given as strings of n bits, no element in common?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from separatrix.core.numbers.counts import OneMoreThanPower, Power
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import YES_OR_NO, Layout
from separatrix.tasks.base.runs import TwoRuns
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import (
    LARGEST_SIZE,
    PLAIN,
    Batch,
    Family,
    FirstPart,
    Task,
    Tokens,
)
from separatrix.tasks.base.words import Words

WORDS = Words(
    asks="Disjointness: have two sets, given as strings of n bits, no element in common?",
    table="""
        position   0     ...   n-1   n     ...   2n-1
        input      u_1   ...   u_n   v_1   ...   v_n
        target     .     ...   .     .     ...   1 if no i has u_i = v_i = 1, else 0
    """,
    drawn="""
        n >= 2. Sampled so that both answers have probability
        1/2 exactly.

        Every element falls into u only, v only or neither, each with probability 1/3. Then a pair
        of neighbours is chosen, uniform among those of an odd place and the next (of odd n, the
        last place or the first is left out, by a fair coin), and one of the two, by a fair coin: it
        belongs to u, the other does not, and v has one of them: under answer 1 the other one, under
        answer 0 the same, which is the only element in common. So u does not depend on the answer,
        nor does v, nor how many elements either has in any part of an even number of places from an
        odd one on (halves, quarters): neither half says anything, nor does any count or single
        place.

        Two counts together do, where their parts divide pairs, and no sampler avoids that for all
        parts: sum s_i u_i times sum s_i v_i, for signs s, is the number of common elements but for
        noise. It is the most for odd places less even ones: under answer 0 both sums are moved
        alike, under answer 1 to opposite sides. Both are about normal, of variance 2n/9 each and
        covariance -n/9, so that the best guess from them gains 2.27/n; 0.60 was measured for the
        product at n = 16, 0.53 at n = 64. A gain of 5/(2n) is allowed.

        Boosted trees on raw tokens see u_i = v_i = 1 in two splits, for every i that they have seen
        enough of, which is the task itself: fitted to 4,000 prompts, 0.81 at n = 16, 0.72 at n =
        32, nothing at n = 256.
    """,
    counted="""
        2^n: two sets u differ at some element, and the set v of this element alone meets one of
        them (theory.md, section 3).
    """,
    origin="[Bha24]; theory.md, sections 2 and 3",
)


@dataclass(frozen=True, kw_only=True)
class Disjointness(Task):
    """Disjointness of two sets of n elements."""

    name: ClassVar[str] = "disjointness"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = (
        "disjointness of two sets of n elements: u_1, ..., u_n, v_1, ..., v_n; answer 1 if no u_i ="
        " v_i = 1"
    )
    usage: ClassVar[str] = "n, shift=sparse"
    source: ClassVar[str] = "[Bha24]"
    shifts: ClassVar[dict[str, str]] = {
        "sparse": "an element lies in either set with probability 1/8, not 1/3"
    }
    shortcuts: ClassVar[tuple[str, ...]] = ("quarters", "sign products")
    grid: ClassVar[tuple[str, ...]] = ("n=16", "n=24", "n=32", "n=64", "n=256")

    n: int
    shift: str = PLAIN

    def __post_init__(self) -> None:
        require(self.name, "n", self.n, 2, LARGEST_SIZE)
        self._check_shift(self.shift)

    def layout(self) -> Layout:
        """Two runs: the first set holds all elements, the second none or one."""
        n = self.n
        runs = TwoRuns(1, 0, n, 2 * n)
        return Layout(2 * n, {"bit": 2}, YES_OR_NO, n, Power(2, n), runs=runs)

    def family(self) -> Family[Self]:
        return self._growing("sets of n elements", 2)

    def level(self, probe: str) -> Fraction:
        """Chance, and the gain that counts at odd and at even places may bring together."""
        gain = Fraction(5, 2 * self.n) if probe == "quarters" else Fraction(0)
        return min(Fraction(1), self.chance + gain)

    def first_part(self) -> FirstPart | None:
        """The last token is the last bit of v, say 1. The sets u without the last element are told
        apart by the rest of v; those with it always meet v.
        """
        return FirstPart("the first set", OneMoreThanPower(self.n - 1)) if self.n > 1 else None

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        labels = rng.integers(2, size=batch)
        rows = np.arange(batch)
        # of an element: 1 in u alone, 2 in v alone, any other number in neither
        kinds = rng.integers(3 if self.shift == PLAIN else 8, size=(batch, self.n), dtype=np.int8)
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
