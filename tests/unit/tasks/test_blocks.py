"""Blocks of rows: where one begins, told by the generator alone, and generators that do not
tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pytest
from support.each import each

from separatrix.tasks import Eva
from separatrix.tasks.base.task import MOST_ROWS, Part, parts, rows_of

Generator = np.random.Generator


def flat(found: Iterable[Part]) -> list[tuple[int, int, int]]:
    """Every row as (seed of its block, rows of the block, place in it)."""
    return [(p.seed, p.rows, place) for p in found for place in range(p.first, p.last)]


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.PCG64DXSM])
@pytest.mark.parametrize("length", [5, 1 << 10, 1 << 20])
def test_rows_follow_one_another_block_by_block(kind: type[np.random.PCG64], length: int) -> None:
    """700 rows, asked for in three ways: the same rows; places count up and begin again at 0 with
    a new seed; one step of the generator each.
    """
    whole = flat(parts(700, length, Generator(kind(1))))
    for sizes in ([1] * 700, [350, 350], [3, 690, 7]):
        rng = Generator(kind(1))
        assert [row for size in sizes for row in flat(parts(size, length, rng))] == whole
        moved = kind(1).advance(700)
        assert rng.bit_generator.state["state"] == moved.state["state"]
    rows = rows_of(length)
    for (seed, _, place), (following, _, then) in pairwise(whole):
        assert then == (place + 1) % rows
        assert (seed == following) == (then != 0)
    assert len({seed for seed, _, _ in whole}) in (-(-700 // rows), -(-700 // rows) + 1)


def test_rows_of_a_block() -> None:
    assert [rows_of(length) for length in (1, 256, 257, 1 << 16, 10**30)] == [
        *(MOST_ROWS, MOST_ROWS, 128, 1, 1)
    ]


@each("kind", [np.random.MT19937, np.random.SFC64, np.random.Philox, np.random.PCG64])
def test_any_generator_draws_in_one_call_what_it_draws_in_two(
    kind: type[np.random.BitGenerator],
) -> None:
    task = Eva(n=5, V=7)
    one, other = Generator(kind(3)), Generator(kind(3))
    whole = task.sample(90, one)
    first, second = task.sample(31, other), task.sample(59, other)
    assert (whole.tokens == np.concatenate((first.tokens, second.tokens))).all()
    assert (task.answer(whole.tokens) == whole.targets).all()


def test_what_was_drawn_may_be_overwritten() -> None:
    task = Eva(n=5, V=7)
    kept = task.sample(10, np.random.default_rng(0))
    again = task.sample(10, np.random.default_rng(0))
    before = kept.tokens.copy()
    again.tokens[:] = 0
    assert (task.sample(10, np.random.default_rng(0)).tokens == before).all()
