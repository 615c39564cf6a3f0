"""Scores of points around a circle from those of neighbours: against all pairs in exact rationals,
and what is no convex polygon is refused.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from support.each import each

from separatrix.constructions import flags
from separatrix.core.errors import CheckFailed
from separatrix.proofs.arithmetic import FP64
from separatrix.proofs.derivations import counting
from separatrix.proofs.machine import Enclosure

FINE = 1 << 52


def on_circle(modulus: int) -> np.ndarray:
    return flags._on_grid(modulus, FINE) / FINE


@each("modulus", [5, 16, 33])
def test_neighbours_tell_what_all_pairs_tell(modulus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points up to 2^-11 off the circle, keys with a blank dimension that the query asks with."""
    rng = np.random.default_rng(modulus)
    monkeypatch.setattr(counting, "_TABLE", 4)
    near = rng.uniform(-1, 1, (2, modulus, 2)) / 2048
    queries = np.column_stack([(on_circle(modulus) + near[0]) * (1, -1), np.ones(modulus)])
    keys = np.column_stack([on_circle(modulus) + near[1], np.zeros(modulus)])
    blank = np.array([[0.0, 0.0, 0.5]])
    asked, held, between = (Enclosure.point(table, FP64) for table in (queries, keys, blank))
    match, rest, widest, error = map(Fraction, counting._gaps(asked, held, between, [0.25]))
    leads: list[Fraction] = []
    others: list[Fraction] = [Fraction(1, 4)]
    for x, (a, b, _) in enumerate(queries.tolist()):
        for y, (c, d, _) in enumerate(keys.tolist()):
            score = Fraction(a) * Fraction(c) + Fraction(b) * Fraction(d) - Fraction(1, 2)
            (leads if (x + y) % modulus == 0 else others).append(
                score if (x + y) % modulus == 0 else -score
            )
    for found, right in ((match, min(leads)), (rest, min(others)), (widest, max(leads))):
        assert abs(found - right) <= error
    assert error < Fraction(1, 1 << 50)


def _star(modulus: int, step: int) -> np.ndarray:
    return on_circle(modulus)[np.arange(modulus) * step % modulus]


def _dented(modulus: int) -> np.ndarray:
    points = on_circle(modulus)
    points[3] *= 0.5
    return points


def _flat(modulus: int) -> np.ndarray:
    points = on_circle(modulus)
    points[3] = (points[2] + points[4]) / 2
    return points


def _broken(modulus: int) -> np.ndarray:
    points = on_circle(modulus)
    points[3, 1] = np.nan
    return points


@pytest.mark.parametrize(
    "points",
    [_star(11, 2), _star(11, 5), _dented(11), _flat(11), _broken(11), 0 * on_circle(11)],
    ids=["twice around", "five times around", "dented", "flat", "no number", "one point"],
)
def test_what_is_no_convex_polygon_is_refused(points: np.ndarray) -> None:
    with pytest.raises(CheckFailed, match="convex"):
        counting._check_convex(points)


def test_convex_polygons_of_both_sides() -> None:
    for points in (on_circle(4100), on_circle(11)[::-1], on_circle(3) * 64, -on_circle(7)):
        counting._check_convex(points)


@pytest.mark.parametrize("grid", [1 << 8, 1 << 24, FINE])
def test_points_on_a_grid_are_the_nearest(grid: int) -> None:
    found = flags._on_grid(4100, grid)
    angles = 2 * np.pi * np.arange(4100) / 4100
    exact = np.column_stack([np.cos(angles), np.sin(angles)]) * grid
    assert np.abs(found - exact).max() <= 0.5 + 8 * 2.0**-52 * grid
    assert (
        found[[0, 1025, 2050, 3075]] == np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]) * grid
    ).all()
