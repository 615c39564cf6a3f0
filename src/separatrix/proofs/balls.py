"""Ball arithmetic (python-flint) and exact rationals: ends of enclosures, as rationals, float64 or
decimals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpz

from separatrix.core.errors import SizeError

_STEEPEST = Fraction(1000)
_PRECISION = 128
_DIGITS = 6
"""Of a recorded number: few enough that sums of float64 in another order give the same."""


def exp_upper(x: Fraction) -> Fraction:
    """A rational at or above e^x. Raises SizeError for x above 1000; below -1000 it is that of
    -1000, whose digits can still be written.
    """
    if x > _STEEPEST:
        raise SizeError(
            f"e^{down(x)} bounds nothing: rounding of scores exceeds their gap; use a smaller n"
        )
    with ctx.workprec(_PRECISION):
        # e^x rises, so a larger argument, and the upper end of its ball, are at or above
        x = max(x, -_STEEPEST)
        return _rational(arb(fmpq(x.numerator, x.denominator)).exp().upper())


def log_upper(x: int) -> Fraction:
    """A rational at or above ln x, for an integer x >= 1."""
    with ctx.workprec(_PRECISION):
        return _rational(arb(fmpz(x)).log().upper())


def down(x: Fraction) -> str:
    """x as a decimal of at most 6 significant digits, at or below x."""
    return _decimal(x, ROUND_FLOOR)


def up(x: Fraction) -> str:
    """x as a decimal of at most 6 significant digits, at or above x."""
    return _decimal(x, ROUND_CEILING)


def exp_bounds(low: float, high: float) -> tuple[float, float]:
    """At or below e^low, and at or above e^high."""
    return _image(lambda x: x.exp(), low, high)


def sigmoid_bounds(low: float, high: float) -> tuple[float, float]:
    """At or below sigmoid(low), and at or above sigmoid(high)."""
    return _image(lambda x: 1 / (1 + (-x).exp()), low, high)


def softplus_bounds(low: float, high: float) -> tuple[float, float]:
    """At or below ln(1 + e^low), and at or above ln(1 + e^high)."""
    return _image(lambda x: (1 + x.exp()).log(), low, high)


def _image(function: Callable[[arb], arb], low: float, high: float) -> tuple[float, float]:
    """Of a function that rises: enclosing float64 numbers."""
    if max(abs(low), abs(high)) > _STEEPEST:
        raise SizeError(f"an exponential of {low:g} to {high:g} bounds nothing")
    with ctx.workprec(_PRECISION):
        below = float(_rational(function(arb(low)).lower()))
        over = float(_rational(function(arb(high)).upper()))
    # the two roundings to float64 are to nearest
    return math.nextafter(below, -math.inf), math.nextafter(over, math.inf)


def _rational(x: arb) -> Fraction:
    """An end of a ball, a dyadic number, exactly."""
    mantissa, exponent = x.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _decimal(x: Fraction, rounding: str) -> str:
    """x with 6 significant digits, rounded towards one side."""
    with localcontext() as context:
        context.prec = _DIGITS
        context.rounding = rounding
        context.Emin = -(10**9)
        context.Emax = 10**9
        # integers are taken as they are: the division is the only rounding
        value = (Decimal(x.numerator) / Decimal(x.denominator)).normalize()
    plain = Fraction(1, 10**6) <= abs(x) < 10**12 or x == 0
    return format(value, "f" if plain else "e")
