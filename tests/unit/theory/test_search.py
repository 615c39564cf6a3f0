"""The search behind Theorems III, IV and V: the smallest factor by trying every integer, evolution
and descent on a bowl, and the driver at the edges of what it is asked.
"""

from __future__ import annotations

from dataclasses import asdict
from itertools import count, product
from math import inf, log2
from random import Random
from typing import Any

import pytest
from support.depth_sizes import five, four, three
from support.each import each

from separatrix.tasks import SeqComp
from separatrix.theory.base import at_most, listed, number
from separatrix.theory.fails import i_bounded_caches as i
from separatrix.theory.fails import iii_one_reading_layer as iii
from separatrix.theory.fails import iv_two_reading_layers as iv
from separatrix.theory.fails import v_three_steps as v
from separatrix.theory.search.driver import (
    CountingSearch,
    Grid,
    Point,
    at_size,
    descend,
    evolve,
    shortest,
)
from separatrix.theory.search.reals import least_factor, settle


@each("r", [1, 2, 7, 100])
@each("base", [1, 2, 3, 50])
def test_the_smallest_factor_by_trying_all(base: int, r: int) -> None:
    for cost, owed in product((0, 1, 5, 3 * r, 9 * r + 1), (0, 1, 17, 400, 5000)):
        expected = next(x for x in count(1) if x * (r * log2(x * base) - cost) > owed)
        found = least_factor(*(float(value) for value in (base, r, cost, owed)))
        assert found == expected, (cost, owed)


def test_large_factors_lie_at_the_crossing() -> None:
    for base, r, cost, owed in ((5.0, 2.0, 700.0, 1e30), (3.0, 1e9, 1e10, 1e60)):
        x = least_factor(base, r, cost, owed)
        for shift, above in ((1 + 1e-9, True), (1 - 1e-9, False)):
            near = x * shift
            assert (near * (r * log2(near * base) - cost) > owed) == above


def test_what_is_too_large_is_infinite() -> None:
    assert least_factor(1.0, 1.0, 5000.0, 1.0) == inf


def test_evolution_finds_the_bottom_of_a_bowl_in_its_box_and_the_same_every_time() -> None:
    def bowl(point: Point) -> float:
        x, y = point
        return (x - 300) ** 2 + (y - 20) ** 2 if y >= 40 else inf

    box = Grid((1.0, 1.0), (1000.0, 1000.0))
    for start in ((2.0, 1000.0), (900.0, 41.0), (1000.0, 500.0)):
        found = evolve(bowl, start, box)
        assert bowl(found) <= bowl(start)
        assert found == evolve(bowl, start, box)
        assert descend(bowl, found, box) == (300, 40)


def test_descent_reaches_the_bottom_of_a_bowl_and_stays_in_its_box() -> None:
    def bowl(point: Point) -> float:
        return sum((x - y) ** 2 for x, y in zip(point, (70_001, 12, 5, 900), strict=True))

    start = (1e6, 40.0, 1.0, 3.0)
    low = (1.0, 1.0, 1.0, 1.0)
    assert descend(bowl, start, Grid(low, (1e7, 1e7, 1e7, 1e7))) == (70_001, 12, 5, 900)
    assert descend(bowl, start, Grid(low, (1e7, 1e7, 3, 1e7))) == (70_001, 12, 3, 900)


def test_descent_never_climbs_and_copes_with_infinity() -> None:
    rng = Random(0)
    table = [[inf if rng.random() < 0.3 else rng.random() for _ in range(50)] for _ in range(50)]

    def rugged(point: Point) -> float:
        return table[int(point[0])][int(point[1])]

    box = Grid((0.0, 0.0), (49.0, 49.0))
    for _ in range(20):
        start = (float(rng.randrange(50)), float(rng.randrange(50)))
        found = descend(rugged, start, box)
        assert rugged(found) <= rugged(start)
        # nothing beside it is lower
        for x, y in product((-1, 0, 1), repeat=2):
            beside = tuple(min(max(a + b, 0.0), 49.0) for a, b in zip(found, (x, y), strict=True))
            assert rugged(found) <= rugged(beside)


