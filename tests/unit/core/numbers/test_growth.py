"""Amounts that grow: compared with counting one token after the other."""

from __future__ import annotations

import random
from collections.abc import Callable

from support.each import each

from separatrix.core.numbers.growth import Growth, Since, doublings, signs, tokens, total_signs

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


def changes(amount: Callable[[int], int], limit: int) -> list[tuple[int, int]]:
    """Where the sign changes, token by token."""
    found: list[tuple[int, int]] = []
    for t in range(1, limit + 1):
        sign = (amount(t) > 0) - (amount(t) < 0)
        if not found or found[-1][1] != sign:
            found.append((t, sign))
    return found


@each("seed", range(60))
def test_signs_and_sums_are_those_of_counting(seed: int) -> None:
    rng = random.Random(seed)
    difference = drawn(rng)
    sums = [0]
    for t in range(1, 121):
        sums.append(sums[-1] + difference.at(t))
    assert [difference.total(t) for t in range(121)] == sums
    assert signs(difference, 120) == tuple(changes(difference.at, 120))
    assert total_signs(difference, 120) == tuple(changes(sums.__getitem__, 120))


def test_steps_by_hand() -> None:
    assert [tokens(every=4).at(t) for t in (0, 3, 4, 7, 8)] == [0, 0, 1, 1, 2]
    assert [tokens(every=2, first=5).at(t) for t in (4, 5, 6, 7)] == [0, 1, 1, 2]
    assert [tokens(3).at(t) for t in (0, 2, 3, 9)] == [0, 2, 3, 3]
    assert tokens(0) == Growth()
    assert [doublings().at(t) for t in (1, 2, 3, 4, 7, 8, LIMIT)] == [1, 2, 2, 3, 3, 4, 40]
    assert tokens().total(LIMIT) == LIMIT * (LIMIT + 1) // 2


def test_crossings_far_away_are_exact() -> None:
    # 7 t against 10^12: 7 * 142,857,142,857 is one less than 10^12
    assert signs(tokens() * 7 - Growth(10**12), LIMIT) == (Since(1, -1), Since(142_857_142_858, 1))
    # a tie at one token only
    assert signs(tokens() * 5 - Growth(10**12), LIMIT) == (
        Since(1, -1),
        Since(2 * 10**11, 0),
        Since(2 * 10**11 + 1, 1),
    )
    # the sum of 1, ..., n reaches 1,000 n at n = 1,999
    assert total_signs(tokens() - Growth(1000), LIMIT) == (
        Since(1, -1),
        Since(1999, 0),
        Since(2000, 1),
    )


def test_what_takes_turns_block_by_block_is_not_listed() -> None:
    """2 floor(t / 64) and floor(t / 32) are equal in one half of each 64 tokens."""
    difference = tokens(every=32) - tokens(every=64) * 2
    assert signs(difference, 128) == (
        Since(1, 0),
        Since(32, 1),
        Since(64, 0),
        Since(96, 1),
        Since(128, 0),
    )
    assert signs(difference, LIMIT) is None
    assert total_signs(difference, LIMIT) is None
