"""Comparisons that come out even at any size: powers of two against powers of two, and sums that
stay just below one.
"""

from __future__ import annotations

import pytest
from support.bounds import threshold

from separatrix.core.numbers.binomials import BinomialSum
from separatrix.core.numbers.counts import Power
from separatrix.core.numbers.logs import log_difference
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, TwoSum
from separatrix.theory.base import counted
from separatrix.theory.fails.ii_block_messages import BlockSizes

HUGE = 1 << 40


@pytest.mark.parametrize(
    ("bits", "sign"), [(24 << 40, 0), ((24 << 40) - 1, 1), ((24 << 40) + 1, -1)]
)
def test_powers_of_two(bits: int, sign: int) -> None:
    assert Power(1 << 24, HUGE).compare_bits(bits).sign == sign
    assert log_difference([(HUGE, 1 << 20), (HUGE, 16)], bits).sign == sign
    assert log_difference([(HUGE, 3 << 30), (-HUGE, 3 << 6)], bits).sign == sign


def test_a_sum_of_all_subsets_but_the_empty_one_is_below_its_power_of_two() -> None:
    for last in (HUGE, HUGE - 1, HUGE - 1000):
        assert BinomialSum(HUGE, last).compare_bits(HUGE).sign == -1
        assert BinomialSum(HUGE, last).compare_bits(HUGE - 1).sign == 1
    assert BinomialSum(3, 2, base=1).compare_bits(2).sign == 1  # 6 > 4
    assert BinomialSum(2, 2, base=2).compare_bits(3).sign == 0  # 3^2 - 1 = 2^3


def test_traces_of_a_block_next_to_a_tie() -> None:
    """u = 2^20 values, blocks of u - 1: all subsets but one, below 2^u."""
    u = 1 << 20
    sizes = BlockSizes(T=2, B=u - 1, k=1, c=u, N=2 * u)
    assert sizes.traces(u).compare_bits(u).sign == -1
    assert sizes.traces(u).compare_bits(u - 1).sign == 1


def test_a_vocabulary_that_is_a_power_of_two_meets_the_cache_exactly() -> None:
    """603,979,776 bits = 16 x 37,748,736: n = 37,748,736 values of 16 bits just fit."""
    cache = Architecture.parse("gdn*36 @ heads=32, head_dim=128, key_heads=16")
    assert cache.cache_bits(9) == 36 * 32 * 128 * 128 * 32 == 603_979_776
    assert threshold(cache, Eva(n=9, V=1 << 16)) == 37_748_737
    assert threshold(cache, TwoSum(n=9, M=603_979_776)) is None  # 2^M - 1 sets at most
    assert threshold(cache, TwoSum(n=9, M=603_979_777)) is not None


@pytest.mark.parametrize(
    ("spec", "task"),
    [
        ("mlp + loglinear @ format=p3, head_dim=2, heads=1", TwoSum(n=11, M=129, form="decision")),
        ("full @ format=p2, head_dim=1, heads=1", TwoSum(n=11, M=19, form="decision")),
        ("loglinear + window(size=9) @ format=p1, head_dim=1, heads=1", Eva(n=8, V=3)),
    ],
)
def test_the_first_n_of_a_growing_cache_is_found_by_trying_all(
    spec: str, task: Eva | TwoSum
) -> None:
    model = Architecture.parse(spec)
    tasks = task.family()
    first = next(
        k
        for k in range(tasks.smallest, 500)
        if counted(tasks.at(k)).compare_bits(model.cache_bits(tasks.at(k).prefix_length)).positive
    )
    assert threshold(model, task) == first
