"""Counts too large to write: exact numbers, powers, products and sums of them, each with a
certified comparison to 2^bits.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import prod

from flint import arb, ctx

from separatrix.core.errors import SizeError, Undecided
from separatrix.core.numbers.logs import (
    LARGEST_EXACT,
    PRECISIONS,
    LogSign,
    decimal,
    floored,
    log2_ball,
    log_difference,
    settled,
)


class Count:
    """An exact positive integer that may be too large to write: it can always be compared with a
    power of two, with certainty.
    """

    @abstractmethod
    def log2_ball(self) -> arb:
        """An enclosure of the logarithm at the precision in force."""

    @abstractmethod
    def exact(self) -> int:
        """The integer itself, whatever its size."""

    @abstractmethod
    def __str__(self) -> str: ...

    def compare_bits(self, bits: int) -> LogSign:
        """The certified sign of log2(self) - bits. Raises Undecided as `log_difference` does."""
        with ctx.workprec(64):
            own = int(self.log2_ball().upper().ceil().unique_fmpz() or LARGEST_EXACT)

        def sign() -> int:
            value, power = self.exact(), 1 << bits
            return (value > power) - (value < power)

        found = settled(lambda: self.log2_ball() - bits, sign, max(own, bits))
        if found is None:
            raise Undecided(
                f"whether {self} exceeds 2^{bits} is open at {PRECISIONS[-1]} bits of precision"
            )
        return found

    def exceeds_bits(self, bits: int) -> bool:
        """Whether self > 2^bits, certified."""
        return self.compare_bits(bits).positive

    def ceil_log2(self) -> int:
        """The number of bits that number the classes: the smallest b with self <= 2^b. Raises
        Undecided as `compare_bits` does.
        """
        # balls tell the nearest integer, unless the count is a power of sqrt(2) that is none of 2
        nearest = floored(lambda: self.log2_ball() + arb(0.5))
        if nearest is None:
            raise Undecided(
                f"the logarithm of {self} is open at {PRECISIONS[-1]} bits of precision"
            )
        return nearest + self.exceeds_bits(nearest)

    def log2_str(self, digits: int = 8) -> str:
        """A decimal enclosure of log2."""
        with ctx.workprec(128):
            return self.log2_ball().str(digits, radius=False)


@dataclass(frozen=True)
class Exact(Count):
    """A count written out; `form` is the formula it came from, for people."""

    value: int
    form: str = ""

    def log2_ball(self) -> arb:
        return log2_ball(self.value)

    def exact(self) -> int:
        return self.value

    def __str__(self) -> str:
        return self.form or f"{self.value:,}"


@dataclass(frozen=True)
class Power(Count):
    """base^exponent."""

    base: int
    exponent: int

    def compare_bits(self, bits: int) -> LogSign:
        return log_difference([(self.exponent, self.base)], bits)

    def log2_ball(self) -> arb:
        return self.exponent * log2_ball(self.base)

    def exact(self) -> int:
        return self.base**self.exponent

    def __str__(self) -> str:
        return f"{self.base:,}" + f"^{self.exponent:,}" * (self.exponent != 1)


@dataclass(frozen=True)
class AlternatePowers(Count):
    """The sum of base^j over 0 <= j <= last of the parity of last, and `plus` more. Raises
    SizeError for base < 1, last < 0 or plus < 0.
    """

    base: int
    last: int
    plus: int = 0

    def __post_init__(self) -> None:
        if self.base < 1 or self.last < 0 or self.plus < 0:
            raise SizeError(f"{self}: a sum of powers has base >= 1, last >= 0 and plus >= 0")

    def log2_ball(self) -> arb:
        if self.base == 1:
            return log2_ball(self.last // 2 + 1 + self.plus)
        # base^last (1 + base^-2 + ...), a geometric series of last // 2 + 1 terms
        log_base = log2_ball(self.base)
        series = (1 - arb(2) ** (-log_base * 2 * (self.last // 2 + 1))) / (
            1 - arb(2) ** (-2 * log_base)
        )
        top = self.last * log_base + series.log() / arb.const_log2()
        # log2(a + plus) = log2 a + log2(1 + plus / a), where a may be too large to write
        return top + (self.plus * arb(2) ** -top).log1p() / arb.const_log2()

    def exact(self) -> int:
        if self.base == 1:
            return self.last // 2 + 1 + self.plus
        # a geometric series of ratio base^2 from base^(last % 2) on
        return self.plus + (self.base ** (self.last + 2) - self.base ** (self.last % 2)) // (
            self.base**2 - 1
        )

    def __str__(self) -> str:
        first = f"{self.plus:,} + " if self.plus else ""
        return (
            f"{first}sum over j = {self.last % 2}, {self.last % 2 + 2}, ..., {self.last:,} of"
            f" {self.base:,}^j"
        )


@dataclass(frozen=True)
class Product(Count):
    """A product of counts. Raises SizeError for none."""

    factors: tuple[Count, ...]

    def __post_init__(self) -> None:
        if not self.factors:
            raise SizeError("a product of counts has at least one factor")

    def log2_ball(self) -> arb:
        return sum((count.log2_ball() for count in self.factors), arb(0))

    def exact(self) -> int:
        return prod(count.exact() for count in self.factors)

    def __str__(self) -> str:
        return " x ".join(str(count) for count in self.factors)


@dataclass(frozen=True)
class OneMoreThanPower(Count):
    """2^exponent + 1. Raises SizeError for exponent < 1."""

    exponent: int

    def __post_init__(self) -> None:
        if self.exponent < 1:
            raise SizeError(f"{self}: the exponent is at least 1")

    def compare_bits(self, bits: int) -> LogSign:
        # no power of two lies strictly between 2^exponent and 2^exponent + 1, nor is the latter one
        sign = 1 if self.exponent >= bits else -1
        with ctx.workprec(64):
            return LogSign(sign, "integers", decimal(self.log2_ball() - bits))

    def log2_ball(self) -> arb:
        return self.exponent + (arb(2) ** -self.exponent).log1p() / arb.const_log2()

    def exact(self) -> int:
        return (1 << self.exponent) + 1

    def __str__(self) -> str:
        return f"2^{self.exponent:,} + 1"


@dataclass(frozen=True)
class Sum(Count):
    """A sum of counts, each taken a positive number of times: (times, count) pairs."""

    terms: tuple[tuple[int, Count], ...]

    def __post_init__(self) -> None:
        if not self.terms or any(times < 1 for times, _ in self.terms):
            raise SizeError("a sum of counts has at least one term, each taken at least once")

    def log2_ball(self) -> arb:
        logs = [log2_ball(times) + count.log2_ball() for times, count in self.terms]
        # with the largest taken out, no power in the sum is much above 1
        largest = max((ball.mid() for ball in logs), key=lambda middle: (middle.upper(),))
        return (
            largest
            + sum((arb(2) ** (ball - largest) for ball in logs), arb(0)).log() / arb.const_log2()
        )

    def exact(self) -> int:
        return sum(times * count.exact() for times, count in self.terms)

    def __str__(self) -> str:
        # a number needs no brackets
        texts = ((times, str(count)) for times, count in self.terms)
        inner = ((times, f"({text})" if " " in text else text) for times, text in texts)
        return " + ".join(text if times == 1 else f"{times:,} x {text}" for times, text in inner)
