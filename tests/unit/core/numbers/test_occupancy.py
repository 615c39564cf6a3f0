"""Lemma S: its exponent against exact probabilities, by counting every way to throw."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp, factorial, log2

import pytest
from flint import arb, ctx

from separatrix.core.errors import SizeError
from separatrix.core.numbers.occupancy import Occupancy


def _thrown(bins: int, balls: int) -> dict[int, Fraction]:
    """How likely each number of bins is, by throwing the balls in every way."""
    found: dict[int, Fraction] = {}
    for throw in product(range(bins), repeat=balls):
        hit = len(set(throw))
        found[hit] = found.get(hit, Fraction()) + Fraction(1, bins**balls)
    return found


def _whole(ball: arb) -> int:
    with ctx.workprec(16384):
        return int(ball.floor().unique_fmpz() or 0)


def _fewer(bins: int, balls: int, hit: int, groups: int) -> Fraction:
    """The probability that fewer than `hit` bins are hit in all groups together."""
    one = _thrown(bins // groups, balls // groups)
    total = {0: Fraction(1)}
    for _ in range(groups):
        longer: dict[int, Fraction] = {}
        for (a, p), (b, q) in product(total.items(), one.items()):
            longer[a + b] = longer.get(a + b, Fraction()) + p * q
        total = longer
    return sum((p for k, p in total.items() if k < hit), Fraction())


SIZES = [
    (bins, balls, groups)
    for bins, balls, groups in product(range(1, 7), range(1, 6), (1, 2, 3))
    if bins % groups == balls % groups == 0
]


def test_the_exponent_never_promises_more_than_is_true() -> None:
    """P <= 2^-lambda at every tiny size, exactly; and something is promised at most of them."""
    spoken = 0
    for bins, balls, groups in SIZES:
        for hit in range(2, min(bins, balls) + 1):
            one = Occupancy(bins, balls, hit, groups)
            if one.useless:
                continue
            spoken += 1
            fewer = _fewer(bins, balls, hit, groups)
            with ctx.workprec(128):
                assert arb(2) ** -one.log2_ball() >= arb(fewer.numerator) / fewer.denominator
    assert spoken >= 25


def test_the_supremum_is_met() -> None:
    """The best of a fine grid of u and z, and no more than a hair above it."""
    bins, balls, hit = 12, 30, 9

    def value(u: float, z: float) -> float:
        gained = (hit - 1) * log2(z) - bins * log2(1 + z * (exp(u) - 1))
        return gained + balls * log2(u * bins) - log2(factorial(balls))

    best = max(value(u / 100, z / 1000) for u in range(200, 500) for z in range(1, 300))
    found = float(Occupancy(bins, balls, hit).log2_ball())
    assert best <= found <= best + 1e-4


def test_one_bin_is_always_hit_and_more_than_there_are_never() -> None:
    assert Occupancy(5, 3, 1).certain
    assert Occupancy(5, 3, 4).useless  # three balls
    assert Occupancy(3, 50, 4).useless  # three bins
    # as many as on average, 8 (1 - 1/e): no exponent
    assert Occupancy(8, 8, 7).useless
    with pytest.raises(SizeError):
        Occupancy(5, 3, 1).log2_ball()


@pytest.mark.parametrize("sizes", [(0, 1, 1, 1), (5, 4, 1, 2), (4, 5, 1, 2)])
def test_uneven_groups_are_refused(sizes: tuple[int, int, int, int]) -> None:
    with pytest.raises(SizeError):
        Occupancy(*sizes)


def test_it_grows_in_proportion() -> None:
    """lambda(kV, kb, ky) / k tends to a constant: at 10^40 times the size only ln k / k is lost."""
    size = 10**40
    small = Occupancy(278 * 10**6, 234 * 10**6, 95 * 10**6).log2_ball()
    large = Occupancy(278 * size, 234 * size, 95 * size).log2_ball()
    assert 0 <= float(large / size) - float(small / 10**6) < 1e-4
    # theory.md, section 11: A = 117 + 1.9538..
    assert f"{float(large / size) - 117:.4f}" == "1.9538"
    assert _whole(large) // size == 118


def test_at_huge_sizes_every_bit_is_certain() -> None:
    size = 10**40
    one = Occupancy(3336 * size, 1710 * size, 526 * size, 2)
    more = Occupancy(3336 * size, 1710 * size, 526 * size + 1, 2)
    assert _whole(more.log2_ball()) < _whole(one.log2_ball())


def test_beyond_all_floats() -> None:
    """By hand: b balls miss one of two bins with probability 2^(1-b); of b balls in V bins two meet
    with probability at most b^2 / 2V.
    """
    balls = 10**400
    many = _whole(Occupancy(2, balls, 2).log2_ball())
    # what Stirling's formula lacks in b!, and no more
    assert balls - 1000 < many <= balls - 1
    few = _whole(Occupancy(10**2000, 10**330, 10**330).log2_ball())
    assert 3800 < few <= 4452
    assert not Occupancy(5, 3, 1).useless
