"""What the proofs of Theorems VI and VII pay, as counts of messages that are fixed, and their
conditions at sizes that can be enumerated.

X_l = sum over kinds of messages of (how many) log(how many values), so that 2^X_l is an integer.
Derived from the steps of the proofs, apart from `separatrix.theory`; a test compares both.
Source: theory.md, section 11.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import comb, prod

from adversaries.many_readings import ManyReadingsSizes
from separatrix.core.errors import SizeError

Kind = tuple[str, int]
"""("cache", j), ("read", j), or HALF."""
HALF: Kind = ("half", 0)
"""The bit that Lemma J pays."""
Price = Counter[Kind]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The parameters of the proofs: G groups of w_2, x places of z_1, Delta_1, ..., Delta_{L-1}
    contents, at least Y_1 = y_1, Y_2, ..., Y_{L-1} values, flags f_2, ..., f_{L-1}, f_L.

    Y = () and flags = () stand for ones and for zeros.
    """

    G: int = 1
    x: int = 1
    contents: tuple[int, ...]
    Y: tuple[int, ...] = ()
    flags: tuple[int, ...] = ()


@dataclass(frozen=True)
class Prices:
    """The counts of a size and a choice. Raises SizeError where they do not fit."""

    sizes: ManyReadingsSizes
    choice: Choice

    def __post_init__(self) -> None:
        L = self.sizes.L
        choice = self.choice
        good = (
            len(choice.contents) == L - 1
            and len(choice.Y) in (0, L - 1)
            and len(choice.flags) in (0, L - 1)
            and min(choice.G, choice.x, *choice.contents, *choice.Y, 1) >= 1
            and set(choice.flags) <= {0, 1}
            and choice.x <= self.sizes.t
            and self.sizes.m % choice.G == 0
            and self.sizes.branching[1] % choice.G == 0
            and self.Y(1) <= min(self.m_, self.contents(1) * choice.x)
        )
        if not good:
            raise SizeError(
                f"{choice} does not fit {self.sizes}: G divides m and n_2, x <= t, y_1 <="
                f" min(m/G, Delta_1 x), {L - 1} contents, Y and flags of 0 or 1"
            )

    @property
    def m_(self) -> int:
        """m', the length of an interval of values of z_1."""
        return self.sizes.m // self.choice.G

    @property
    def g(self) -> int:
        return self.sizes.branching[1] // self.choice.G

    def contents(self, level: int) -> int:
        """Delta_level."""
        return self.choice.contents[level - 1]

    def Y(self, level: int) -> int:
        return self.choice.Y[level - 1] if self.choice.Y else 1

    def flag(self, level: int) -> int:
        return self.choice.flags[level - 2] if self.choice.flags else 0

    def tokens(self, level: int) -> int:
        """tok_level: of z_level, for level 2 with the constant part of z_1."""
        sizes = self.sizes
        return sizes.N[1] + sizes.m - sizes.t if level == 2 else sizes.N[level - 1]

    def product(self, level: int) -> int:
        """Pi_level."""
        return prod(self.contents(i) for i in range(2, level))

    def lower(self, level: int) -> int:
        """Low_level: tokens of z_{level-1}, ..., z_1, z_0, over the contents up to each."""
        middle = sum(
            self.tokens(i) * prod(self.contents(k) for k in range(i, level))
            for i in range(2, level)
        )
        first = self.choice.G * self.contents(1) * (self.sizes.t + self.choice.x)
        return middle + self.product(level) * first

    def start(self) -> Price:
        """X_2."""
        sizes = self.sizes
        choice = self.choice
        several = choice.G * self.contents(1)
        top = sizes.shift + 1
        paid: Price = Counter({("cache", sizes.shift): 1})
        if sizes.shift:
            of_z_0 = min(choice.G * choice.x, sizes.t)
            paid["read", 1] += sizes.W + several * sizes.t + of_z_0
        paid["read", top] += choice.x * sizes.W
        if self.flag(2):
            paid["cache", top] += 1
            of_z_0 = several * choice.x if sizes.shift else choice.G * choice.x
            paid["read", top] += several * sizes.t + of_z_0
        else:
            paid["cache", top] += several * choice.x
        return paid

    def added(self, level: int) -> Price:
        """What the step from `level` to `level` + 1 fixes."""
        sizes = self.sizes
        choice = self.choice
        several = self.contents(level)
        middle = level - 1 + sizes.shift
        paid: Price = Counter()
        for j in range(sizes.shift, middle + 1):
            paid["cache", j] += 1
        for j in range(1, middle + 1):
            paid["read", j] += several * self.tokens(level)
        paid["read", middle + 1] += self.product(level) * self.contents(1) * choice.x * sizes.W
        lower = self.lower(level)
        if not self.flag(level):
            short = choice.G * (self.contents(1) * sizes.t + choice.x)
            paid["read", middle] += short if level == 2 and not sizes.shift else lower
        if self.flag(level + 1):
            paid["cache", middle + 1] += 1
            again = lower if self.flag(level) else several * lower
            paid["read", middle + 1] += several * self.tokens(level) + again
        else:
            ends = self.product(level) * choice.G * self.contents(1) * choice.x
            paid["cache", middle + 1] += several * ends
        return paid

    def total(self, level: int) -> Price:
        """X_level."""
        if level == 2:
            return self.start()
        several = self.contents(level - 1)
        paid: Price = Counter({HALF: 1})
        for kind, count in self.total(level - 1).items():
            paid[kind] += several * count
        paid.update(self.added(level - 1))
        return paid

    def values(self, price: Price) -> int:
        """2^(a price), an integer."""
        return prod(self.size(kind) ** count for kind, count in price.items())

    def size(self, kind: Kind) -> int:
        """How many values a message of this kind may have."""
        name, j = kind
        if kind == HALF:
            return 2
        return self.sizes.caches[j] if name == "cache" else self.sizes.reads[j - 1]

    def states(self) -> int:
        """2^s: the states after z_1 among which one is kept for each group of w_2."""
        sizes = self.sizes
        if not sizes.shift:
            return sizes.caches[0]
        return sizes.caches[1] * sizes.reads[0] ** (sizes.W // self.choice.G)

    def class_holds(self) -> bool:
        """Condition (A): Lemma C promises a class with y_1 values.

        (A2) with the exact distribution of occupancy in the place of Lemma S, which bounds it.
        """
        D = self.contents(1)
        x = self.choice.x
        t = self.sizes.t
        y = self.Y(1)
        each = -(-y // D)
        if y == 1:
            return True
        # x log(m'/(y+v-2)) - log binom(m', v-1) > s x/t, times t, in powers
        left = self.m_ ** (x * t)
        right = (y + each - 2) ** (x * t) * comb(self.m_, each - 1) ** t * self.states() ** x
        if each <= x and left > right:
            return True
        few = fewer_than(y, self.m_, D * x)
        return few**t * self.states() ** (D * x) < 1

    def survives(self, bad: int, tuples: int, level: int) -> bool:
        """Condition (B_level) with the exact number of bad tuples: P(bad) <= 2^(-Delta X - 1)."""
        paid = self.values(self.total(level))
        return 2 * bad * paid ** self.contents(level) <= tuples

    def ends(self) -> bool:
        """Condition (C)."""
        sizes = self.sizes
        rows = self.g if sizes.L == 3 else sizes.branching[-1]
        asked = rows * self.Y(sizes.L - 1)
        return bool(sizes.N[-1] ** asked > self.values(self.total(sizes.L)))


def fewer_than(y: int, bins: int, balls: int) -> Fraction:
    """The probability that independent uniform balls hit fewer than y bins."""
    # ways[k]: maps of the balls so far that hit exactly k bins
    ways = [1] + [0] * bins
    for _ in range(balls):
        ways = [ways[k] * k + (ways[k - 1] * (bins - k + 1) if k else 0) for k in range(bins + 1)]
    return Fraction(sum(ways[:y]), bins**balls)
