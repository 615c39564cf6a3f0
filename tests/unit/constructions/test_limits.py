"""Limits: the largest size that an arithmetic carries, found by building and proving."""

from __future__ import annotations

import time

import pytest
from support.each import each

from separatrix.constructions.parts.limits import Limit, family, largest_proved, limit, limit_below
from separatrix.constructions.precision import FAMILIES
from separatrix.core.errors import SizeError
from separatrix.proofs.arithmetic import FP32, arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, SeqComp, Task, parse_task


@each("own", [1, 5, 37, 38, 300, 1000])
@each("most", [1, 37, 1000])
def test_the_last_size_that_builds_is_found_from_anywhere(own: int, most: int) -> None:
    tried = []

    def build(task: Task) -> None:
        assert isinstance(task, Eva)
        tried.append(task.n)
        if task.n > 37:
            raise SizeError("layer 2: too many")

    found = limit(Eva(n=own, V=2), build, most=most, size="n")
    assert found.n == min(37, most)
    assert found.capped == (most <= 37)
    if most > 37:
        assert (found.beyond, found.layer) == (38, 2)
    assert max(tried) <= most


def test_nothing_is_proved_where_nothing_builds() -> None:
    def build(task: Task) -> None:
        raise SizeError("no room")

    found = limit(Eva(n=9, V=2), build, most=100, size="n")
    assert (found.n, found.beyond, found.breaks, found.layer) == (0, 1, "no room", None)
    assert "no room" in found.sentence("float32")


@each("largest", [8, 10, 12, 14, 62, 64])
def test_sizes_of_which_there_is_no_task_break_nothing(largest: int) -> None:
    """Brackets come in pairs: an odd n is no task, so it says nothing of a proof."""

    def build(task: Task) -> None:
        assert task.length % 2 == 0
        if task.length > largest:
            raise SizeError("layer 1: too many")

    found = limit(parse_task("dyck:n=8,k=2,D=3"), build, most=100, size="n")
    assert (found.n, found.beyond, found.breaks) == (largest, largest + 2, "layer 1: too many")


def test_where_no_task_is_larger_no_proof_breaks() -> None:
    """Eight keys: recall of nine different ones is no task."""
    found = limit(parse_task("recall:n=4,K=8,V=2"), lambda task: None, most=100, size="n")
    assert (found.n, found.beyond, found.breaks, found.layer) == (8, None, None, None)
    assert "recall: K is 8" in found.sentence("float32")


def test_slow_proofs_end_the_search() -> None:
    tried: list[int] = []

    def build(task: Task) -> None:
        tried.append(task.length)
        if task.length >= 16:
            began = time.process_time()
            while time.process_time() - began < 0.002:
                pass

    task = parse_task("parity:n=8")
    found = limit(task, build, most=1000, size="n", seconds=0.001)
    assert found == Limit(size="n", n=16, breaks=None, beyond=None)
    assert tried == [8, 16]


def test_sentences_say_what_breaks() -> None:
    some = Limit(size="n", n=5000, breaks="layer 3: it is off", beyond=5001)
    assert "n = 5,000; at 5,001 layer 3" in some.sentence("p16")
    assert "most that was" in Limit(size="n", n=8, breaks=None, beyond=None).sentence("float32")


@each("name", FAMILIES)
def test_every_construction_has_a_size_that_grows(name: str) -> None:
    """With --prove each says how far it carries."""
    task = FAMILIES[name].task(FAMILIES[name].least)
    assert isinstance(task.sizes()[family(task)], int)


@pytest.mark.slow
def test_a_coarse_format_carries_fewer_keys() -> None:
    """4 digits fewer, and the sums of a p-bit format bound fewer keys."""
    task = Eva(n=4, V=2)
    narrow = largest_proved("retrieval", task, arithmetic("p14"), most=1 << 12)
    wide = largest_proved("retrieval", task, arithmetic("p18"), most=1 << 12)
    assert 0 < narrow.n < wide.n
    assert narrow.beyond == narrow.n + 1
    assert largest_proved("retrieval", task, FP32, most=1 << 12).capped


def test_the_size_of_a_composition_is_m() -> None:
    found = largest_proved("seqcomp", SeqComp(L=1, m=4, branching=()), FP32, most=16)
    assert (found.size, found.n, found.capped) == ("m", 16, True)


@pytest.mark.slow
def test_of_a_task_that_is_too_large_the_size_that_is_names_its_limit() -> None:
    """M = 5,754 is the circle's limit in float32 (theory.md, section 6); no n helps."""
    small = Architecture.parse("full @ heads=1, head_dim=3")
    found = limit_below(parse_task("twosum:n=1,M=5760"), small, "match2", FP32)
    assert found is not None
    assert (found.size, found.n) == ("M", 5754)


def test_a_stack_without_room_has_no_limit() -> None:
    assert limit_below(parse_task("eva:n=8,V=4"), Architecture.parse("linear"), None, None) is None
