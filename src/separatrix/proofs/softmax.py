"""Rigorous bounds for softmax attention as computed, in exact rationals and ball arithmetic; no
float takes part.

What is assumed of an arithmetic (`Arithmetic.said` prints it in every proof), with u its unit
roundoff inside sums:

- products, sums, quotients, roots and fused products round to nearest: relative error u, and no
  sum of two numbers is further off than either of them;
- sums run in any order;
- exp is off by at most 64 u relative (fused kernels promise 20 ulp; 2 u where every operation is
  rounded by itself), and exp(0), by which running sums are rescaled, is 1; softmax takes it of
  score minus maximum;
- a fused softmax may rescale its running sums by exp(old maximum - new maximum), at most once per
  16 keys;
- the weights that multiply values, the largest of them being 1, may be rounded to the format that
  numbers are stored in;
- results below the smallest normal number may be flushed to zero.

Two bounds of an average: one for any, whose error grows with the number of keys, and one where a
single key outweighs the others together, whose error is that of a few roundings and of the others'
mass, however many they are. And of the weight of a key that ties with c matches: 1/(1 + c).

Sources: Higham, Accuracy and Stability of Numerical Algorithms, section 3.1 (gamma) and section
4.2 (sums of non-negative numbers).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from separatrix.core.errors import CheckFailed, SizeError
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.balls import exp_upper
from separatrix.proofs.machine import above


def gamma(operations: int, u: Fraction = FP32.summed) -> Fraction:
    """k u / (1 - k u): the relative error of k roundings in a row. Raises SizeError when k u is
    1/2 or more.
    """
    if 2 * operations * u >= 1:
        raise SizeError(
            f"{operations:,} roundings in a row of a relative error of {u} bound nothing; use a"
            " smaller n"
        )
    return operations * u / (1 - operations * u)


def exponent(keys: int, arithmetic: Arithmetic) -> Fraction:
    """A number a such that every term enters a computed sum over so many keys, and its quotient,
    times a factor from e^-a to e^a.

    One addition per key, its rescalings (exp and two roundings for every 16 keys), and a few more
    operations. A rounding is a factor from 1 - u to 1 + u, and 1 - u >= e^(-u - u^2).
    """
    each = Fraction(1)
    few = 16
    if arithmetic.rescaled:
        each += Fraction(arithmetic.exp_units + 2, 16)
        few += 4 * arithmetic.exp_units
    return (each * keys + few) * arithmetic.summed * (1 + arithmetic.summed)


def growth(keys: int, arithmetic: Arithmetic) -> Fraction:
    """By what factor a computed sum over so many keys, none of them negative, may be too large.
    Raises SizeError where it is beyond e^1000.
    """
    return exp_upper(exponent(keys, arithmetic))


def averaging(keys: int, arithmetic: Arithmetic = FP32) -> Fraction:
    """tau: relative error with which each weighted value, and each weight of the denominator,
    enters a computed softmax average of `keys` keys.
    """
    return growth(keys, arithmetic) - 1


def off_target(keys: int, gap: Fraction, arithmetic: Arithmetic = FP32) -> Fraction:
    """Total computed weight of `keys` keys relative to the one key that scores at least `gap`
    (rounding of scores deducted) above each of them.

    exp's argument is a difference rounded by u relative; what underflows is at most the smallest
    normal number per key.
    """
    u = arithmetic.summed
    # the weight itself and the one it is divided by: (1 + e) / (1 - e) <= 1 + 4 e for e <= 1/2
    off = 4 * arithmetic.exp_units * u
    tiny = Fraction(arithmetic.summed_tiny)
    return keys * (exp_upper(-gap * (1 - u)) * (1 + off) + tiny)


def mixing(keys: int, mass: Fraction, arithmetic: Arithmetic = FP32) -> Fraction:
    """How far a computed average of values in [-1, 1] can be from the value of a key, if the others
    weigh `mass` relative to it; for mass 0, from some true average of the values.
    """
    if mass == 0:
        return _any_average(keys, arithmetic)
    return min(
        _any_average(keys, arithmetic) + 2 * mass,
        _outweighed(keys, mass, arithmetic),
    )


def _any_average(keys: int, arithmetic: Arithmetic) -> Fraction:
    """sum w_j v_j f_j / (sum w_j f), each f_j and f from e^-a to e^a, is off by at most the largest
    |f_j / f - 1| <= e^2a - 1.
    """
    twice = 2 * exponent(keys, arithmetic)
    lost = Fraction(0)
    if arithmetic.narrowed:
        # weights, the largest of them 1, are rounded, or flushed to zero
        twice += 2 * arithmetic.stored
        lost = min(Fraction(2), 2 * keys * Fraction(arithmetic.tiny))
    return exp_upper(twice) - 1 + lost


def _outweighed(keys: int, mass: Fraction, arithmetic: Arithmetic) -> Fraction:
    """The same where the weight of one key, w, stands against mass r of all others together.

    Of the sums with which the key's own is added up, each is at most its part of r e^a; the error
    of such an addition is no larger, since the key's sum by itself is a number of the format. So
    the denominator is w (1 + s), 0 <= s <= 2 r e^a, the numerator w (v + e), |e| <= 2 r e^a, and a
    few roundings are left: of the products, the quotient and its factors.
    """
    u = arithmetic.summed
    few = 8 * u
    weight = Fraction(0)
    others = 2 * mass * growth(keys, arithmetic)
    if arithmetic.narrowed:
        # to nearest, a weight that is rounded is never off by more than itself
        others *= 2
        off = arithmetic.exp_units * u
        # within half the distance of numbers below 1 the weight is rounded to 1 exactly
        exact = off + others + few < arithmetic.stored / 2
        weight = 2 * off if exact else 2 * arithmetic.stored
    return few + weight + 2 * others * (1 + few + weight)


def _weight(arithmetic: Arithmetic) -> Fraction:
    """The relative error of a weight that may be stored."""
    return 2 * arithmetic.stored if arithmetic.narrowed else Fraction(0)


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
    arithmetic: Arithmetic = FP32

    def gaps(self) -> tuple[Fraction, Fraction]:
        """Match over blank and blank over rest, as computed."""
        return self.match_over_blank - self.score_error, self.blank_over_rest - self.score_error

    def without(self) -> Fraction:
        """An upper bound of the output when no earlier key matches.

        The maximum may be the query's own match, `widest` above the blank key: then exp's arguments
        carry that much more rounding. The denominator is at least its largest term, since sums of
        numbers that are not negative never fall.
        """
        _, gap = self.gaps()
        u = self.arithmetic.summed
        # scores lie up to `widest` from the maximum: u of that, for this key and for the blank one
        gap -= 2 * u * (self.widest + self.score_error)
        rest = off_target(self.earlier, gap, self.arithmetic)
        grown = growth(self.earlier + 2, self.arithmetic)
        return rest * grown * (1 + _weight(self.arithmetic))

    def with_match(self) -> Fraction:
        """A lower bound of the output when an earlier key matches: matches, the query's own beside
        them or not, the blank key and all the rest.

        Nothing but matches makes the numerator larger, and what else stands in the denominator
        makes it larger by twice its own mass at most. Where the query's own key matches, m matches
        weigh 1 each and it weighs 1: the bound is concave in m up to one match in 16 keys, the most
        often that sums are rescaled, and from there on, so that it is smallest at an end. Where it
        does not, the heaviest match weighs 1, and others add to both sums.
        """
        over, under = self.gaps()
        keys = self.earlier + 1
        blank = off_target(1, over, self.arithmetic)
        rest = off_target(keys, over + under, self.arithmetic)
        every = growth(keys + 1, self.arithmetic) ** 2
        beside = 2 * (blank + rest) * growth(keys + 1, self.arithmetic)
        ends = [1 / (every * (1 + beside))]
        for matches, sums in (
            (1, 32),
            (-(-self.earlier // 16), keys + 48),
            (self.earlier, keys + 1),
        ):
            lost = growth(sums, self.arithmetic) ** 2
            ends.append(matches / (lost * (matches + 1 + beside)))
        # of few keys nothing is lost by counting every rounding as one of all sums
        plain = 1 / (every * (2 + blank + rest))
        return max(plain, min(ends)) * (1 - _weight(self.arithmetic))


_FEW = 32


@dataclass(frozen=True, kw_only=True)
class Tie:
    """A softmax over at most `keys` keys, one of which is counted with: its score, and those of the
    matches, are the same number, which is not rounded; all others lose by `gap` at least.

    Sums of c matches pass c roundings; what else they take in makes them larger by twice its own
    mass at most.
    """

    keys: int
    gap: Fraction
    arithmetic: Arithmetic = FP32

    @property
    def mass(self) -> Fraction:
        """What all others weigh, relative to the one."""
        return off_target(self.keys, self.gap, self.arithmetic)

    def least(self, matches: int) -> Fraction:
        """A lower bound of the computed weight of the one with exactly so many matches."""
        lost = growth(matches + _FEW, self.arithmetic)
        others = 2 * self.mass * growth(self.keys, self.arithmetic)
        return (1 - _weight(self.arithmetic)) / (lost**2 * (1 + matches + others))

    def most(self, matches: int) -> Fraction:
        """An upper bound of it with so many matches or more."""
        lost = growth(matches + _FEW, self.arithmetic)
        return (1 + _weight(self.arithmetic)) * lost**2 / (1 + matches)


@dataclass(frozen=True)
class Share:
    """The weight of a key that ties with others: 1/k up to a relative error, k keys tying."""

    mass: Fraction
    """What all others weigh, relative to one that ties."""
    off: float


def exact_share(keys: int, gap: Fraction, arithmetic: Arithmetic) -> Share:
    """The weight of one of k keys of the same score, which is not rounded, among so many whose
    others lose by `gap`, where exp(0) is 1: each that ties weighs exactly 1, and a partial sum of
    some of these and of others is rounded to the number of the former.

    Raises CheckFailed where the others weigh too much for that, or so many ones are not counted.
    """
    tie = Tie(keys=keys, gap=gap, arithmetic=arithmetic)
    u = arithmetic.summed
    others = 2 * tie.mass * growth(keys, arithmetic)
    # numbers above 1 are 2 u apart
    if others >= u or keys * u > 1:
        raise CheckFailed(
            f"{keys:,} keys: sums of ones may be rounded in {arithmetic.name}; use a smaller n"
        )
    # a product with the value, a quotient or a reciprocal and a product; a weight that is stored
    few = 4 * u + _weight(arithmetic)
    return Share(tie.mass, above(few))


def even_share(keys: int, rivals: int, gap: Fraction, arithmetic: Arithmetic) -> Fraction:
    """By what share of itself an average over so many keys may be off, of values that are 0 or one
    power of two, where all scores are exactly 0 and `rivals` more, of a value of 0, lose by `gap`.

    Each weighs 1, and the denominator is their number k (`exact_share`). Of a power of two the
    reciprocal is a number, and so is every sum of it: nothing is rounded. Else each weight is off
    by a few roundings, and each partial sum by u of itself: those of c terms add up to c (c + 1)/2
    terms at most, when they are added one by one. Where the kernel divides last its sums are exact.
    Raises CheckFailed where weights do not tie, or may be flushed to zero.
    """
    share = exact_share(keys + rivals, gap, arithmetic)
    if 4 * keys * Fraction(arithmetic.tiny) > 1:
        raise CheckFailed(f"{keys:,} keys: a weight may be flushed to zero in {arithmetic.name}")
    if keys & (keys - 1) == 0:
        return Fraction(0)
    added = gamma(keys, arithmetic.summed) * Fraction(keys + 1, 2 * keys)
    return added + Fraction(share.off) * (1 + added)
