"""Binomial coefficients, sums of them, and numbers of arrangements and partitions as counts."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, perm

from flint import arb, ctx, fmpz

from separatrix.core.errors import SizeError, Undecided
from separatrix.core.numbers.counts import Count
from separatrix.core.numbers.logs import LogSign, decimal, ln_factorial, log2_ball, log_difference

_FEW = 1 << 12
"""A product of so many factors is written out."""
_MOST_TERMS = 1 << 12
_MOST_WORK = 1 << 38
_MOST_PARTED = 1 << 13


@dataclass(frozen=True)
class Binomial(Count):
    """binomial(upper, lower), with 0 <= lower <= upper."""

    upper: int
    lower: int

    def log2_ball(self) -> arb:
        if min(self.lower, self.upper - self.lower) <= _FEW:
            return log2_ball(comb(self.upper, self.lower))
        # what cancels in the difference only widens the ball
        chosen, left_out = ln_factorial(self.lower), ln_factorial(self.upper - self.lower)
        return (ln_factorial(self.upper) - chosen - left_out) / arb.const_log2()

    def exact(self) -> int:
        return (
            int(fmpz.bin_uiui(self.upper, self.lower))
            if self.upper < 1 << 63
            else comb(self.upper, self.lower)
        )

    def __str__(self) -> str:
        return f"binomial({self.upper:,}, {self.lower:,})"


@dataclass(frozen=True)
class Arrangements(Count):
    """upper! / (upper - lower)!: lists of `lower` different things of `upper`, with 0 <= lower <=
    upper. Raises SizeError for others.
    """

    upper: int
    lower: int

    def __post_init__(self) -> None:
        if not 0 <= self.lower <= self.upper:
            raise SizeError(
                f"there are no lists of {self.lower:,} different things of {self.upper:,}"
            )

    def log2_ball(self) -> arb:
        if self.lower <= _FEW:
            return log2_ball(perm(self.upper, self.lower))
        left_out = ln_factorial(self.upper - self.lower)
        return (ln_factorial(self.upper) - left_out) / arb.const_log2()

    def exact(self) -> int:
        return perm(self.upper, self.lower)

    def __str__(self) -> str:
        return f"{self.upper:,}! / {self.upper - self.lower:,}!"


@dataclass(frozen=True)
class BinomialSum(Count):
    """The sum over j = 1..last of binomial(upper, j) * base^j, with 1 <= last <= upper and base >=
    1.

    The terms rise to one peak and then fall. Up to the peak the sum is taken from its last term
    downward, past it as (1 + base)^upper minus what is left out; both fall ever faster, so a
    geometric series bounds what is not added. Raises SizeError for other sizes.
    """

    upper: int
    last: int
    base: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.last <= self.upper or self.base < 1:
            raise SizeError(f"{self}: a sum of binomials has 1 <= last <= upper and base >= 1")

    def compare_bits(self, bits: int) -> LogSign:
        # with j = 0 and up to `upper` the sum is (base + 1)^upper; with base 1, less than half of
        # that below the middle, more from it on
        below = self.base == 1 and 2 * self.last < self.upper
        most = log_difference([(self.upper - below, self.base + 1)], bits)
        sign = (
            -1
            if most.sign <= 0
            else int(self.base == 1 and not below and self.upper > 2 and bits == self.upper - 1)
        )
        if sign == 0:
            return super().compare_bits(bits)
        with ctx.workprec(64):
            return LogSign(sign, most.method, decimal(self.log2_ball() - bits))

    def log2_ball(self) -> arb:
        # term(last) / term(last - 1) = base (upper - last + 1) / last > 1: before the peak
        if self.last < self.base * (self.upper - self.last + 1):
            return self._log2_falling(self.last, -1)
        whole = self.upper * log2_ball(self.base + 1)
        # the term of j = 0, relative to the whole
        left_out = arb(2) ** -whole
        if self.last < self.upper:
            left_out += arb(2) ** (self._log2_falling(self.last + 1, 1) - whole)
        return whole + (-left_out).log1p() / arb.const_log2()

    def _log2_falling(self, j: int, step: int) -> arb:
        """log2 of the sum of the terms j, j + step, ... down to 1 or up to `upper`, each smaller
        than the one before.
        """
        # the first term is taken out; the loop adds the others relative to it
        first = log2_ball(self.base) * j + Binomial(self.upper, j).log2_ball()
        term = arb(1)
        total = arb(0)
        rest = arb(0)
        left = j - 1 if step < 0 else self.upper - j
        for _ in range(_MOST_TERMS):
            total += term
            # binomial(u, j + 1) / binomial(u, j) = (u - j) / (j + 1), and the base once more
            up = self.base * (self.upper - min(j, j + step))
            down = max(j, j + step)
            ratio = arb(fmpz(down)) / fmpz(up) if step < 0 else arb(fmpz(up)) / fmpz(down)
            term = term * ratio
            j = j + step
            left = left - 1
            if left < 0:
                break
            # what is not added: a geometric series, or `left` + 1 terms no larger than this one
            rest = (
                arb.min(term / (1 - ratio), term * (left + 1)) if ratio < 1 else term * (left + 1)
            )
            # what is not added lies between 0 and `rest`: the ball takes in both
            if rest < arb(2) ** -ctx.prec:
                total += rest.union(0)
                break
        else:
            total += rest.union(0)
        return first + total.log() / arb.const_log2()

    def exact(self) -> int:
        """The integer itself. Raises Undecided when adding it up would take minutes."""
        above = self.upper - self.last
        work = (
            self.last**2 * (self.upper * self.base).bit_length()
            if self.last <= above
            else above * self.upper * (self.base + 1).bit_length()
        )
        if work > _MOST_WORK:
            raise Undecided(f"{self} is too large to be written out")
        if self.last <= above:
            term = fmpz(1)
            total = fmpz(0)
            for j in range(1, self.last + 1):
                # exact: the quotient is base^j binomial(upper, j)
                term = term * (self.base * (self.upper - j + 1)) // j
                total += term
            return int(total)
        term = fmpz(self.base) ** self.upper
        total = fmpz(self.base + 1) ** self.upper - 1
        for j in range(self.upper, self.last, -1):
            total -= term
            term = term * j // (self.base * (self.upper - j + 1))
        return int(total)

    def __str__(self) -> str:
        factor = "" if self.base == 1 else f" {self.base:,}^j"
        return f"sum over j = 1..{self.last:,} of binomial({self.upper:,}, j){factor}"


@dataclass(frozen=True)
class Partitions(Count):
    """S(things, groups), the Stirling numbers of the second kind: how many ways there are to part
    things into groups, with 1 <= groups <= things (SizeError otherwise).

    By inclusion and exclusion, S(n, b) b! = sum over i >= 0 of (-1)^i binomial(b, i) (b - i)^n: the
    maps from n things onto b groups. Sums that break off are in turn too large and too small
    (Bonferroni), so that two in a row enclose it. The terms are about x^i/i! of the first, where x
    = b e^(-n/b); where there are about as many groups as make most partitions, x is about 1, and a
    few dozen of them are enough.
    """

    things: int
    groups: int

    def __post_init__(self) -> None:
        if not 1 <= self.groups <= self.things:
            raise SizeError(f"{self}: there are at least 1 group and at most as many as things")

    def log2_ball(self) -> arb:
        n = self.things
        b = self.groups
        # terms relative to b^n, binomial(b, i) (1 - i/b)^n; b^n / b! comes back last
        choices = arb(1)
        total = arb(0)
        before = arb(0)
        for i in range(b):
            before = total
            power = ((1 - arb(fmpz(i)) / fmpz(b)).log() * fmpz(n)).exp()
            total += choices * power * (-1) ** i
            # the sums before and after a term lie on either side of the whole
            if i and choices * power < arb(2) ** -ctx.prec:
                total = total.union(before)
                break
            choices = choices * fmpz(b - i) / fmpz(i + 1)
        log = total.log() + arb(fmpz(b)).log() * fmpz(n) - ln_factorial(b)
        return log / arb.const_log2()

    def exact(self) -> int:
        """The integer itself. Raises Undecided for more than 8,192 things."""
        if self.things > _MOST_PARTED:
            raise Undecided(f"{self} is too large to be written out")
        return int(fmpz.stirling_s2(self.things, self.groups))

    def __str__(self) -> str:
        return f"partitions of {self.things:,} vertices into {self.groups:,} groups"
