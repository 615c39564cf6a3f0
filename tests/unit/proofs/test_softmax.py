"""Bounds of float32 arithmetic against the worst cases they are about."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from support.each import each

from separatrix.proofs.arithmetic import FP32, arithmetic
from separatrix.proofs.softmax import Match, averaging, growth, mixing, off_target

U = FP32.summed


@each("keys", [1, 2, 100, 5000])
@each("mass", [Fraction(0), Fraction(1, 7), Fraction(3)])
def test_mixing_bounds_every_corner_and_wastes_next_to_nothing(keys: int, mass: Fraction) -> None:
    """One other key of weight `mass` and value -1 or 1, every factor of a term at one of its two
    extremes e^a and e^-a.
    """
    most = averaging(keys) + 1
    worst = max(
        abs((v * t + mass * w * s) / (t_ + mass * s_) - v)
        for v, w in product((Fraction(-1), Fraction(1)), repeat=2)
        for t, s, t_, s_ in product((1 / most, most), repeat=4)
    )
    # e^2a and the square of e^a are rounded up apart
    assert worst <= mixing(keys, mass) * (1 + Fraction(1, 10**20))
    # the others' mass counts as if the key's own weight were all of the denominator
    assert mixing(keys, mass) <= worst * (1 + mass) * most**2


def test_one_key_that_outweighs_all_others_is_read_whatever_their_number() -> None:
    """8 u of roundings, and 4 times the others' mass, which sums of so many may have made larger by
    a factor e^(5.125 n u): e^0.32 at 2^20 keys, e^5.2 at 2^24, e^82 at 2^28.
    """
    mass = Fraction(1, 10**9)
    for keys, factor in ((1 << 10, 1.0005), (1 << 20, 1.38), (1 << 24, 170)):
        found = mixing(keys, mass)
        assert 8 * U < found < 8 * U + 4 * mass * Fraction(factor)
    # many roundings, and no mass: any average of so many keys
    assert mixing(1 << 24, Fraction(0)) > 1000


def worst_sum(numbers: list[Fraction], u: Fraction) -> Fraction:
    """The largest that their sum in this order may be, each sum off as far as may be: by u, and by
    no more than the smaller of both.
    """
    total = numbers[0]
    for number in numbers[1:]:
        exact = total + number
        total = exact + min(exact * u, total, number)
    return total


@pytest.mark.parametrize("first", [True, False])
def test_a_sum_that_one_number_dominates_is_off_by_twice_the_others(first: bool) -> None:
    """With u = 1/16, by far too coarse for 400 keys: every addition as wrong as it may be."""
    coarse = arithmetic("p12")
    others = [Fraction(1, 10**6)] * 400
    dominating = [Fraction(1)]
    total = worst_sum(dominating + others if first else others + dominating, coarse.summed)
    mass = sum(others, Fraction(0))
    assert total <= 1 + 2 * mass * growth(400, coarse)
    # the bound by roundings alone: (1 + u)^400
    assert total < (1 + coarse.summed) ** 400 / 10**9


def test_averaging_counts_its_roundings() -> None:
    """16 keys: 16 additions, one rescaling of 66 u, and a constant; 2 u where exp is within 2 u
    and nothing is rescaled.
    """
    for keys, terms, name in ((16, 82, "fp32"), (160, 820, "fp64"), (16, 16, "p20")):
        some = arithmetic(name)
        least = (1 + some.summed) ** terms - 1
        assert least < averaging(keys, some) < least + 300 * some.summed


@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_weights_of_values_are_rounded_in_half_formats(name: str) -> None:
    """A weight within half the distance of two numbers of 1 is 1; others are off by u."""
    half = arithmetic(name)
    assert mixing(100, Fraction(1, 10**9), half) < 300 * U
    assert half.stored < mixing(100, Fraction(1, 100), half) < 4 * half.stored + Fraction(9, 100)


@pytest.mark.parametrize("gap", [Fraction(1, 2), Fraction(32), Fraction(60)])
def test_off_target_counts_the_errors_of_exp(gap: Fraction) -> None:
    """The argument comes out smaller by u, exp larger by 64 u, and the weight it is divided by
    smaller by 64 u.
    """
    exact = Fraction(math.exp(-gap)) * (1 + gap * U)
    found = off_target(3, gap)
    assert 3 * exact * (1 + 128 * U) <= found <= 3 * exact * (1 + 300 * U)
    assert off_target(3, Fraction(900)) >= 3 * Fraction(1, 1 << 126)


def test_match_by_hand() -> None:
    """Gaps of 5 and 4, 1 off: 2 earlier keys weigh 2 e^-3 without a match. With one, the match and
    the query's own weigh 1 each, the blank key e^-4, the rest at most 3 e^-7.
    """
    match = Match(
        earlier=2,
        match_over_blank=Fraction(5),
        blank_over_rest=Fraction(4),
        widest=Fraction(1000),
        score_error=Fraction(1),
    )
    assert match.gaps() == (4, 3)
    # scores 1,001 from the maximum: 2,002 u more in the exponent
    without = 2 * Fraction(math.exp(-3)) * (1 + 2002 * U)
    assert without <= match.without() <= without * (1 + 1000 * U)
    below = 2 + Fraction(math.exp(-4)) + 3 * Fraction(math.exp(-7))
    exact = 1 / below
    assert exact * (1 - 2000 * U) <= match.with_match() <= exact


def test_a_match_among_a_million_keys() -> None:
    """Gaps of ln(8n) leave n e^-G = 1/8 without a match, and e^0.32 of it in the worst sum; n
    matches are (1 + 1/n)^-1, less e^0.64 in the worst sums; the threshold lies between.
    """
    n = 1 << 20
    gap = Fraction(math.log(8 * n))
    match = Match(
        earlier=n,
        match_over_blank=gap,
        blank_over_rest=gap,
        widest=gap,
        score_error=Fraction(0),
    )
    assert match.without() == pytest.approx(math.exp(5.125 * n * 2.0**-24) / 8, rel=1e-4)
    assert match.with_match() == pytest.approx(1 / 2, rel=1e-4)
    more = Match(
        earlier=4 * n,
        match_over_blank=gap,
        blank_over_rest=gap,
        widest=gap,
        score_error=Fraction(0),
    )
    assert more.with_match() == pytest.approx(math.exp(-2 * 5.125 / 4), rel=1e-4)
