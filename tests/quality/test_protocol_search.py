"""Theorems III and IV against a search over all protocols of tiny sizes: where they say "fails"
there is none, and how far on there is one.

A protocol that is found is run on every prompt. That there is none is the solver's word, so it is
compared with plain enumeration where that can be done. The tables are the gap: numbers of values
that a token reads, up to which the theorem shows failure and from which a protocol exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations, product
from typing import Any

import pytest
from adversaries.existence import find_one_reading, find_two_readings
from adversaries.gap import Gap, gap, gap_iii, gap_iv
from adversaries.satisfy import Unknown, UnknownTables, satisfy
from adversaries.two_readings import TwoReadings, TwoReadingsSizes

from separatrix.core.errors import CheckFailed
from separatrix.protocols.one_reading import OneReading, OneReadingSizes

UP_TO_4 = range(1, 5)

III = [
    # m, n_1, t, caches_0, caches_1, tried, fails to, exists from
    (2, 1, 1, 2, 1, UP_TO_4, 0, 2),
    (2, 1, 2, 2, 1, UP_TO_4, 1, 2),
    (2, 1, 2, 3, 1, UP_TO_4, 1, 2),
    (2, 1, 2, 4, 1, UP_TO_4, 0, 1),
    (2, 1, 2, 1, 3, UP_TO_4, 1, 2),
    (2, 1, 2, 1, 4, UP_TO_4, 0, 1),
    pytest.param(3, 1, 1, 1, 1, (1, 25, 26, 27), 26, 27, marks=pytest.mark.slow),
    pytest.param(3, 1, 1, 1, 1, range(1, 28), 26, 27, marks=pytest.mark.slow),
    pytest.param(3, 1, 3, 1, 1, (25, 26, 27), 26, 27, marks=pytest.mark.slow),
    (3, 1, 1, 2, 1, range(1, 6), 4, 5),
    (3, 1, 1, 3, 1, range(1, 6), 0, 3),
    (3, 1, 1, 1, 2, range(1, 6), 3, 5),
    (3, 1, 1, 2, 2, range(1, 6), 1, 2),
    pytest.param(2, 2, 2, 1, 1, (14, 15, 16), 15, 16, marks=pytest.mark.slow),
    (2, 2, 1, 2, 1, range(1, 6), 2, 4),
    pytest.param(2, 2, 1, 3, 1, range(1, 6), 2, 4, marks=pytest.mark.slow),
    pytest.param(
        2, 2, 2, 2, 1, range(1, 5), 4, None, marks=pytest.mark.slow
    ),  # the theorem reaches further than the search
]

IV = [
    # m, n_1, t, reads_1, caches_1, caches_2, tried, fails to, exists from
    (2, 1, 2, 1, 1, 1, UP_TO_4, 3, 4),
    (2, 1, 2, 1, 2, 1, UP_TO_4, 1, 2),
    (2, 1, 2, 1, 3, 1, UP_TO_4, 1, 2),
    (2, 1, 2, 2, 1, 1, UP_TO_4, 0, 1),
    (2, 1, 2, 1, 1, 2, UP_TO_4, 0, 2),
    (3, 1, 1, 1, 1, 1, (1, 25, 26, 27), 26, 27),
    pytest.param(3, 1, 1, 1, 1, 1, range(1, 28), 26, 27, marks=pytest.mark.slow),
    pytest.param(3, 1, 3, 1, 1, 1, (26, 27), 26, 27, marks=pytest.mark.slow),
    (3, 1, 1, 1, 2, 1, range(1, 6), 4, 5),
    (3, 1, 1, 1, 1, 2, range(1, 6), 3, 5),
    pytest.param(2, 2, 2, 1, 1, 1, (15, 16), 15, 16, marks=pytest.mark.slow),
    (2, 2, 1, 1, 2, 1, (1, 4), 0, 4),
    pytest.param(2, 2, 1, 1, 2, 1, range(1, 6), 0, 4, marks=pytest.mark.slow),
    pytest.param(2, 2, 1, 1, 1, 2, range(1, 5), 4, None, marks=pytest.mark.slow),
    pytest.param(2, 2, 2, 1, 2, 1, range(1, 4), 3, None, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("m", "n_1", "t", "c0", "c1", "tried", "fails_to", "exists_from"), III)
def test_gap_of_iii(
    m: int, n_1: int, t: int, c0: int, c1: int, tried: range, fails_to: int, exists_from: int | None
) -> None:
    assert gap_iii(OneReadingSizes(m=m, n_1=n_1, t=t, caches_0=c0, caches_1=c1), tried) == Gap(
        fails_to, exists_from
    )


@pytest.mark.parametrize(
    ("m", "n_1", "t", "k1", "c1", "c2", "tried", "fails_to", "exists_from"), IV
)
def test_gap_of_iv(
    m: int,
    n_1: int,
    t: int,
    k1: int,
    c1: int,
    c2: int,
    tried: range,
    fails_to: int,
    exists_from: int | None,
) -> None:
    sizes = TwoReadingsSizes(m=m, n_1=n_1, t=t, reads_1=k1, caches_1=c1, caches_2=c2)
    assert gap_iv(sizes, tried) == Gap(fails_to, exists_from)


@pytest.mark.parametrize("t", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_iii_on_all_sizes_at_the_smallest_task(t: int) -> None:
    """m = 2, n_1 = 1, every number of values up to 4 of every message; with t = m the theorem is
    tight on all of them.
    """
    for c0, k, c1 in product(UP_TO_4, UP_TO_4, UP_TO_4):
        sizes = OneReadingSizes(m=2, n_1=1, t=t, caches_0=c0, reads=k, caches_1=c1)
        line = find_one_reading(sizes)
        if line is None:
            assert t == 1 or sizes.failing()
        else:
            assert not sizes.failing()
            assert all(line.run(tokens).answer == right for tokens, right in sizes.prompts())


@pytest.mark.parametrize("t", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_iv_on_all_sizes_at_the_smallest_task(t: int) -> None:
    """m = 2, n_1 = 1, every number of values that have a product of at most 8; the theorem's all
    have.
    """
    for k1, k2, c1, c2 in product(range(1, 9), repeat=4):
        if k1 * k2 * c1 * c2 > 8:
            continue
        sizes = TwoReadingsSizes(m=2, n_1=1, t=t, reads_1=k1, reads_2=k2, caches_1=c1, caches_2=c2)
        line = find_two_readings(sizes)
        if line is not None:
            assert not sizes.failing()
            assert all(line.run(tokens).answer == right for tokens, right in sizes.prompts())


def enumerated(sizes: OneReadingSizes) -> bool:
    """Whether a protocol of III without last caches exists, by plain enumeration.

    The first caches sort the z_2 into so many families. One does, with some way to carry B, if w,
    wherever it may have to look after what is carried, finds no more different contents than it can
    read.
    """
    assert sizes.caches_1 == 1
    every_z_2 = list(product(range(sizes.N_1), repeat=sizes.N_1))
    every_B = list(sizes.contents())
    caches = range(sizes.caches_0)
    families = set()
    for carried in product(caches, repeat=len(every_B)):
        looks = [
            [
                w * sizes.m + i
                for i in {
                    B[place] for B, cache in zip(every_B, carried, strict=True) if cache == after
                }
            ]
            for after, place, w in product(caches, range(sizes.t), range(sizes.n_1))
        ]
        for family in subsets(every_z_2):
            if all(
                len({tuple(z_2[i] for i in look) for z_2 in family}) <= sizes.reads
                for look in looks
            ):
                families.add(family)
    covered = {frozenset()}
    for _ in caches:
        covered = {done | family for done in covered for family in families}
    return frozenset(every_z_2) in covered


def subsets(items: list[tuple[int, ...]]) -> list[frozenset[tuple[int, ...]]]:
    return [
        frozenset(chosen) for size in range(len(items) + 1) for chosen in combinations(items, size)
    ]


@pytest.mark.parametrize("t", [1, 2])
def test_the_search_against_plain_enumeration(t: int) -> None:
    for c0, k in product((1, 2, 3), UP_TO_4):
        sizes = OneReadingSizes(m=2, n_1=1, t=t, caches_0=c0, reads=k)
        assert (find_one_reading(sizes) is not None) is enumerated(sizes), sizes


@pytest.mark.parametrize(
    ("t", "most"), [(1, 6), (2, 4), pytest.param(2, 6, marks=pytest.mark.slow)]
)
def test_searching_one_naming_of_the_messages_loses_no_protocol(t: int, most: int) -> None:
    """The same answers as without that shortcut, for sizes with a product of at most `most`."""
    for a, b, c, d in product(range(1, most + 1), repeat=4):
        if a * b * c * d > most:
            continue
        two = TwoReadingsSizes(m=2, n_1=1, t=t, reads_1=a, reads_2=b, caches_1=c, caches_2=d)
        assert (find_two_readings(two) is None) is (
            satisfy(partial(asked, TwoReadings, two)) is None
        ), two
        if d == 1:
            one = OneReadingSizes(m=2, n_1=1, t=t, caches_0=a, reads=b, caches_1=c)
            assert (find_one_reading(one) is None) is (
                satisfy(partial(asked, OneReading, one)) is None
            ), one


def asked(kind: Any, sizes: Any, tables: UnknownTables) -> Iterator[tuple[Unknown, int]]:
    """What `existence` asks of a protocol."""
    return ((kind(sizes, tables).run(tokens).answer, right) for tokens, right in sizes.prompts())


def test_a_theorem_that_claims_too_much_is_caught() -> None:
    assert gap(lambda k: k < 4, lambda k: k >= 6, range(1, 9)) == Gap(3, 6)
    assert gap(lambda k: False, lambda k: False, range(1, 9)) == Gap(0, None)
    assert (Gap(3, 8).bits, Gap(3, 4).bits, Gap(3, None).bits) == (1, 0, None)
    with pytest.raises(CheckFailed, match="6 values are too few"):
        gap(lambda k: k <= 6, lambda k: k >= 6, range(1, 9))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "t", "n_1", "c0", "k"),
    [(3, 3, 1, 2, 5), (3, 2, 1, 2, 5), (2, 2, 2, 2, 6), (3, 3, 1, 3, 3)],
)
def test_no_protocol_of_iii_at_larger_sizes(m: int, t: int, n_1: int, c0: int, k: int) -> None:
    sizes = OneReadingSizes(m=m, n_1=n_1, t=t, caches_0=c0, reads=k)
    assert sizes.failing()
    assert find_one_reading(sizes) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "t", "n_1", "c1", "c2", "k2"),
    [(2, 2, 2, 2, 1, 5), (3, 3, 1, 2, 1, 5), (2, 1, 2, 1, 2, 5)],
)
def test_no_protocol_of_iv_at_larger_sizes(
    m: int, t: int, n_1: int, c1: int, c2: int, k2: int
) -> None:
    sizes = TwoReadingsSizes(m=m, n_1=n_1, t=t, reads_2=k2, caches_1=c1, caches_2=c2)
    assert sizes.failing()
    assert find_two_readings(sizes) is None
