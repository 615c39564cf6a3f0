"""Theorem II on protocols: an equivalence, so a search over all of them must find one exactly
where the theorem does not say "fails".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from adversaries.existence import find_block_messages
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.protocols.block_messages import (
    BlockMessageSizes,
    cyclic,
    every_prompt,
    respond,
)
from separatrix.theory.fails.ii_block_messages import BlockSizes


def grid(T_up_to: int = 3) -> Iterator[BlockMessageSizes]:
    """T up to 3, N up to 4, B up to 3, every k, both kinds of blocks; with one message."""
    for T, N, B, distinct in product(range(1, T_up_to + 1), (2, 3, 4), (1, 2, 3), (False, True)):
        for k in range(T + 1):
            if not distinct or B < N:
                yield BlockMessageSizes(T=T, B=B, N=N, k=k, messages=1, distinct=distinct)


def needed(sizes: BlockMessageSizes) -> int:
    """The messages that the theorem says are needed and enough."""
    return 1 if sizes.k == sizes.T else sizes.traces(sizes.u1)


def at(sizes: BlockMessageSizes, messages: int) -> BlockMessageSizes:
    return BlockMessageSizes(
        T=sizes.T, B=sizes.B, N=sizes.N, k=sizes.k, messages=messages, distinct=sizes.distinct
    )


def work(sizes: BlockMessageSizes) -> int:
    """Prompts times openings times message vectors."""
    return len(sizes.contents) ** sizes.T * sizes.N * len(sizes.openings) * needed(sizes) ** sizes.T


def check(sizes: BlockMessageSizes) -> None:
    """No protocol with one message less, one with as many as the theorem says."""
    enough = at(sizes, needed(sizes))
    count = needed(sizes)
    line = find_block_messages(enough)
    assert not enough.fails
    assert line is not None, enough
    assert all(
        respond(line, blocks, query) == right for blocks, query, right in every_prompt(enough)
    )
    if count > 1:
        few = at(sizes, count - 1)
        assert few.fails
        assert find_block_messages(few) is None, few


@pytest.mark.slow
def test_there_is_a_protocol_exactly_where_the_theorem_does_not_say_fails() -> None:
    for sizes in grid():
        if work(sizes) <= 4_000:
            check(sizes)


@pytest.mark.slow
def test_there_is_a_protocol_exactly_where_the_theorem_does_not_say_fails_at_larger_sizes() -> None:
    for sizes in grid():
        if 4_000 < work(sizes) <= 800_000:
            check(sizes)


def test_by_hand() -> None:
    """Two blocks of two values of four, one opened: u_1 = 2, traces {}, {a}, {b}, {a, b}. Four
    messages do, three do not; nor do eight unopened, of 10 sets. All values once, B = 2 of 3
    distinct, nothing opened: 3 sets.
    """
    half = BlockMessageSizes(T=2, B=2, N=4, k=1, messages=3)
    assert (half.u1, half.traces(2), half.fails, at(half, 4).fails) == (2, 4, True, False)
    closed = BlockMessageSizes(T=2, B=2, N=4, k=0, messages=9)
    assert (closed.u1, closed.traces(4), closed.fails, at(closed, 10).fails) == (4, 10, True, False)
    distinct = BlockMessageSizes(T=1, B=2, N=3, k=0, messages=2, distinct=True)
    assert (distinct.u1, distinct.traces(3), distinct.fails) == (3, 3, True)


def test_traces_by_enumeration() -> None:
    """g(u) is the number of different parts on u values, over all blocks."""
    for sizes in grid(T_up_to=1):
        for u in range(sizes.N + 1):
            assert sizes.traces(u) == len(
                {tuple(v for v in block if v < u) for block in sizes.contents}
            )


def test_whole_bits_give_the_theorem_of_the_theory() -> None:
    for sizes, c in product(grid(), range(5)):
        if not sizes.distinct:
            sign = BlockSizes(T=sizes.T, B=sizes.B, k=sizes.k, c=c, N=sizes.N).compare()
            assert at(sizes, 2**c).fails is (sign is not None and sign.positive)


@pytest.mark.parametrize(
    ("T", "B", "N", "k"),
    [(2, 2, 5, 1), (3, 2, 5, 2), (4, 1, 5, 3), (2, 3, 6, 1)],
)
@pytest.mark.parametrize("distinct", [False, True])
def test_the_theorems_own_protocol_is_right_everywhere(
    T: int, B: int, N: int, k: int, distinct: bool
) -> None:
    sizes = BlockMessageSizes(T=T, B=B, N=N, k=k, messages=1, distinct=distinct)
    line = cyclic(at(sizes, needed(sizes)))
    assert all(
        respond(line, blocks, query) == right for blocks, query, right in every_prompt(sizes)
    )
    few = cyclic(at(sizes, needed(sizes) - 1))
    assert not all(
        respond(few, blocks, query) == right for blocks, query, right in every_prompt(sizes)
    )


@each("wrong", [{"N": 1}, {"k": 3}, {"k": -1}, {"messages": 0}, {"B": 4, "distinct": True}])
def test_sizes_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(SizeError, match="blocks need"):
        BlockMessageSizes(**({"T": 2, "B": 2, "N": 4, "k": 1, "messages": 2} | wrong))  # pyright: ignore[reportArgumentType]
