"""Bounds of float32 arithmetic against the worst cases they are about."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from separatrix.proofs.float32 import U, averaging, gamma, mixing


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
