"""Rigorous bounds for attention in IEEE float32, in exact rationals and ball arithmetic; no float
takes part.

What is assumed of the arithmetic, and nothing else (`ARITHMETIC` says it in every proof):

- products, sums, quotients, roots and fused products round to nearest: relative error u = 2^-24;
- sums run in any order;
- exp is off by at most 64 u relative (fused kernels promise 20 ulp); softmax takes it of score
  minus maximum;
- a fused softmax may rescale its running sums by exp(old maximum - new maximum), at most once per
  16 keys;
- sigmoid and elu are off by at most 8 u, softplus by at most 8 u times its size or 1; elu is at
  least -1;
- results below 2^-126 may be flushed to zero.

The forward pass itself is evaluated in `proofs/machine.py`; here are the constants it uses.

Source of gamma: Higham, Accuracy and Stability of Numerical Algorithms, section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpz

from separatrix.errors import SizeError

U = Fraction(1, 1 << 24)
"""Unit roundoff of float32."""
ARITHMETIC = (
    "IEEE float32, round to nearest, sums in any order, fused or not, below 2^-126 flushed or not;"
    " exp within 64 u; elu and gates within 8 u each; u = 2^-24"
)
_TINY = Fraction(1, 1 << 126)
_STEEPEST = Fraction(1000)
_PRECISION = 128
_DIGITS = 6
"""Of a recorded number: few enough that sums of float64 in another order give the same."""


def gamma(operations: int) -> Fraction:
    """k u / (1 - k u): the relative error of k roundings in a row. Raises SizeError when k u is
    1/2 or more.
    """
    if 2 * operations * U >= 1:
        raise SizeError(
            f"{operations:,} roundings in a row: float32 cannot bound a sum of that many terms; use"
            " a smaller n"
        )
    return operations * U / (1 - operations * U)


def exp_upper(x: Fraction) -> Fraction:
    """A rational at or above e^x. Raises SizeError for x above 1000; below -1000 it is that of
    -1000, whose digits can still be written.
    """
    if x > _STEEPEST:
        raise SizeError(
            f"e^{down(x)} bounds nothing in float32: rounding of scores exceeds their gap; use a"
            " smaller n"
        )
    with ctx.workprec(_PRECISION):
        # e^x rises, so a larger argument, and the upper end of its ball, are at or above
        return _rational(_ball(max(x, -_STEEPEST)).exp().upper())


def log_upper(x: int) -> Fraction:
    """A rational at or above ln x, for an integer x >= 1."""
    with ctx.workprec(_PRECISION):
        return _rational(arb(fmpz(x)).log().upper())


def cos_bounds(turns: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals at or below, and at or above, cos(2 pi * turns)."""
    with ctx.workprec(_PRECISION):
        # cos(2 pi turns) with pi inside the enclosure: no rounded pi enters
        ball = _ball(2 * turns).cos_pi()
        return _rational(ball.lower()), _rational(ball.upper())


def down(x: Fraction) -> str:
    """x as a decimal of at most 6 significant digits, at or below x."""
    return _decimal(x, ROUND_FLOOR)


def up(x: Fraction) -> str:
    """x as a decimal of at most 6 significant digits, at or above x."""
    return _decimal(x, ROUND_CEILING)


def averaging(keys: int) -> Fraction:
    """tau: relative error with which each weighted value, and each weight of the denominator,
    enters a computed softmax average of `keys` keys.

    `keys` additions, keys/16 rescalings of at most 66 u each, and a constant for exp, product and
    division: all below gamma(6 keys + 256).
    """
    # keys (1 + 66/16) < 6 keys; exp's 64, the product, the division and their constants < 256
    return gamma(6 * keys + 256)


def off_target(keys: int, gap: Fraction) -> Fraction:
    """Total computed weight of `keys` keys relative to the one key that scores at least `gap`
    (rounding of scores deducted) above each of them.

    exp's argument is a difference rounded by u relative, its result is off by 64 u; 2^-126 per key
    covers underflow.
    """
    # the difference of two scores may come out smaller by u relative; 256 u covers exp's 64 u and
    # the same once more for the weight it is divided by
    return keys * (exp_upper(-gap * (1 - U)) * (1 + 256 * U) + _TINY)


def mixing(keys: int, mass: Fraction) -> Fraction:
    """How far a computed average of values in [-1, 1] can be from the value of a key, if the others
    weigh `mass` relative to it.

    (v (1 + t) + sum r_j v_j (1 + t_j)) / (1 + t' + sum r_j (1 + t'_j)) - v with |t| <= tau and sum
    r_j = mass is at most (2 tau + 2 mass (1 + tau)) / (1 - tau).
    """
    tau = averaging(keys)
    # numerator: |v (t - t')| <= 2 tau, and each r_j adds at most |v_j - v| (1 + tau) <= 2 (1 + tau)
    # denominator: at least 1 - tau, since no weight is negative
    return (2 * tau + 2 * mass * (1 + tau)) / (1 - tau)


@dataclass(frozen=True, kw_only=True)
class Match:
    """A head whose output is the weight on matching keys, with a blank key in between: three kinds
    of scores, match > blank > rest.

    Keys: `earlier` keys of value 1 (each a match or a rest), the blank key and the query's own,
    both of value 0. Where the query's own key is a match its score is exact, so that it ties with
    the others; so is the score of the blank key.
    """

    earlier: int
    match_over_blank: Fraction
    blank_over_rest: Fraction
    widest: Fraction
    """Largest lead of a match over the blank key, before rounding."""
    score_error: Fraction
    """How far a score may be from what it is before rounding."""

    def gaps(self) -> tuple[Fraction, Fraction]:
        """Match over blank and blank over rest, as computed."""
        return self.match_over_blank - self.score_error, self.blank_over_rest - self.score_error

    def without(self) -> Fraction:
        """An upper bound of the output when no earlier key matches.

        The maximum may be the query's own match, `widest` above the blank key: then exp's arguments
        carry that much more rounding.
        """
        _, gap = self.gaps()
        # scores lie up to `widest` from the maximum: u of that, for this key and for the blank one
        rest = off_target(self.earlier, gap - 2 * U * (self.widest + self.score_error))
        tau = averaging(self.earlier + 2)
        return rest * (1 + tau) / (1 - tau)

    def with_match(self) -> Fraction:
        """A lower bound of the output when an earlier key matches: one match, the query's own
        beside it, the blank key and all the rest.
        """
        over, under = self.gaps()
        blank = off_target(1, over)
        rest = off_target(self.earlier, over + under)
        tau = averaging(self.earlier + 2)
        # relative to the match: itself and the query's own key weigh 1 each, more matches only help
        return (1 - tau) / ((1 + tau) * (2 + blank + rest))


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
        raise SizeError(f"an exponential of {low:g} to {high:g} bounds nothing in float32")
    with ctx.workprec(_PRECISION):
        below = float(_rational(function(arb(low)).lower()))
        over = float(_rational(function(arb(high)).upper()))
    # the two roundings to float64 are to nearest
    return math.nextafter(below, -math.inf), math.nextafter(over, math.inf)


def _ball(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


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
