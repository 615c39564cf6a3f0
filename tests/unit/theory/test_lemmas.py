"""Lemma C against all classes of contents of tiny sizes, and the sides that inequalities say."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from math import comb

import pytest
from flint import arb, ctx

from separatrix.core.numbers.occupancy import Occupancy
from separatrix.theory.fails.many_proof import Asked, Class, Greedy, Hit


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
    spoken = {Greedy: 0, Hit: 0}
    for bits in range(4):
        least = max(1, -(-len(every) // 2**bits))
        if least > 5 and bits:  # too many classes to try
            continue
        for places, D in product(range(1, among + 1), (1, 2, 3, 6)):
            promised = 1
            for y in range(2, min(values, D * places) + 1):
                for way in Class(values, places, among, D, y, bits).ways():
                    if way.sign().positive:
                        spoken[type(way)] += 1
                        promised = y
            if promised > 1:
                assert all(
                    _taken(found, places, among, D) >= promised
                    for found in combinations(every, least)
                )
    assert spoken[Greedy] >= 3


def test_the_second_way_of_lemma_c_speaks_and_is_right() -> None:
    """Contents that are alike in 1 bit of 8: six of them take both values at both of two places."""
    assert Class(values=2, places=2, among=3, contents=6, y=2, bits=1).ways()[1].sign().positive
    every = list(product(range(2), repeat=3))
    assert all(_taken(found, 2, 3, 6) == 2 for found in combinations(every, 4))


def test_greedy_by_hand() -> None:
    """v = 2, y = 4, 16 values: x log2(16/4) - log2 binom(16, 1) = 2x - 4, against s x/t."""
    one = Greedy(values=16, places=6, among=6, contents=2, y=4, bits=7)
    assert one.each == 2
    # times t = 6: 6 (12 - 4) = 48 > 7 * 6 = 42 bits
    assert one.sides() == (48, 42)
    assert one.sign().positive
    # 8 * 6 = 48 is a tie
    assert not Greedy(values=16, places=6, among=6, contents=2, y=4, bits=8).sign().positive
    assert not Greedy(values=16, places=1, among=6, contents=2, y=4, bits=0).sign().positive


def test_greedy_with_many_values_at_once() -> None:
    """v = 100: log2 binom(10^6, 99) by lgamma, against the integer itself."""
    one = Greedy(values=10**6, places=200, among=300, contents=5, y=500, bits=700)
    sides = one.sides()
    assert sides is not None
    with ctx.workprec(256):
        log = arb(10**6 // 2 * 2).log() - arb(598).log()
        exact = (200 * log - arb(comb(10**6, 99)).log()) / arb.const_log2() * 300
        assert sides.left < exact < sides.left + 1
    assert sides.right == 140_000
    assert one.sign().positive == (sides.left >= sides.right)


def test_one_value_is_always_taken() -> None:
    one = Class(values=9, places=1, among=1, contents=1, y=1, bits=10**50)
    assert one.sign().positive
    assert one.sides() is None
    assert Hit(Occupancy(9, 9, 1), 10**50).sign().positive


def test_the_last_function_holds_what_is_asked_of_it() -> None:
    """3 entries of 4 values hold 6 bits exactly: more than 5, not more than 6."""
    assert Asked(3, 4, 5).sides() == (6, 5)
    assert Asked(3, 4, 5).sign().positive
    assert not Asked(3, 4, 6).sign().positive
    assert Asked(3, 5, 6).sides() == (6, 6)  # 6.96 bits
    assert Asked(3, 5, 6).sign().positive
