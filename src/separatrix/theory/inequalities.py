"""The two inequalities that Theorems III, IV and V are made of, each written once.

Their terms are exact integers, and then certified, or arrays of floats, and then searched over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import expm1, log1p, log2
from typing import Any, Generic, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from separatrix.errors import Undecided
from separatrix.numbers.logs import LogSign, log_difference
from separatrix.theory.search.integers import LN2, Floats, least_factor, settle
from separatrix.theory.search.logs import Logs


class Number(Protocol):
    """What an inequality is written in: exact integers, or arrays of integers kept as floats."""

    def __add__(self, other: Any, /) -> Self: ...
    def __radd__(self, other: Any, /) -> Self: ...
    def __sub__(self, other: Any, /) -> Self: ...
    def __mul__(self, other: Any, /) -> Self: ...
    def __rmul__(self, other: Any, /) -> Self: ...


N = TypeVar("N", bound=Number)
Mask = NDArray[np.bool_]


def smaller(a: N, b: N) -> N:
    """The smaller of two numbers, or of two arrays elementwise."""
    if isinstance(a, int) and isinstance(b, int):
        return cast(N, min(a, b))
    if isinstance(a, Logs) and isinstance(b, Logs):
        return cast(N, a.capped(b))
    return cast(N, np.minimum(cast(Floats, a), cast(Floats, b)))


def ceil_ratio(a: N, b: N) -> N:
    """a / b, rounded up."""
    if isinstance(a, int) and isinstance(b, int):
        return cast(N, -(-a // b))
    # floats only propose points: an error of one here may cost a find, never a proof
    return cast(N, np.ceil(cast(Floats, a) / cast(Floats, b)))


class Certified(Protocol):
    """An inequality whose sign can be certified."""

    def sign(self) -> LogSign:
        """The certified sign of left minus right side. Raises Undecided where it stays open."""
        ...


def certainly(inequality: Certified) -> bool:
    """Whether the inequality holds, certified; a tie that stays open counts as no."""
    try:
        return inequality.sign().positive
    except Undecided:
        return False


@dataclass(frozen=True)
class Pigeonhole(Generic[N]):
    """places log2(values / (kept - 1)) > bits, or kept = 1.

    Contents of `places` places, each with `values` possible values, fall into at most 2^bits
    classes. The largest class then takes at least `kept` different values at some place: with
    kept - 1 at each it would be too small.

    `gap` is values - kept, for floats so close to each other that their difference is lost.
    """

    places: N
    values: N
    kept: N
    bits: N | int
    gap: N | None = None

    def sign(self: Pigeonhole[int]) -> LogSign:
        """The certified sign of left minus right side; 1 bit where kept = 1."""
        if self.kept == 1:
            return LogSign(1, "integers", "holds: one value is always kept")
        terms = [(self.places, self.values), (-self.places, self.kept - 1)]
        return log_difference(terms, self.bits)

    def slack(self: Pigeonhole[Floats]) -> Floats:
        """Left minus right side, as floats; infinite where kept = 1."""
        return np.where(self.kept <= 1, np.inf, self.places * self._gain() - self.bits)

    def share(self: Pigeonhole[Floats]) -> Floats:
        """What part of the values is kept, one value more or less: 2^(-bits / places)."""
        return np.exp2(-self.bits / self.places)

    def most_kept(self: Pigeonhole[Floats]) -> Floats:
        """The largest `kept` with which it holds, as floats."""
        # kept - 1 < values * share, strictly, so the largest integer kept is the ceiling
        return np.minimum(np.ceil(self.values * self.share()), self.values)

    def places_needed(self: Pigeonhole[Floats]) -> Floats:
        """The number that `places` must exceed, as floats."""
        return self.bits / self._gain()

    def least_places(self: Pigeonhole[Floats]) -> Floats:
        """The smallest `places` with which it holds, as floats."""
        if isinstance(self.bits, int) and self.bits == 0:
            return np.ones_like(self.kept)
        return np.where(self.kept <= 1, 1, np.floor(self.places_needed()) + 1)

    def _gain(self: Pigeonhole[Floats]) -> Floats:
        """log2(values / (kept - 1))."""
        if self.gap is None:
            # 1e-300 in place of 0: kept = 1 gains without bound and divides by no zero
            return np.log2(self.values / np.maximum(self.kept - 1, 1e-300))
        # (kept - 1) / values = 1 - (gap + 1) / values, where the small term keeps its digits
        return -np.log1p(-(self.gap + 1) / self.values) / LN2

    def certified_places(self: Pigeonhole[int]) -> int | None:
        """The smallest `places` with which it certainly holds; None if none is found."""
        if self.kept == 1:
            return 1
        lost = self.values - self.kept + 1
        if 2 * lost > self.values:
            gain = log2(self.values / (self.kept - 1))
        else:  # values and kept - 1 may agree in all digits of a float, so take what is lost
            gain = -log1p(-lost / self.values) / LN2
        return settle(self.bits / gain + 1, lambda places: certainly(replace(self, places=places)))

    def certified_kept(self: Pigeonhole[int]) -> int | None:
        """The largest `kept` of at least 2 with which it certainly holds; None if none is found."""
        values = self.values
        # values (1 - share): expm1 keeps the digits where nearly all values are kept
        lost = -values * expm1(-LN2 * self.bits / self.places)

        # `settle` looks for a smallest integer, so it is given how many values go
        def holds(fewer: int) -> bool:
            return fewer < values and certainly(replace(self, kept=values + 1 - fewer))

        fewer = settle(lost + 1, holds)
        return None if fewer is None else values + 1 - fewer


@dataclass(frozen=True)
class Counting(Generic[N]):
    """x r log2(x base) > x each + owed + more min(few, ceil(x/g)) + caches ceil(x/g) r.

    The left side: how many bits of the last function its x r entries hold that are asked for, with
    x base values each. The right side: what was fixed of it, `each` for every value of the last
    index; `caches` for every group of g values and every one of r contents; `more` for the first
    `few` groups. If the left side is larger, two functions that differ at one of these entries get
    the same answers.

    Answers are told apart by their first tokens, of which there are `most` where it is given.
    """

    x: N
    r: N
    base: N
    each: int
    owed: N
    g: N | None = None
    caches: int = 0
    few: N | int = 0
    more: int = 0
    most: int | None = None

    def sign(self: Counting[int]) -> LogSign:
        """The certified sign of left minus right side."""
        values = self.x * self.base
        if self.most is not None:
            values = min(values, self.most)
        return log_difference([(self.x * self.r, values)], self.right())

    def slack(self: Counting[Floats]) -> Floats:
        """Left minus right side, as floats."""
        return self.left() - self.right()

    def left(self: Counting[Floats]) -> Floats:
        """What can be asked for, as floats."""
        values = self.x * self.base
        if self.most is not None:
            values = np.minimum(values, self.most)
        return self.x * self.r * np.log2(values)

    def right(self) -> N:
        """What was fixed."""
        owed: N = self.owed + self.x * self.each
        return owed if self.g is None else self._with_groups(owed, ceil_ratio(self.x, self.g))

    def _with_groups(self, owed: N, groups: N) -> N:
        """What is owed, with what so many groups owe."""
        if self.more:
            owed = owed + smaller(cast(N, self.few), groups) * self.more
        return owed + groups * self.r * self.caches

    def in_groups(self: Counting[Floats], x: Floats) -> Mask:
        """Whether a group has at most x values, for each x."""
        return np.isfinite(x) if self.g is None else self.g <= x

    def least(self: Counting[Floats], rounds: int) -> Floats:
        """The smallest x with which it holds, as floats; infinite where none is found.

        Whole groups are counted at most `rounds` times, up from a lower bound that counts parts of
        groups: the number of groups that x makes decides what x must be.
        """
        # points out of range may owe less than nothing, which `least_factor` does not take
        owed = np.maximum(self.owed, 0)
        if self.g is None:
            return self._least_within(owed)
        x = groups = np.ones_like(self.r)
        each = np.full_like(self.r, self.each)
        part = each + self.r * self.caches / self.g
        for _ in range(2 if self.more else 1):
            begun = owed + np.minimum(self.few, groups) * self.more if self.more else owed
            x = least_factor(self.base, self.r, part, begun)
            groups = np.ceil(x / self.g)
        # then the number of groups costs nothing, and the first x is final
        constant = not self.more and not self.caches
        for _ in range(0 if constant else rounds):
            whole = self._with_groups(owed, groups)
            x = np.maximum(x, least_factor(self.base, self.r, each, whole))
            before = groups
            groups = np.ceil(x / self.g)
            if np.array_equal(before, groups):
                break
        return x

    def _least_within(self: Counting[Floats], owed: Floats) -> Floats:
        """The smallest x where there are no groups, and at most `most` answers."""
        x = least_factor(self.base, self.r, np.full_like(self.r, self.each), owed)
        if self.most is None:
            return x
        gain = self.r * np.log2(self.most) - self.each  # by each x once x base >= most
        past = np.maximum(np.floor(owed / gain) + 1, np.ceil(self.most / self.base))
        return np.where(x * self.base <= self.most, x, np.where(gain > 0, past, np.inf))


Inequality = Pigeonhole[int] | Counting[int]
"""One that can be certified."""
