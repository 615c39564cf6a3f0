"""Comparisons of logarithms that can be trusted.

A verdict compares 2^bits with a product of integer powers. Where the powers are small both sides
are written out as integers; otherwise ball arithmetic encloses the difference of the logarithms
until zero is excluded. No float decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from flint import arb, ctx, fmpz

from separatrix.core.errors import SizeError, Undecided

EXACT_BITS = 1 << 14
"""Powers up to this many bits are compared as integers."""
LARGEST_EXACT = 1 << 27
PRECISIONS = (64, 128, 256, 1024, 4096, 16384)
Method = Literal["integers", "balls"]


@dataclass(frozen=True)
class LogSign:
    """The certified sign of a difference of logarithms, how it was settled, and the difference
    itself in bits (a decimal enclosure).
    """

    sign: int
    method: Method
    difference: str

    @property
    def positive(self) -> bool:
        return self.sign > 0


def log2_ball(x: int) -> arb:
    """An enclosure of log2 x at the precision in force."""
    return arb(fmpz(x)).log() / arb.const_log2()


def ln_factorial(x: int) -> arb:
    """An enclosure of ln x!, which is lgamma(x + 1), at the precision in force."""
    return arb(fmpz(x + 1)).lgamma()


def decimal(ball: arb) -> str:
    """A ball for people: twelve digits and the radius."""
    return ball.str(12, radius=True)


def log_difference(terms: Sequence[tuple[int, int]], bits: int) -> LogSign:
    """The sign of sum(c * log2(x) for c, x in terms) - bits, certified.

    `terms` holds (integer coefficient, positive integer) pairs; `bits` is an integer. Integers are
    used while every power has at most `EXACT_BITS` bits, for ties up to 2^27 bits, and at any size
    where the odd parts of the x cancel (powers of two, mostly); ball arithmetic otherwise. Raises
    SizeError for a non-positive integer under a logarithm and Undecided when the largest precision
    leaves the sign open.
    """
    terms = [(c, x) for c, x in terms if c and x != 1]
    if any(x < 1 for _, x in terms):
        raise SizeError(f"logarithm of a non-positive integer in {terms}")
    size = abs(bits) + sum(abs(c) * x.bit_length() for c, x in terms)
    whole = _whole_bits(terms)
    if whole is not None:
        # both sides are integers of bits: a precision that holds their difference shows it exactly
        with ctx.workprec(max(64, (whole - bits).bit_length() + 1)):
            shown = decimal(arb(whole - bits))
        return LogSign((whole > bits) - (whole < bits), "integers", shown)
    found = settled(
        lambda: sum((c * log2_ball(x) for c, x in terms), arb(0)) - bits,
        lambda: _exact_sign(terms, bits),
        size,
    )
    if found is None:
        raise Undecided(
            f"the sign of a difference of logarithms near 2^{size.bit_length()} bits is open at"
            f" {PRECISIONS[-1]} bits of precision"
        )
    return found


def settled(ball: Callable[[], arb], exact: Callable[[], int], size: int) -> LogSign | None:
    """The sign of a difference, from its enclosure at the precision in force or by integers of
    about `size` bits; None where neither tells.
    """
    if size > EXACT_BITS:
        # balls grow as they are added up; a sign is certain once the ball excludes zero
        for precision in PRECISIONS:
            with ctx.workprec(precision):
                found = ball()
                if found > 0 or found < 0:
                    return LogSign(1 if found > 0 else -1, "balls", decimal(found))
    # no precision tells a tie from a tiny difference: integers do, where they can be written
    if size > LARGEST_EXACT:
        return None
    with ctx.workprec(64):
        return LogSign(exact(), "integers", decimal(ball()))


def floored(number: Callable[[], arb]) -> int | None:
    """A number rounded down; None where the largest precision leaves two integers."""
    for precision in PRECISIONS:
        with ctx.workprec(precision):
            floor = number().floor().unique_fmpz()
        if floor is not None:
            return int(floor)
    return None


def _whole_bits(terms: Sequence[tuple[int, int]]) -> int | None:
    """sum(c * log2(x)) where it is an integer because the odd parts of the x cancel; None where
    they do not.
    """
    odd: dict[int, int] = {}
    whole = 0
    for c, x in terms:
        # x = 2^twos times an odd number; x & -x keeps the lowest bit that is set
        twos = (x & -x).bit_length() - 1
        whole += c * twos
        odd[x >> twos] = odd.get(x >> twos, 0) + c
    return whole if all(x == 1 or not c for x, c in odd.items()) else None


def _exact_sign(terms: Sequence[tuple[int, int]], bits: int) -> int:
    """The sign by integers: powers with a negative exponent go to the other side."""
    left = fmpz(1)
    right = fmpz(1)
    for c, x in (*terms, (-bits, 2)):
        if c > 0:
            left *= fmpz(x) ** c
        elif c < 0:
            right *= fmpz(x) ** -c
    return (left > right) - (left < right)
