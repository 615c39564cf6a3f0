"""Limits: the largest size that an arithmetic carries, found by building and proving."""

from __future__ import annotations

import pytest
from support.each import each

from separatrix.constructions.precision import MOST_TRIED, Limit, limit, limit_below
from separatrix.core.errors import SizeError
from separatrix.proofs.arithmetic import FP32, arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, Task, parse_task


@each("own", [38, 300, 1000, 8000])
def test_the_last_size_that_builds_is_found_from_anywhere(own: int) -> None:
    def build(task: Task) -> None:
        assert isinstance(task, Eva)
        if task.n > 37:
            raise SizeError("layer 2: too many")

    assert limit(Eva(n=own, V=2), build, "n") == Limit("n", 37, capped=False)


def test_no_further_is_looked_than_that() -> None:
    found = limit(Eva(n=2 * MOST_TRIED, V=2), lambda task: None, "n")
    assert found == Limit("n", MOST_TRIED, capped=True)


def test_nothing_is_proved_where_nothing_builds() -> None:
    def build(task: Task) -> None:
        raise SizeError("no room")

    assert limit(Eva(n=9, V=2), build, "n") is None
    assert limit(Eva(n=9, V=2), build, "m") is None


@each("largest", [8, 10, 12, 14, 62, 64])
def test_sizes_of_which_there_is_no_task_break_nothing(largest: int) -> None:
    """Brackets come in pairs: an odd n is no task, so it says nothing of a proof."""

    def build(task: Task) -> None:
        assert task.length % 2 == 0
        if task.length > largest:
            raise SizeError("layer 1: too many")

    assert limit(parse_task("dyck:n=100,k=2,D=3"), build, "n") == Limit("n", largest, capped=False)


@pytest.mark.slow
def test_a_coarse_format_carries_fewer_keys() -> None:
    """4 digits fewer, and the sums of a p-bit format bound fewer keys."""
    task = Eva(n=1 << 12, V=2)
    narrow = limit_below(task, None, "retrieval", arithmetic("p14"))
    wide = limit_below(task, None, "retrieval", arithmetic("p18"))
    assert narrow is not None
    assert wide is not None
    assert 0 < narrow.n < wide.n


@pytest.mark.slow
def test_of_a_task_that_is_too_large_the_size_that_is_names_its_limit() -> None:
    """M = 5,754 is the circle's limit in float32 (theory.md, section 6); no n helps."""
    small = Architecture.parse("full @ heads=1, head_dim=3")
    found = limit_below(parse_task("twosum:n=1,M=5760"), small, "match2", FP32)
    assert found is not None
    assert (found.size, found.n) == ("M", 5754)


def test_a_stack_without_room_has_no_limit() -> None:
    assert limit_below(parse_task("eva:n=8,V=4"), Architecture.parse("linear"), None, None) is None
