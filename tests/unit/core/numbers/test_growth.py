"""Amounts that grow: equal to counting one token after the other."""

from __future__ import annotations

import random

from support.each import each

from separatrix.core.numbers.growth import Growth, doublings, tokens

LIMIT = 10**12


def drawn(rng: random.Random) -> Growth:
    """A difference with a few steps of either sign."""
    found = Growth(rng.randint(-60, 60))
    for _ in range(rng.randint(0, 5)):
        most = rng.choice([None, None, rng.randint(1, 30)])
        first = rng.choice([None, rng.randint(1, 40)])
        step = tokens(most, every=rng.choice([1, 1, 2, 3, 5, 8]), first=first)
        found = found + step * rng.randint(-9, 9)
    return found


@each("seed", range(60))
def test_sums_are_those_of_counting(seed: int) -> None:
    rng = random.Random(seed)
    difference = drawn(rng)
    sums = [0]
    for t in range(1, 121):
        sums.append(sums[-1] + difference.at(t))
    assert [difference.total(t) for t in range(121)] == sums


def test_steps_by_hand() -> None:
    assert [tokens(every=4).at(t) for t in (0, 3, 4, 7, 8)] == [0, 0, 1, 1, 2]
    assert [tokens(every=2, first=5).at(t) for t in (4, 5, 6, 7)] == [0, 1, 1, 2]
    assert [tokens(3).at(t) for t in (0, 2, 3, 9)] == [0, 2, 3, 3]
    assert tokens(0) == Growth()
    assert [doublings().at(t) for t in (1, 2, 3, 4, 7, 8, LIMIT)] == [1, 2, 2, 3, 3, 4, 40]
    assert tokens().total(LIMIT) == LIMIT * (LIMIT + 1) // 2
