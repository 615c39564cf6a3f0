"""The adversaries of Theorems III and IV against random protocols, the best that clip a right
one, right ones, and tampered collisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from typing import Any

import numpy as np
import pytest
from adversaries.iv_adversary import adversary_iv
from adversaries.two_readings import TwoReadings, TwoReadingsSizes
from adversaries.two_solvers import enough_two, two_readings_solver
from support.each import each

from separatrix.core.errors import CheckFailed, SizeError
from separatrix.protocols.collision import AdversaryFailed, Collision, check_collision
from separatrix.protocols.iii_adversary import adversary_iii
from separatrix.protocols.one_reading import Entries, OneReading, OneReadingSizes
from separatrix.protocols.solvers import enough, one_reading_solver
from separatrix.protocols.tables import random_tables, within
from separatrix.tasks import SeqComp

FEW = range(3)
SEEDS = range(12)
ONE = [
    OneReadingSizes(m=m, n_1=n_1, t=t, caches_0=c0, reads=k, caches_1=c1)
    for m, n_1, t, c0, k, c1 in [
        (3, 1, 1, 1, 26, 1),  # 3^3 = 27 > 26
        (3, 1, 2, 1, 3, 2),  # 27 > 3 * 2^3
        (3, 1, 3, 2, 13, 1),  # 3^3 > 2^3 * 2 and 27 > 2 * 13
        (4, 1, 4, 15, 1, 1),  # 4^4 > 15 and 4^2 > 15
        (4, 1, 4, 2, 2, 1),  # one bit each
        (4, 1, 2, 3, 2, 2),  # 4^2 > 2^2 * 3 and 4^3 > 3 * 2 * 2^3
        (2, 3, 2, 3, 8, 5),  # N_1 = 6: 6^6 = 46,656 > 3 * 8^3 * 5^2
        (2, 3, 2, 3, 24, 1),  # 6^6 > 3 * 24^3
        (6, 1, 6, 11, 7, 2),  # 6^4 > 11 * 7 * 2^4
        (3, 2, 1, 1, 2, 40),  # 6^4 > 2^2 * 2^2 (2 readings of A by B, z_0) * 40
        (3, 2, 1, 1, 1, 46_655),  # 6^6 > 46,655
    ]
]
TWO = [
    TwoReadingsSizes(m=m, n_1=n_1, t=t, reads_1=k1, reads_2=k2, caches_1=c1, caches_2=c2)
    for m, n_1, t, k1, k2, c1, c2 in [
        (3, 2, 1, 2, 4, 1, 1),  # t = 1: 3 > 2, 6^4 > (2*4)^2 2^(3+1)
        (2, 3, 2, 2, 4, 1, 1),  # t = 2: 4 > 2, 6^6 > (2*4)^3 2^(4+2)
        (2, 3, 2, 3, 1, 1, 1),  # 4 > 3, 6^6 > 3^3 3^(4+2)
        (3, 2, 3, 1, 6, 2, 4),  # caches: 27 > 2, 6^4 > 2 * 6^2 * 4^2
        (2, 3, 2, 1, 3, 3, 3),  # 4 > 3, 6^6 > 3^2 * 3^6
        (3, 1, 3, 1, 26, 1, 1),  # a row of 27 values, one too few
        (2, 2, 2, 1, 15, 1, 1),  # a row of 16 values, one too few
        (2, 2, 2, 1, 4, 3, 1),
    ]
]


def triples(sizes: TwoReadingsSizes) -> Iterator[tuple[int, int, int]]:
    """Every (r, q, g) with which Theorem IV holds."""
    for q, r, g in product(range(2, sizes.m + 1), range(2, sizes.m + 1), range(1, sizes.n_1 + 1)):
        if r <= q and all(sizes.holds(r, q, g)):
            yield r, q, g


def confirm(line: Any, task: SeqComp, found: Collision) -> None:
    """Run afresh, by nothing but the protocol and the task's oracle: one view, one answer, two
    right answers.
    """
    runs = [line.run(tokens) for tokens in (found.first, found.second)]
    right = task.answer(np.array([found.first, found.second]))
    assert runs[0].view == runs[1].view
    assert runs[0].answer == runs[1].answer
    assert right[0] != right[1]


@pytest.mark.parametrize("seeds", [FEW, pytest.param(SEEDS, marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("sizes", ONE, ids=str)
def test_random_protocols_of_iii_always_collide(sizes: OneReadingSizes, seeds: range) -> None:
    rs = [r for r in range(1, sizes.m + 1) if all(sizes.holds(r))]
    assert rs
    for seed, r in product(seeds, rs):
        line = OneReading(sizes, within(random_tables(seed)))
        confirm(OneReading(sizes, random_tables(seed)), sizes.task, adversary_iii(line, r=r))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(1), pytest.param(FEW, marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("sizes", TWO, ids=str)
def test_random_protocols_of_iv_always_collide(sizes: TwoReadingsSizes, seeds: range) -> None:
    chosen = list(islice(triples(sizes), 3))
    assert chosen
    for seed, (r, q, g) in product(seeds, chosen):
        line = TwoReadings(sizes, within(random_tables(seed)))
        confirm(
            TwoReadings(sizes, random_tables(seed)), sizes.task, adversary_iv(line, r=r, q=q, g=g)
        )


@each(
    "way, m, n_1, t, less",
    [
        ("rows", 3, 1, 3, {"reads": 26}),
        ("rows", 2, 2, 2, {"reads": 15}),
        ("cache", 3, 1, 1, {"caches_1": 26}),
        ("cache", 2, 2, 2, {"caches_1": 255}),
        ("carried", 2, 2, 2, {"caches_0": 3}),
        ("carried", 3, 2, 3, {"caches_0": 26}),
        ("column", 3, 1, 2, {"caches_1": 2}),
    ],
)
def test_one_value_less_than_a_solver_of_iii_needs(
    way: str, m: int, n_1: int, t: int, less: dict[str, int]
) -> None:
    """Only two rows, or two contents of z_1, are confused; the adversary finds them. At full
    size nothing is left to find.
    """
    full = enough(OneReadingSizes(m=m, n_1=n_1, t=t), way)
    sizes = replace(full, **less)
    line = one_reading_solver(sizes, way)
    confirm(line, sizes.task, adversary_iii(line, r=sizes.failing() or 0))
    with pytest.raises(AdversaryFailed, match="allow fewer values") as failed:
        adversary_iii(one_reading_solver(full, way), r=sizes.failing() or 0)
    assert failed.value.step == ("a" if way == "carried" else "b")
    assert not failed.value.promised


@each(
    "way, m, n_1, t, less",
    [
        ("rows", 3, 1, 3, {"reads_2": 26}),
        ("rows", 2, 2, 2, {"reads_2": 15}),
        ("carried", 2, 2, 2, {"caches_1": 3}),
        ("carried", 3, 2, 3, {"caches_1": 26}),
        ("column", 3, 1, 2, {"caches_2": 2}),
        ("cache", 2, 2, 2, {"caches_2": 15}),
        ("gathered", 3, 2, 1, {"reads_1": 2, "reads_2": 4}),
    ],
)
def test_less_than_a_solver_of_iv_needs(
    way: str, m: int, n_1: int, t: int, less: dict[str, int]
) -> None:
    full = enough_two(TwoReadingsSizes(m=m, n_1=n_1, t=t), way)
    sizes = replace(full, **less)
    r, q, g = sizes.failing() or (0, 0, 0)
    line = two_readings_solver(sizes, way)
    confirm(line, sizes.task, adversary_iv(line, r=r, q=q, g=g))
    with pytest.raises(AdversaryFailed, match="does not hold") as failed:
        adversary_iv(two_readings_solver(full, way), r=r, q=q, g=g)
    assert failed.value.step == ("a" if way in ("carried", "gathered") else "b")


def test_some_contents_are_enough_once_they_outnumber_what_is_told() -> None:
    """z_2 has 8^8 contents; with r = m and no first cache every two of them are told apart by a
    point, so reads + 1 of them must collide.
    """
    sizes = OneReadingSizes(m=8, n_1=1, t=2, reads=300)
    line = one_reading_solver(sizes, "rows")
    contents: list[Entries] = list(islice(product(range(8), repeat=8), 302))
    confirm(line, sizes.task, adversary_iii(line, r=8, contents=contents))
    with pytest.raises(
        AdversaryFailed, match="give more contents of z_2"
    ):  # each of the 300 has a number of its own
        adversary_iii(OneReading(sizes, within(counted)), r=8, contents=contents[:300])
    with pytest.raises(SizeError, match=r"8\^8 contents, more than 2\^20"):
        adversary_iii(line, r=8)


def counted(name: str, known: Any, told: tuple[int, ...], size: int) -> int:
    """w reads the place of z_2 in the order of `product`."""
    return (
        sum(entry * 8**place for place, entry in enumerate(reversed(known[2][:8])))
        if name == "w reads"
        else 0
    )


@pytest.fixture(scope="module")
def collision() -> tuple[OneReading[int], Collision]:
    sizes = OneReadingSizes(m=3, n_1=1, t=3, caches_0=2, reads=3)
    line = OneReading(sizes, random_tables(5))
    return line, adversary_iii(line, r=3)


def test_tampered_collisions_are_refused(collision: tuple[OneReading[int], Collision]) -> None:
    line, good = collision
    check_collision(line, good)
    swapped_z_0 = (*good.second[:-2], (good.second[-2] + 1) % 3, good.second[-1])
    for bad, why in [
        (replace(good, second=good.first), "the right answers are"),
        (replace(good, second=good.first, right=(good.right[0],) * 2), "nothing is shown"),
        (replace(good, second=swapped_z_0), "does not get the same"),
        (replace(good, answer=(good.answer + 1) % 3), "answers are not the one recorded"),
        (replace(good, right=good.right[::-1]), "the right answers are"),
        (replace(good, view=(*good.view[:-1], 1)), "does not get the same"),
    ]:
        with pytest.raises(CheckFailed, match=why):
            check_collision(line, bad)
    with pytest.raises(SizeError, match="they must lie in"):
        check_collision(line, replace(good, second=(9, *good.second[1:])))
    with pytest.raises(CheckFailed, match="not get the same"):  # another protocol
        check_collision(OneReading(line.sizes, random_tables(6)), good)


@pytest.mark.parametrize(("holds", "all_tried"), [(True, True), (True, False), (False, True)])
def test_a_step_that_fails_is_the_theorems_fault_only_where_all_was_tried(
    holds: bool, all_tried: bool
) -> None:
    failed = AdversaryFailed("III", "b", "none is left", holds=holds, all_tried=all_tried)
    assert failed.promised is (holds and all_tried)
    assert ("is wrong" in str(failed)) is (holds and all_tried)