def test_numbers_that_are_shortened_claim_no_more_than_about() -> None:
    assert number(10**15 - 1) == "999,999,999,999,999"
    assert number(2_384_185_791_015_625) == "about 2.384e+15"
    assert number(1 << 1200) == "about 2^1200"


def test_a_size_that_a_search_found_is_rounded_up_from_ten_digits_on() -> None:
    n = 5_970_000_001
    assert at_most(10**9 - 1, found=True) == "999,999,999"
    assert at_most(n, found=True) == "at most 5.98e9"
    assert at_most(n) == "5,970,000,001"
    assert listed({"m": 241, "X": n}) == "m = 241, X <= 5.98e9"
    # III has its n from a search, I the smallest there is
    found, least = iii.TheoremIII(), i.TheoremI()
    assert found.failing(n).endswith(" at most 5.98e9")
    assert found.failing_briefly(n) == "n <= 5.98e9"
    assert least.failing(n) == f"from n = {n:,} on"
    assert least.failing_briefly(n) == f"n >= {n:,}"


def test_settling_finds_the_smallest_from_below_and_above() -> None:
    for estimate in (1.0, 40.0, 1000.0, 1003.0, 1700.0):
        assert settle(estimate, lambda n: n >= 1000) == 1000
    assert settle(inf, lambda n: True) is None
    assert settle(float("nan"), lambda n: True) is None
    assert settle(5.0, lambda n: False) is None


SEARCHES: list[CountingSearch[Any]] = [
    CountingSearch(iii.TheoremIII(), three(40, 30, 50, 6)),
    CountingSearch(iv.TheoremIV(), four(3, 4, 5, 6)),
    CountingSearch(v.TheoremV(), five(3, 4, 5, 6, 7)),
]
KEYS = ["III", "IV", "V"]


@pytest.mark.parametrize("search", SEARCHES, ids=KEYS)
def test_the_same_search_finds_the_same_integers(search: CountingSearch[Any]) -> None:
    steps = search.argument.least_steps
    found = shortest(search, steps)
    shortest.cache_clear()
    assert shortest(search, steps) == found
    assert found is not None
    assert all(type(value) is int for value in asdict(found).values())


@pytest.mark.parametrize("search", SEARCHES, ids=KEYS)
def test_the_last_branching_number_is_the_smallest(search: CountingSearch[Any]) -> None:
    found = shortest(search, search.argument.least_steps)
    assert found is not None
    assert search.argument.holds(search.s, found)
    if found.branching[-1] > found.least_last:
        fewer = found.with_last(found.branching[-1] - 1)
        assert not search.argument.holds(search.s, fewer)


def test_tasks_below_every_theorem_get_none() -> None:
    two = CountingSearch(iv.TheoremIV(), four(40, 40, 0, 0))
    third = CountingSearch(v.TheoremV(), five(40, 40, 0, 0, 0))
    assert at_size(CountingSearch(iv.TheoremIV(), two.s, (1, 5)), shortest(two, 2)) is None
    assert at_size(CountingSearch(v.TheoremV(), third.s, (1, 1, 5)), shortest(third, 3)) is None
    one = CountingSearch(iii.TheoremIII(), three(10**15, 0, 0))
    assert shortest(one, 2) is None
    assert at_size(CountingSearch(iii.TheoremIII(), one.s, (100, 5)), None) is None


@pytest.mark.parametrize("m", [10**20, 10**23 + 1, 2**90 - 1])
def test_tasks_larger_than_the_integers_of_numpy(m: int) -> None:
    """m is not a float; what is found must still be about this very m."""
    first = iii.TheoremIII().best_at(three(40, 128, 128), SeqComp(L=2, m=m, branching=(50,)))
    second = iv.TheoremIV().best_at(four(40, 40, 0, 128), SeqComp(L=2, m=m, branching=(m,)))
    third = v.TheoremV().best_at(five(40, 40, 128, 0, 128), SeqComp(L=3, m=m, branching=(1, m)))
    for found in (first, second, third):
        assert found is not None
        assert found.m == m
