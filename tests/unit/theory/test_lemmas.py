"""Lemma C against all classes of contents of tiny sizes."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product

import pytest

from separatrix.core.numbers.occupancy import Occupancy
from separatrix.theory.arguments import Pigeonhole
from separatrix.theory.fails.many_proof import Class, Hit


def _taken(contents: tuple[tuple[int, ...], ...], places: int, among: int, D: int) -> int:
    """The most values that D of the contents take together on so many places."""
    return max(
        len({content[place] for content in chosen for place in where})
        for where in combinations(range(among), places)
        for chosen in combinations_with_replacement(contents, D)
    )


@pytest.mark.parametrize(("values", "among"), [(2, 2), (3, 2), (2, 3), (4, 2)])
def test_every_class_so_large_takes_so_many_values(values: int, among: int) -> None:
    """Each way of Lemma C by itself: no class of contents contradicts it."""
    every = list(product(range(values), repeat=among))
    spoken = {Pigeonhole: 0, Hit: 0}
    for bits in range(4):
        least = max(1, -(-len(every) // 2**bits))
        if least > 5 and bits:  # too many classes to try
            continue
        for places, D in product(range(1, among + 1), (1, 2, 3, 6)):
            promised = 1
            for y in range(2, min(values, D * places) + 1):
                for way in Class(values, places, among, D, y, bits).ways():
                    if way is not None and way.sign().positive:
                        spoken[type(way)] += 1
                        promised = y
            if promised > 1:
                assert all(
                    _taken(found, places, among, D) >= promised
                    for found in combinations(every, least)
                )
    assert spoken[Pigeonhole] >= 3


def test_the_second_way_of_lemma_c_speaks_and_is_right() -> None:
    """Contents that are alike in 1 bit of 8: six of them take both values at both of two places."""
    assert Class(values=2, places=2, among=3, contents=6, y=2, bits=1).ways()[1].sign().positive
    every = list(product(range(2), repeat=3))
    assert all(_taken(found, 2, 3, 6) == 2 for found in combinations(every, 4))


def test_one_new_value_each_by_hand() -> None:
    """y = 5 of 16 values at 6 places: 6 log2(16/4) = 12 bits whatever x is; a tie fails."""

    def holds(bits: int, contents: int = 5) -> bool:
        one, _ = Class(16, places=1, among=6, contents=contents, y=5, bits=bits).ways()
        return one is not None and one.sign().positive

    assert holds(11)
    assert not holds(12)
    assert not holds(11, contents=4)


def test_one_value_is_always_taken() -> None:
    one = Class(values=9, places=1, among=1, contents=1, y=1, bits=10**50)
    assert one.sign().positive
    assert Hit(Occupancy(9, 9, 1), 10**50).sign().positive
