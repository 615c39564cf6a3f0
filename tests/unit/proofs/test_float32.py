"""Bounds of float32 arithmetic against the worst cases they are about."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from separatrix.proofs.float32 import Match, U, averaging, gamma, mixing, off_target


@pytest.mark.parametrize("keys", [1, 2, 100, 5000])
@pytest.mark.parametrize("mass", [Fraction(0), Fraction(1, 10**9), Fraction(1, 7), Fraction(3)])
def test_mixing_bounds_every_corner_and_wastes_next_to_nothing(keys: int, mass: Fraction) -> None:
    """One other key of weight `mass` and value -1 or 1, every relative error at one of its two
    extremes: v (1+t) + r w (1+s) over 1 + t' + r (1+s'), less v.
    """
    tau = averaging(keys)
    worst = max(
        abs((v * (1 + t) + mass * w * (1 + s)) / (1 + t_ + mass * (1 + s_)) - v)
        for v, w in product((Fraction(-1), Fraction(1)), repeat=2)
        for t, s, t_, s_ in product((-tau, tau), repeat=4)
    )
    assert worst <= mixing(keys, mass)
    # the bound divides by 1 - tau where the worst numerator meets at least 1 - tau + r (1 - tau)
    assert mixing(keys, mass) <= worst * (1 + mass) * (1 + tau) / (1 - tau)


def test_averaging_counts_its_roundings() -> None:
    """16 keys: 16 additions, one rescaling and a constant, below 6 * 16 + 256 = 352 roundings."""
    assert averaging(16) == gamma(352) == 352 * U / (1 - 352 * U)
    assert gamma(16 + 66 + 64) < averaging(16)


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
    the query's own weigh 1 each, the blank key e^-4, the rest 2 e^-7.
    """
    match = Match(
        earlier=2,
        match_over_blank=Fraction(5),
        blank_over_rest=Fraction(4),
        widest=Fraction(1000),
        score_error=Fraction(1),
    )
    assert match.gaps() == (4, 3)
    tau = averaging(4)
    # scores 1,001 from the maximum: 2,002 u more in the exponent
    without = 2 * Fraction(math.exp(-3)) * (1 + 2002 * U) * (1 + 2 * tau)
    assert without <= match.without() <= without * (1 + 1000 * U)
    below = 2 + Fraction(math.exp(-4)) + 2 * Fraction(math.exp(-7))
    exact = (1 - tau) / (1 + tau) / below
    assert exact * (1 - 100 * U) <= match.with_match() <= exact
