"""What the searches of Theorems III, IV and V stand on: the smallest factor, by trying every
integer, and the evolution, on a bowl.
"""

from __future__ import annotations

from itertools import count, product
from math import log2

import numpy as np
import pytest

from separatrix.theory.search.evolve import evolve
from separatrix.theory.search.integers import least_factor


@pytest.mark.parametrize("r", [1, 2, 7, 100])
@pytest.mark.parametrize("base", [1, 2, 3, 50])
def test_the_smallest_factor_by_trying_all(base: int, r: int) -> None:
    for cost, owed in product((0, 1, 5, 3 * r, 9 * r + 1), (0, 1, 17, 400, 5000)):
        expected = next(x for x in count(1) if x * (r * log2(x * base) - cost) > owed)
        found = least_factor(*(np.array([float(value)]) for value in (base, r, cost, owed)))
        assert found[0] == expected, (cost, owed)


def test_large_factors_lie_at_the_crossing() -> None:
    base, r, cost, owed = (
        np.array(values) for values in ([5.0, 3.0], [2.0, 1e9], [700.0, 1e10], [1e30, 1e60])
    )
    x = least_factor(base, r, cost, owed)
    for shift, above in ((1 + 1e-9, True), (1 - 1e-9, False)):
        near = x * shift
        assert ((near * (r * np.log2(near * base) - cost) > owed) == above).all()


def test_what_is_too_large_is_infinite() -> None:
    assert np.isinf(least_factor(*(np.array([value]) for value in (1.0, 1.0, 5000.0, 1.0))))[0]


def test_evolution_finds_the_bottom_of_a_bowl_in_its_box_and_the_same_every_time() -> None:
    def value(points: np.ndarray) -> np.ndarray:
        return np.where(
            points[1] >= 40, ((points - np.array([[300.0], [20.0]])) ** 2).sum(0), np.inf
        )

    start = np.array([[2.0, 900.0, 1000.0], [1000.0, 41.0, 1.0]])
    first, again = (
        evolve(value, start, (1, 1), (1000, 1000), children=200, generations=30) for _ in range(2)
    )
    assert first[:, 0].tolist() == [300, 40]
    assert np.array_equal(first, again)
    assert (np.diff(value(first)) >= 0).all()
