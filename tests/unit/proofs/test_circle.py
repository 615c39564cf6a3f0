"""Points near the roots of unity: the roots against balls, distances that are never too small, and
bounds of scores against those of all pairs.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from support.each import each

from separatrix.proofs import circle
from separatrix.proofs.balls import cos_bounds

FINE = 1 << 52


def on_circle(modulus: int, grid: int = FINE) -> np.ndarray:
    return circle.on_grid(modulus, grid) / grid


@pytest.mark.parametrize(
    "modulus", [3, 4, 360, 4100, pytest.param(100_003, marks=pytest.mark.slow)]
)
def test_roots_are_within_what_is_promised(modulus: int) -> None:
    rng = np.random.default_rng(modulus)
    for rows, root in circle.roots(modulus):
        last = len(root.cos) - 1
        for i in {0, last, *rng.integers(last + 1, size=4).tolist()}:
            turns = Fraction(rows.start + i, modulus)
            for found, rest, right in (
                (root.cos[i], root.cos_rest[i], turns),
                (root.sin[i], root.sin_rest[i], turns - Fraction(1, 4)),
            ):
                low, high = cos_bounds(right)
                both = Fraction(float(found)) + Fraction(float(rest))
                assert abs(both - low) <= Fraction(1, 1 << 96)
                assert abs(both - high) <= Fraction(1, 1 << 96)


@pytest.mark.parametrize("grid", [1 << 8, 1 << 24, FINE])
def test_points_on_a_grid_are_the_nearest(grid: int) -> None:
    found = circle.on_grid(4100, grid)
    for x in [0, 1, 1024, 1025, 2050, 3075, 4095, 4096, 4099]:
        for axis, shift in enumerate((Fraction(0), Fraction(1, 4))):
            low, high = cos_bounds(Fraction(x, 4100) - shift)
            assert round(low * grid) == round(high * grid) == found[x, axis]
    # half a unit in each direction, and it is really that far somewhere
    far = circle.farthest(found / grid) * grid
    assert Fraction(6, 10) < far < Fraction(7072, 10_000)


@pytest.mark.parametrize("modulus", [7, 4100])
def test_a_point_moved_by_one_unit_is_seen(modulus: int) -> None:
    """The distance is at or above the true one, from balls, and not above it by a millionth."""
    points = on_circle(modulus)
    rng = np.random.default_rng(1)
    for x in rng.integers(modulus, size=5).tolist():
        for axis in (0, 1):
            moved = points.copy()
            moved[x, axis] += (2 if moved[x, axis] < 0.9 else -2) / FINE
            found = circle.farthest(moved)
            off = [
                Fraction(float(moved[x, number])) - cos_bounds(Fraction(x, modulus) - shift)[0]
                for number, shift in enumerate((Fraction(0), Fraction(1, 4)))
            ]
            square = sum(each * each for each in off)
            assert square <= found**2 <= square * Fraction(1_000_001, 10**6)


def test_conjugates_and_scales() -> None:
    points = on_circle(99) * [64.0, -64.0]
    assert circle.farthest(points, scale=64.0, turn=-1.0) < Fraction(1, FINE)
    assert circle.farthest(points, scale=64.0) > 1
    assert circle.farthest(-points, scale=-64.0, turn=-1.0) < Fraction(1, FINE)


@pytest.mark.parametrize("broken", [np.nan, np.inf, 1e300])
def test_what_is_no_number_is_far_away(broken: float) -> None:
    points = on_circle(9)
    points[4, 1] = broken
    assert circle.farthest(points) >= 2


@each("modulus", [3, 4, 5, 16, 33])
def test_bounds_hold_for_all_pairs(modulus: int) -> None:
    """Points up to 2^-9 off the circle, scores of all pairs in exact rationals."""
    rng = np.random.default_rng(modulus)
    queries, keys = (on_circle(modulus) + rng.uniform(-1, 1, (modulus, 2)) / 1024 for _ in range(2))
    far = [circle.farthest(points) for points in (queries, keys)]
    bounds = circle.pairs(far[0], far[1], modulus)
    tightest = Fraction(1)
    for x, (a, b) in enumerate(queries.tolist()):
        for y, (c, d) in enumerate(keys.tolist()):
            cosines, sines = Fraction(a) * Fraction(c), Fraction(b) * Fraction(d)
            score = cosines - sines
            assert abs(cosines) + abs(sines) <= bounds.products
            if (x + y) % modulus == 0:
                assert bounds.lowest_match <= score <= bounds.highest_match
                tightest = min(tightest, score - bounds.lowest_match)
            else:
                assert score <= bounds.highest_rest
    # a bound that holds for everything would say nothing
    assert tightest <= far[0] + far[1]
