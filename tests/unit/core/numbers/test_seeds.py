"""Seeds: how they lie, and which learning rate they choose."""

from __future__ import annotations

from fractions import Fraction

from separatrix.core.numbers.seeds import Spread, best_rate


def shares(*percents: int) -> list[Fraction]:
    return [Fraction(percent, 100) for percent in percents]


def test_spread() -> None:
    found = Spread.of(shares(90, 10, 40, 60))
    assert found == Spread(median=Fraction(1, 2), least=Fraction(1, 10), most=Fraction(9, 10))
    assert Spread.of([]) is None


def test_the_median_chooses_then_the_mean_then_the_smaller_rate() -> None:
    assert best_rate({1e-3: shares(0, 60, 61), 3e-3: shares(59, 59, 99)}) == 1e-3
    assert best_rate({1e-3: shares(0, 60, 61), 3e-3: shares(0, 60, 62)}) == 3e-3
    assert best_rate({1e-2: shares(50), 3e-3: shares(50)}) == 3e-3


def test_a_rate_without_seeds_is_none() -> None:
    assert best_rate({1e-3: [], 3e-3: shares(0)}) == 3e-3
    assert best_rate({1e-3: []}) is None
    assert best_rate({}) is None
