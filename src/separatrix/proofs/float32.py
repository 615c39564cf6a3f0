"""Rigorous bounds for attention in IEEE float32, in exact rationals and ball arithmetic; no float
takes part.

What is assumed of the arithmetic, and nothing else (`ARITHMETIC` says it in every proof):

- products, sums and fused products round to nearest with relative error u = 2^-24;
- sums run in any order;
- softmax subtracts a maximum from the scores and takes exp, which is off by at most 64 u relative
  (fused kernels promise 20 ulp);
- a fused softmax may rescale its running sums by exp(old maximum - new maximum), at most once per
  16 keys;
- elu, sigmoid and its logarithm are off by at most 8 u absolute;
- results below 2^-126 may be flushed to zero.

Source of gamma: Higham, Accuracy and Stability of Numerical Algorithms, section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpz

from separatrix.errors import SizeError

U = Fraction(1, 1 << 24)
"""Unit roundoff of float32."""
ARITHMETIC = (
    "IEEE float32, round to nearest, sums in any order; exp of score minus maximum within 64 u; elu"
    " and gates within 8 u; u = 2^-24"
)
_TINY = Fraction(1, 1 << 126)
_STEEPEST = Fraction(1000)
_PRECISION = 128
_DIGITS = 12


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
    """x as a decimal of at most 12 significant digits, at or below x."""
    return _decimal(x, ROUND_FLOOR)


def up(x: Fraction) -> str:
    """x as a decimal of at most 12 significant digits, at or above x."""
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
class Threshold:
    """An MLP that is constant near each of its inputs: hidden units W_1 y + b_1 and outputs W_2
    h + b_2, with row sums of absolute values.
    """

    radius: Fraction
    """The MLP does not change while every coordinate of y moves by less than this."""
    up_terms: int
    up_sum: Fraction
    up_bias: Fraction
    down_terms: int
    down_sum: Fraction
    down_bias: Fraction

    def error(self, y: Fraction) -> Fraction:
        """Rounding error of its outputs, for inputs of at most y in absolute value."""
        # the bias is one more term; relu rounds nothing and enlarges no difference
        hidden = self.up_sum * y + self.up_bias
        off = gamma(self.up_terms + 1) * hidden
        return self.down_sum * off + gamma(self.down_terms + 1) * (
            self.down_sum * (hidden + off) + self.down_bias
        )


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """A head that reads one key, followed by a threshold. Maxima run over all inputs of the
    size; matrices only pick and scale by powers of two.
    """

    keys: int
    """Keys in sight, the right one included."""
    gap: Fraction
    """Smallest score of the right key minus largest score of another, exact."""
    terms: int
    """Products in a score that are not identically zero."""
    query: Fraction
    """Largest |q_c|."""
    query_gain: Fraction
    """Largest |W_Q| on coordinates that a threshold wrote before."""
    key_sum: Fraction
    """Largest sum over c of |k_c|."""
    value: Fraction
    """Largest |(W_O v)_c|."""
    threshold: Threshold
    shut: Fraction = Fraction(0)
    """Part of the output that a gate may take away."""

    def bounds(self, before: Fraction) -> FetchBounds:
        """What follows when coordinates written by earlier thresholds are off by at most
        `before`. Raises SizeError when a threshold is missed.
        """
        moved = self.query_gain * before
        # of one score: the query is off, and its products and sums are rounded
        score = self.key_sum * (moved + gamma(self.terms) * (self.query + moved))
        # the right score may come out lower and another higher
        mass = off_target(self.keys - 1, self.gap - 2 * score)
        off = self.value * (mixing(self.keys, mass) + self.shut)
        if self.gap <= 2 * score or off >= self.threshold.radius:
            raise SizeError(
                f"{self.keys:,} keys: float32 brings a fetched value up to {up(off)} off, the"
                f" threshold allows less than {down(self.threshold.radius)}; use a smaller n"
            )
        return FetchBounds(score, mass, off, self.threshold.error(self.value + off))


# sigmoid(-32) < e^-32 < 2^-46
SHUT = Fraction(1, 1 << 46) + gamma(16)
"""What a sparse layer with lambda = sigmoid(-32) or less, and compressed values of 0, takes from
the output of its selected blocks.
"""


@dataclass(frozen=True, kw_only=True)
class Carry:
    """A bounded layer whose state brings one early value to the last token, followed by a
    threshold; matrices only pick and scale.
    """

    keys: int
    """Tokens seen, the right one included."""
    others: Fraction
    """Largest computed weight of another token relative to the right one; 0 where every other
    key is exactly zero.
    """
    shrinks: Fraction
    """Upper bound of the part of the value that gates take away, and of the rounding of the
    gates.
    """
    value: Fraction
    """Largest |(W_O v)_c| that arrives."""
    threshold: Threshold

    def bounds(self) -> FetchBounds:
        """Raises SizeError when the threshold is missed."""
        mass = (self.keys - 1) * self.others
        off = self.value * (self.shrinks + (mixing(self.keys, mass) if mass else 0))
        if off >= self.threshold.radius:
            raise SizeError(
                f"{self.keys:,} tokens: what is carried arrives up to {up(off)} off, too much for"
                " the threshold; use a smaller n"
            )
        return FetchBounds(Fraction(0), mass, off, self.threshold.error(self.value + off))


ELU_OFF = 32 * U
"""elu(x) + 1 as computed, at x = -64, relative to its value at 0, over any number of equal
features.
"""
GATES_OFF = gamma(256) + Fraction(1, 1 << 45)
"""Gated DeltaNet, one write and one read: unit lengths, the gate b = 1/2, decays of sigmoid(32)
> 1 - 2^-46, at most 256 roundings.
"""


@dataclass(frozen=True)
class FetchBounds:
    """Upper bounds: rounding error of a score, weight off the target, error of the fetched
    value, and error after the threshold.
    """

    score_error: Fraction
    mass: Fraction
    fetch_error: Fraction
    clean_error: Fraction


@dataclass(frozen=True, kw_only=True)
class Match:
    """A head whose output is the weight on matching keys, with a blank key in between: three kinds
    of scores, match > blank > rest.

    Keys: `earlier` keys of value `value` (each a match or a rest), the blank key and the query's
    own, both of value 0. Where the query's own key is a match its score is exact, so that it ties
    with the others.
    """

    earlier: int
    match_over_blank: Fraction
    blank_over_rest: Fraction
    widest: Fraction
    """Largest exact lead of a match over the blank key."""
    terms: int
    """Products in a score that are not identically zero; the score of the blank key is exact."""
    products: Fraction
    """Largest sum of their absolute values."""
    value: Fraction
    threshold: Fraction

    def score_error(self) -> Fraction:
        return gamma(self.terms) * self.products

    def gaps(self) -> tuple[Fraction, Fraction]:
        """Match over blank and blank over rest, as computed."""
        return self.match_over_blank - self.score_error(), self.blank_over_rest - self.score_error()

    def without(self) -> Fraction:
        """An upper bound of the output when no earlier key matches.

        The maximum may be the query's own match, `widest` above the blank key: then exp's arguments
        carry that much more rounding.
        """
        _, gap = self.gaps()
        # scores lie up to `widest` from the maximum: u of that, for this key and for the blank one
        rest = off_target(self.earlier, gap - 2 * U * (self.widest + self.score_error()))
        tau = averaging(self.earlier + 2)
        return self.value * rest * (1 + tau) / (1 - tau)

    def with_match(self) -> Fraction:
        """A lower bound of the output when an earlier key matches: one match, the query's own
        beside it, the blank key and all the rest.
        """
        over, under = self.gaps()
        blank = off_target(1, over)
        rest = off_target(self.earlier, over + under)
        tau = averaging(self.earlier + 2)
        # relative to the match: itself and the query's own key weigh 1 each, more matches only help
        return self.value * (1 - tau) / ((1 + tau) * (2 + blank + rest))

    def margin(self) -> Fraction:
        """A lower bound of the lead of the right logit; the logits are (threshold, output), both
        exact.
        """
        return min(self.threshold - self.without(), self.with_match() - self.threshold)


@dataclass(frozen=True, kw_only=True)
class Readout:
    """The head: logits W x + b over coordinates of at most `value`; `gap` is the smallest lead
    of the right logit, exact.
    """

    gap: Fraction
    terms: int
    row_sum: Fraction
    bias: Fraction
    value: Fraction

    def margin(self, before: Fraction) -> Fraction:
        """A lower bound of the lead of the right logit as computed, when coordinates are off by
        at most `before`.
        """
        size = self.row_sum * (self.value + before) + self.bias
        # two logits, each off by what its coordinates are off and by the rounding of its sum
        return self.gap - 2 * (self.row_sum * before + gamma(self.terms + 1) * size)


def _ball(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


def _rational(x: arb) -> Fraction:
    """An end of a ball, a dyadic number, exactly."""
    mantissa, exponent = x.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _decimal(x: Fraction, rounding: str) -> str:
    """x with 12 significant digits, rounded towards one side."""
    with localcontext() as context:
        context.prec = _DIGITS
        context.rounding = rounding
        context.Emin = -(10**9)
        context.Emax = 10**9
        # integers are taken as they are: the division is the only rounding
        value = (Decimal(x.numerator) / Decimal(x.denominator)).normalize()
    plain = Fraction(1, 10**6) <= abs(x) < 10**12 or x == 0
    return format(value, "f" if plain else "e")
