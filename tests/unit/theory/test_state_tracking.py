"""State tracking in one layer that reflects its state: what it takes, worked out by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from support.each import each

from separatrix.core.errors import CheckFailed
from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import parse_task
from separatrix.tasks.tracking import tracked
from separatrix.theory import judge, recheck
from separatrix.theory.solves.states import room_for

LAYER = "deltaproduct(householders={r}) @ heads=1, head_dim={d}, value_dim={e}"


def first(spec: str, task: str) -> Verdict:
    return judge(Architecture.parse(spec), parse_task(task))[0]


@each(
    "task, things, swaps, values",
    [
        ("parity:n=9", 2, 1, 1),
        # the longest cycle of S_5 is five exchanges less one; four places tell the fifth
        ("permutation:n=9,k=5", 5, 4, 4),
        ("permutation:n=9,k=6", 6, 5, 5),
        # even permutations are even numbers of exchanges; of A_k all but two places are free
        ("group:n=9,G=A3", 3, 2, 1),
        ("group:n=9,G=A4", 4, 2, 2),
        ("group:n=9,G=A5", 5, 4, 3),
        ("group:n=9,G=A6", 6, 4, 4),
        # 60 = 4 * 3 * 5: cycles of 4, 3 and 5 things, one of each followed
        ("group:n=9,G=C60", 12, 9, 3),
        ("group:n=9,G=C7", 7, 6, 1),
        ("modular:n=99,m=6", 5, 3, 2),
        ("modular:n=99,m=2", 2, 1, 1),
    ],
)
def test_what_is_moved(task: str, things: int, swaps: int, values: int) -> None:
    moved = tracked(parse_task(task))
    assert moved is not None
    assert (moved.things, moved.swaps, len(moved.followed)) == (things, swaps, values)
    tokens, answers = moved.tables
    assert len(tokens) == parse_task(task).vocabulary
    assert len(answers) == parse_task(task).answers == moved.order
    # every row is a permutation of as few exchanges as things less cycles, and some row takes most
    assert all(sorted(row) == list(range(things)) for row in tokens.tolist())
    assert max(things - _cycles(row) for row in tokens.tolist()) == swaps
    places = answers[:, list(moved.followed)]
    assert len({tuple(row) for row in places.tolist()}) == len(answers)


def _cycles(row: list[int]) -> int:
    seen: set[int] = set()
    count = 0
    for start in range(len(row)):
        count += start not in seen
        while start not in seen:
            seen.add(start)
            start = row[start]
    return count


@pytest.mark.parametrize("task", ["group:n=3,G=C12", "group:n=2,G=A4", "permutation:n=3,k=3"])
def test_the_things_move_as_the_answers_say(task: str) -> None:
    asked = parse_task(task)
    moved = tracked(asked)
    assert moved is not None
    tokens, answers = moved.tables
    prompts = np.array(list(itertools.product(range(asked.vocabulary), repeat=asked.length)))
    for prompt, answer in zip(prompts.tolist(), asked.answer(prompts).tolist(), strict=True):
        stands = np.arange(moved.things)
        for token in prompt:
            stands = tokens[token][stands]
        assert stands.tolist() == answers[answer].tolist()


@each(
    "task, r, d, e",
    [
        ("parity:n=9", 1, 1, 1),
        ("permutation:n=9,k=2", 1, 1, 1),
        ("group:n=9,G=C2", 1, 1, 1),
        ("permutation:n=9,k=5", 4, 10, 4),
        ("group:n=9,G=A5", 4, 10, 3),
        ("group:n=9,G=A4", 2, 8, 2),
        ("modular:n=99,m=6", 3, 10, 2),
    ],
)
def test_the_least_layer_and_none_below(task: str, r: int, d: int, e: int) -> None:
    verdict = first(LAYER.format(r=r, d=d, e=e), task)
    assert (verdict.status, verdict.theorem, verdict.n) == ("SOLVABLE", "state-tracking", None)
    recheck(verdict)
    for less in ((r - 1, d, e), (r, d - 1, e), (r, d, e - 1)):
        if all(less):
            assert first(LAYER.format(r=less[0], d=less[1], e=less[2]), task).status != "SOLVABLE"


@pytest.mark.parametrize(
    ("layer", "parity", "permutation", "swaps"),
    [
        ("deltanet", False, False, False),
        ("deltanet(negative=true)", True, False, True),
        ("gdn(negative=true)", True, False, True),
        ("kda(negative=true)", True, False, True),
        # one head with keys of its own: none to spare for the first token
        ("gdn(negative=true, key_heads=1)", True, False, False),
        ("deltanet(negative=true, conv=4)", True, False, False),
        ("gdn(negative=true, gate=silu)", True, False, False),
        ("deltaproduct", True, False, True),
        ("deltaproduct(householders=4)", True, True, True),
        ("deltaproduct(householders=4, negative=false)", False, False, False),
        ("deltaproduct(householders=4, format=int8)", False, False, False),
        ("deltaproduct(householders=4, state_format=fp8)", False, False, False),
        ("deltaproduct(householders=4, format=bf16)", True, True, True),
        ("deltaproduct(householders=4) + full(positions=none)", True, True, True),
        ("deltanet(negative=true) + full(positions=none)", True, False, False),
        # others are passed over, wherever they stand
        ("mamba2 + full + deltaproduct(householders=4)|window(size=4) + mlp", True, True, True),
        ("mamba2", False, False, False),
        ("full", False, False, False),
        ("rwkv", False, False, False),
        # reflections of two layers do not multiply
        ("deltaproduct*2", True, False, True),
    ],
)
def test_which_layers_can(layer: str, parity: bool, permutation: bool, swaps: bool) -> None:
    asked = {
        "parity:n=100": parity,
        "permutation:n=100,k=5": permutation,
        "permutation:n=100,k=5,shift=swaps": swaps,
    }
    for task, can in asked.items():
        assert _turns(Architecture.parse(layer), task) == can, task


def test_of_the_presets_only_olmo_hybrid_turns_its_state() -> None:
    """No other released stack here has negative eigenvalues; none has four updates per token."""
    can = {name for name in PRESETS if _turns(preset(name), "parity:n=4096")}
    assert can == {"olmo-hybrid-7b"}
    assert not _turns(preset("olmo-hybrid-7b"), "permutation:n=4096,k=5")


def _turns(architecture: Architecture, task: str) -> bool:
    """Whether a layer of it is shown to follow the task by turning its state."""
    verdicts = judge(architecture, parse_task(task))
    return any((v.theorem, v.status) == ("state-tracking", "SOLVABLE") for v in verdicts)


def test_a_verdict_about_another_layer_is_refused() -> None:
    verdict = first("mamba2 + gdn(negative=true)", "parity:n=9")
    assert verdict.numbers["layer"] == 1
    with pytest.raises(CheckFailed, match="another numbers"):
        recheck(replace(verdict, numbers=verdict.numbers | {"layer": 0}))


def test_an_order_too_large_for_keys_has_no_room() -> None:
    """A prime of cycles: keys of 2 p numbers, and at most 128 things."""
    moved = tracked(parse_task("modular:n=2000003,m=1000003"))
    assert moved is not None
    assert moved.things == 1_000_003
    task = parse_task("group:n=9,G=C131")
    large = tracked(task)
    assert large is not None
    (part,) = Architecture.parse("deltaproduct(householders=999, head_dim=999)").layers[0]
    assert room_for(large, task, part, placed=True) is None
