"""The inequalities that Theorems VI and VII are made of: Lemma C, Lemma S and the count at the end
(theory.md, section 11). Each is certified, and says what stands on its two sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

from flint import arb, ctx

from separatrix.core.numbers.binomials import Binomial
from separatrix.core.numbers.logs import LogSign, floor_log2, log2_ball, log_difference
from separatrix.core.numbers.occupancy import Occupancy, sign_of, whole

_WRITTEN = 64
"""Binomials of so few are written out, and ties settled exactly."""
_FAILS = LogSign(-1, "integers", "fails: nothing is gained")
_CERTAIN = LogSign(1, "integers", "holds: one value is always taken")


class Sides(NamedTuple):
    """The two sides of an inequality in bits: the left one rounded down to an integer."""

    left: int
    right: int


@dataclass(frozen=True)
class Hit:
    """times lambda(bins, balls, hit; groups) > bits, or hit = 1: Lemma S, by which so many bins
    are hit in all but a 2^-lambda part of all ways to throw.
    """

    occupancy: Occupancy
    bits: int
    times: int = 1

    def sign(self) -> LogSign:
        """The certified sign of left minus right side; positive where one bin is enough."""
        if self.occupancy.certain:
            return _CERTAIN
        if self.occupancy.useless:
            return _FAILS
        left = self._left()
        with ctx.workprec(self._precision):
            return sign_of(left - self.bits)

    def sides(self) -> Sides | None:
        """Both sides; None where one bin is enough, or nothing is gained."""
        if self.occupancy.certain or self.occupancy.useless:
            return None
        return Sides(whole(self._left()), self.bits)

    @property
    def _precision(self) -> int:
        return 128 + 2 * max(abs(self.bits).bit_length(), self.times.bit_length())

    def _left(self) -> arb:
        ball = self.occupancy.log2_ball()
        with ctx.workprec(self._precision + 2 * self.occupancy.balls.bit_length()):
            return self.times * ball


@dataclass(frozen=True)
class Greedy:
    """(A1): t (x log2(values/(y+v-2)) - log2 binom(values, v-1)) > s x, v = ceil(y/D) <= x.

    Contents are taken one by one, each with v values that are new, until there are y of them.
    """

    values: int
    places: int
    among: int
    contents: int
    y: int
    bits: int

    @property
    def each(self) -> int:
        """v: how many new values each content brings."""
        return -(-self.y // self.contents)

    @property
    def fits(self) -> bool:
        """Whether a content has so many places."""
        return self.each <= self.places and self.each - 1 <= self.values

    def sign(self) -> LogSign:
        """The certified sign of left minus right side."""
        if not self.fits:
            return _FAILS
        bits = self.bits * self.places
        powers = self._powers()
        if powers is not None:
            return log_difference(powers, bits)
        with ctx.workprec(self._precision):
            return sign_of(self._left() - bits)

    def sides(self) -> Sides | None:
        """Both sides; None where a content has too few places."""
        if not self.fits:
            return None
        bits = self.bits * self.places
        powers = self._powers()
        if powers is not None:
            return Sides(floor_log2(powers), bits)
        with ctx.workprec(self._precision):
            return Sides(whole(self._left()), bits)

    @property
    def _precision(self) -> int:
        sizes = self.values.bit_length() + self.places.bit_length() + self.among.bit_length()
        return 128 + sizes + abs(self.bits).bit_length()

    @property
    def _gained(self) -> list[tuple[int, int]]:
        """What places of new values bring, as (coefficient, integer under a logarithm)."""
        ways = self.among * self.places
        return [(ways, self.values), (-ways, self.y + self.each - 2)]

    def _powers(self) -> list[tuple[int, int]] | None:
        """The left side in that form where the binomial can be written; else None."""
        if self.each - 1 > _WRITTEN:
            return None
        return [*self._gained, (-self.among, comb(self.values, self.each - 1))]

    def _left(self) -> arb:
        gained = sum((times * log2_ball(base) for times, base in self._gained), arb(0))
        return gained - self.among * Binomial(self.values, self.each - 1).log2_ball()


@dataclass(frozen=True)
class Class:
    """Lemma C: of values^t contents of t = `among` places at least a 2^-bits part are alike. Then
    there are x = `places` of them, and D = `contents` that take y values there.

    It holds if y = 1, or by (A1), or by (A2): lambda(values, D x, y; 1) > D bits x/t.
    """

    values: int
    places: int
    among: int
    contents: int
    y: int
    bits: int

    def ways(self) -> tuple[Greedy, Hit]:
        """(A1) and (A2), both times t so that the right sides are integers."""
        return (
            Greedy(self.values, self.places, self.among, self.contents, self.y, self.bits),
            Hit(
                Occupancy(self.values, self.contents * self.places, self.y),
                self.contents * self.bits * self.places,
                times=self.among,
            ),
        )

    def sign(self) -> LogSign:
        """The certified sign of left minus right side of the first of both that holds; of (A2)
        where neither does.
        """
        if self.y == 1:
            return _CERTAIN
        greedy, hit = self.ways()
        first = greedy.sign()
        return first if first.positive else hit.sign()

    def sides(self) -> Sides | None:
        """Both sides of the first that holds; None for y = 1, and where neither does."""
        if self.y == 1:
            return None
        return next((way.sides() for way in self.ways() if way.sign().positive), None)


@dataclass(frozen=True)
class Asked:
    """entries log2(values) > bits: the entries of the last function that are asked for hold more
    than was fixed of it.
    """

    entries: int
    values: int
    bits: int

    def sign(self) -> LogSign:
        """The certified sign of left minus right side."""
        return log_difference([(self.entries, self.values)], self.bits)

    def sides(self) -> Sides:
        """Both sides."""
        return Sides(floor_log2([(self.entries, self.values)]), self.bits)
