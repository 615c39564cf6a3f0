"""The search behind Theorems III, IV and V: the smallest factor by trying every integer, evolution
and descent on a bowl, and the driver at the edges of what it is asked.
"""

from __future__ import annotations

from dataclasses import asdict
from itertools import count, product
from math import inf, log2
from typing import Any

import numpy as np
import pytest

from separatrix.tasks import SeqComp
from separatrix.theory.fails import iii_one_reading_layer as iii
from separatrix.theory.fails import iv_two_reading_layers as iv
from separatrix.theory.fails import v_three_steps as v
from separatrix.theory.search import driver
from separatrix.theory.search.descend import descend
from separatrix.theory.search.driver import Search, at_size, shortest
from separatrix.theory.search.evolve import evolve
from separatrix.theory.search.grid import best_pairs
from separatrix.theory.search.integers import least_factor, settle


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


def test_descent_reaches_the_bottom_of_a_bowl_and_stays_in_its_box() -> None:
    def bowl(points: np.ndarray) -> np.ndarray:
        return ((points - np.array([[70_001.0], [12.0], [5.0], [900.0]])) ** 2).sum(0)

    start = np.array([1e6, 40.0, 1.0, 3.0])
    low = (1, 1, 1, 1)
    assert descend(bowl, start, low, (1e7, 1e7, 1e7, 1e7)).tolist() == [70_001, 12, 5, 900]
    assert descend(bowl, start, low, (1e7, 1e7, 3, 1e7)).tolist() == [70_001, 12, 3, 900]


def test_descent_never_climbs_and_copes_with_infinity() -> None:
    rng = np.random.default_rng(0)
    table = np.where(rng.random((50, 50)) < 0.3, np.inf, rng.random((50, 50)))

    def rugged(points: np.ndarray) -> np.ndarray:
        return table[points[0].astype(int), points[1].astype(int)]

    for start in rng.integers(0, 50, (20, 2)).astype(float):
        assert (
            rugged(descend(rugged, start, (0, 0), (49, 49))[:, None])[0]
            <= rugged(start[:, None])[0]
        )


def test_settling_finds_the_smallest_from_below_and_above() -> None:
    for estimate in (1.0, 40.0, 1000.0, 1003.0, 1700.0):
        assert settle(estimate, lambda n: n >= 1000) == 1000
    assert settle(inf, lambda n: True) is None
    assert settle(float("nan"), lambda n: True) is None
    assert settle(5.0, lambda n: False) is None


def test_the_grid_finds_the_best_pair() -> None:
    def value(pairs: np.ndarray) -> np.ndarray:
        m, r = pairs
        return np.where((r <= m) & (m > 70), (m - 5_003) ** 2 + 3 * (r - 811) ** 2, np.inf)

    found = best_pairs(value)
    assert found[:, 0].tolist() == [5_003, 811]
    assert (np.diff(value(found)) >= 0).all()
    assert best_pairs(lambda pairs: np.full(pairs.shape[1], np.inf)).size == 0


SEARCHES: list[Search[Any]] = [
    iii.OneReadingSearch(iii.Sizes(40, 30, 50, 6)),
    iv.TwoReadingsSearch(iv.Sizes(3, 4, 5, 6)),
    v.ThreeStepsSearch(v.Sizes(3, 4, 5, 6, 7)),
]
KEYS = ["III", "IV", "V"]


@pytest.mark.parametrize("search", SEARCHES, ids=KEYS)
def test_the_same_search_finds_the_same_integers(search: Search[Any]) -> None:
    steps = search.least_steps
    found = shortest(search, steps)
    driver._shortest.cache_clear()
    assert shortest(search, steps) == found
    assert found is not None
    assert all(type(value) is int for value in asdict(found).values())
    quick = shortest(search, steps, quick=True)
    assert quick is not None
    assert found.length(steps) <= quick.length(steps)


@pytest.mark.parametrize("search", SEARCHES, ids=KEYS)
def test_the_last_branching_number_is_the_smallest(search: Search[Any]) -> None:
    found = shortest(search, search.least_steps)
    assert found is not None
    assert driver.holds(search.inequalities(found))
    if found.branching[-1] > found.least_last:
        fewer = found.with_last(found.branching[-1] - 1)
        assert not driver.holds(search.inequalities(fewer))


def test_tasks_below_every_theorem_get_none() -> None:
    two = iv.TwoReadingsSearch(iv.Sizes(40, 40, 0, 0))
    three = v.ThreeStepsSearch(v.Sizes(40, 40, 0, 0, 0))
    assert at_size(iv.TwoReadingsSearch(two.s, (1, 5)), shortest(two, 2)) is None
    assert at_size(v.ThreeStepsSearch(three.s, (1, 1, 5)), shortest(three, 3)) is None
    one = iii.OneReadingSearch(iii.Sizes(10**15, 0, 0))
    assert shortest(one, 2) is None
    assert at_size(iii.OneReadingSearch(one.s, (100, 5)), None) is None


@pytest.mark.parametrize("m", [10**20, 10**23 + 1, 2**90 - 1])
def test_tasks_larger_than_the_integers_of_numpy(m: int) -> None:
    """m is not a float; what is found must still be about this very m."""
    one = iii.TheoremIII().best_at(iii.Sizes(40, 128, 128), SeqComp(L=2, m=m, branching=(50,)))
    two = iv.TheoremIV().best_at(iv.Sizes(40, 40, 0, 128), SeqComp(L=2, m=m, branching=(m,)))
    three = v.TheoremV().best_at(v.Sizes(40, 40, 128, 0, 128), SeqComp(L=3, m=m, branching=(1, m)))
    for found in (one, two, three):
        assert found is not None
        assert found.m == m
