"""Theorem P: T by hand, slow cascades that attain it, random monotone cascades that never exceed
it, and real mixers in small formats.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
from support.each import each

from separatrix.core.errors import CheckFailed
from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset
from separatrix.stacks.mechanisms import MECHANISMS, RWKV
from separatrix.tasks import Parity, Thought, parse_task
from separatrix.theory import THEOREMS, judge, recheck
from separatrix.theory.fails.p_parity import TheoremP, standstill


def T_of(spec: str) -> int | None:
    text = spec if "positions=none" in spec else f"{spec}{', ' if '@' in spec else ' @ '}"
    found = standstill(Architecture.parse(text if text == spec else f"{text}positions=none"))
    return None if found is None else found.tokens


def verdict(spec: str, task: str) -> Verdict | None:
    return TheoremP().judge(Architecture.parse(spec), parse_task(task))


@each(
    "spec, T",
    [
        # theory.md, section 10: n >= 131,073 = 2 T + 1 for one layer with a bf16 state
        ("gla @ bf16", 1 + 65_535),
        ("linear*3 @ p2", 1 + 3 * 3),
        ("linear(normaliser=false) @ p2", 1 + 3),
        ("lightning(conv=4) @ p3", 1 + 7 + 3),
        ("hgrn2 + mamba(conv=2) @ p1", 1 + 1 + 2),
        ("mamba2(conv=4)*2 + rglru(conv=3) @ p2", 1 + 2 * 6 + 5),
        ("mlstm(conv=4) @ p2", 1 + 8 + 1),
        # a token shift of time mixing, then the convolution; then that of channel mixing
        ("rwkv(version=6) @ p2", 1 + 4),
        ("rwkv(version=6, shifts=2) @ p2", 1 + 5),
        ("rwkv(version=6, shifts=2, conv=3) @ p2", 1 + 7),
        ("rwkv4 @ p2", 1 + 2 * 3 + 1 + 1),
        ("window(size=5)*2 @ p2", 1 + 2 * 4),
        ("window(size=5, conv=3) @ p2", 1 + 6),
        ("window(size=5) + reused_window(size=5) @ p2", 1 + 8),
        ("shortconv(conv=4)*2 + mlp @ p2", 1 + 6),
        # heads side by side: the largest
        ("gla(state_format=p3)|linear|window(size=3) @ p2", 1 + 7),
        # but a convolution beside them is where files put one that stands before
        ("gla|shortconv(conv=4) @ p2", 1 + 3 + 3),
        ("gla(state_format=p1, format=bf16) + mlp @ heads=2", 1 + 1),
    ],
)
def test_T_by_hand(spec: str, T: int) -> None:
    assert T_of(spec) == T
    # the first size of the family at which it fails, and one less
    found = verdict(f"{spec}, positions=none", "parity:n=50")
    assert found is not None
    assert found.n == 2 * T + 1
    assert found.numbers["T"] == T
    assert found.status == ("FAILS" if T <= 24 else "OPEN")
    for n, status in ((2 * T, "OPEN"), (2 * T + 1, "FAILS")):
        at = verdict(f"{spec}, positions=none", f"parity:n={n}")
        assert at is not None
        assert (at.status, at.n) == (status, 2 * T + 1)
        recheck(at)


@each(
    "spec",
    [
        *("deltanet", "deltanet(negative=true)", "gdn", "deltaproduct", "kda", "rwkv"),
        *("retnet", "loglinear", "chunked", "full", "fox", "sparse", "mla"),
        "lightning(rotated=true)",
        *("window(rope=true)", "window(sink=true)", "window(positions=alibi)", "gla|gdn"),
        *("gla + gdn", "gla*3 + full", "gla(positions=unknown)"),
    ],
)
def test_silent_where_a_layer_turns_reads_all_or_looks_at_places(spec: str) -> None:
    stack = Architecture.parse(f"{spec} + mlp + shortconv(positions=none)")
    assert standstill(stack) is None
    assert TheoremP().judge(stack, Parity(n=10**9)) is None


def test_silent_with_positions_which_is_what_a_spec_means_by_default() -> None:
    task = Parity(n=10**6)
    assert TheoremP().judge(Architecture.parse("gla @ bf16"), task) is None
    assert TheoremP().judge(Architecture.parse("gla @ bf16, positions=embedded"), task) is None
    (silent,) = judge(Architecture.parse("gla @ bf16"), task)
    assert silent.status == "OPEN"
    assert "positions=embedded" in silent.statement
    recheck(silent)
    (found,) = judge(Architecture.parse("gla @ bf16, positions=none"), task)
    assert (found.status, found.theorem, found.n) == ("FAILS", "P", 131_073)
    assert any("(positions=none)" in said for said in found.assumptions)
    assert any(said.startswith("token by token") for said in found.assumptions)


EXPECTED = {
    "mamba2-2.7b": 1 + 64 * (2**32 + 2),
    "codestral-mamba-7b": 1 + 64 * (2**32 + 2),
    "falcon-mamba-7b": 1 + 64 * (2**32 + 2),
    "mamba-2.8b": 1 + 64 * (2**32 + 2),
    "gla-1.3b": 1 + 24 * (2**32 - 1),
    "xlstm-7b": 1 + 32 * (2**33 - 2),
    "rwkv-4-7b-pile": 1 + 32 * 2**33,
    # rotated by places; or an update that turns
    "recurrentgemma-2b": None,
    "mistral-7b-v0.1": None,
    "retnet-1.3b": None,
    "delta-net-1.3b": None,
}


@each("name", EXPECTED)
def test_released_models(name: str) -> None:
    found = standstill(preset(name))
    assert (None if found is None else found.tokens) == EXPECTED[name]


TASKS = {
    "parity:n={n}": 2,
    "modular:n={n},m=7": 2,
    "modular:n={n},m=2": 2,
    "counting:n={n}": 2,
    "counting:n={n},V=3,form=queried": 2,
    "majority:n={n}": 2,
    "permutation:n={n},k=2": 2,
    "permutation:n={n},k=5": 2,
    "group:n={n},G=A5": 2,
    "group:n={n},G=C12": 2,
    "eva:n={n},V=2": 2,
    "index:n={n},V=3": 2,
    "equality:n={n}": 2,
    "disjointness:n={n}": 1,
}
"""Task -> how many times T its n must be, and one more."""


@pytest.mark.parametrize("task", TASKS)
def test_from_which_size_each_task_fails(task: str) -> None:
    spec = "mamba2(conv=4)*2 @ p2, positions=none"
    T = 1 + 2 * 6
    n = TASKS[task] * T + 1
    for size, status in ((n - 1, "OPEN"), (n, "FAILS"), (n + 1, "FAILS"), (9 * n, "FAILS")):
        found = verdict(spec, task.format(n=size))
        assert found is not None
        assert (found.status, found.n) == (status, n), size
        recheck(found)


def test_brackets_that_nest_deep_enough() -> None:
    spec = "gla @ p2, positions=none"  # T = 4
    for sizes, status, n in (
        ("n=10,k=2,D=5", "FAILS", 10),
        ("n=8,k=2,D=5", "OPEN", 10),
        ("n=100,k=1,D=5", "FAILS", 10),
    ):
        found = verdict(spec, f"dyck:{sizes}")
        assert found is not None
        assert (found.status, found.n) == (status, n)
        recheck(found)
    # too flat for runs of 4 that differ
    assert verdict(spec, "dyck:n=100,k=2,D=4") is None
    assert verdict(spec, "twosum:n=100,M=400") is None


def test_a_chain_of_thought_does_not_help() -> None:
    stack = Architecture.parse("gla @ p2, positions=none")
    task = Thought(task=parse_task("permutation:n=30,k=3"))
    found = next(v for v in judge(stack, task) if v.theorem == "P")
    assert (found.status, found.n) == ("FAILS", 9)
    recheck(found)


def test_a_verdict_is_derived_again() -> None:
    found = verdict("gla @ p2, positions=none", "parity:n=30")
    assert found is not None
    for name in found.numbers:
        numbers = found.numbers | {name: found.numbers[name] - 1}
        with pytest.raises(CheckFailed, match="numbers"):
            recheck(replace(found, numbers=numbers))
    with pytest.raises(CheckFailed):
        recheck(replace(found, architecture="gla @ format=p2"))
    assert "P" in THEOREMS


# --- cascades of monotone maps ---------------------------------------------------------------


def settled_after(seen: Sequence[object]) -> int:
    """The first step from which on nothing changes any more, counted from 1."""
    place = len(seen)
    while place > 1 and seen[place - 2] == seen[-1]:
        place -= 1
    return place


@each("bits", [*itertools.product((1, 2, 3), repeat=1), *itertools.product((1, 2, 3), repeat=3)])
def test_a_slow_cascade_attains_T(bits: tuple[int, ...]) -> None:
    """Each layer waits until the one before it stands still, and hands on when it stands itself:
    theory.md, section 10, counts 27 cases.
    """
    values = [1 << p for p in bits]
    spec = " + ".join(f"linear(format=p{p}, positions=none)" for p in bits)
    T = T_of(spec)
    assert T is not None
    assert 1 + sum(values) - len(values) == T
    states = [0] * len(values)
    seen = []
    for _ in range(T + 5):
        ready = True
        outputs = []
        for i, most in enumerate(values):
            old = states[i]
            # the output is worked out from the new state before it is rounded: old and input
            states[i] = min(old + 1, most - 1) if ready else 0
            ready = ready and old == most - 1
            outputs.append((old, ready))
        seen.append((tuple(states), tuple(outputs)))
    assert settled_after(seen) == T


class Simulated:
    """A stack in which every map is drawn anew, as monotone as its kind of layer says, and every
    layer hands on all that it has at hand, numbered.
    """

    def __init__(self, kinds: Sequence[Kind], rng: random.Random) -> None:
        self.kinds = kinds
        self.rng = rng
        self.maps: dict[object, list[int]] = {}
        self.ids: dict[object, int] = {}
        self.past: list[list[int]] = [[self._id(("start", rng.random()))] * 20 for _ in kinds]
        self.states = [[rng.randrange(k.values) for _ in range(k.stages)] for k in kinds]
        self.outputs: list[list[int]] = [[self._id(("out", rng.random()))] * 20 for _ in kinds]

    def _id(self, what: object) -> int:
        return self.ids.setdefault(what, len(self.ids))

    def _moved(self, key: object, old: int, values: int) -> int:
        if key not in self.maps:
            self.maps[key] = sorted(self.rng.randrange(values) for _ in range(values))
        return self.maps[key][old]

    def step(self, token: str) -> tuple[object, ...]:
        """One more token; what is to be seen of the stack then."""
        x = self._id(token)
        for i, kind in enumerate(self.kinds):
            self.past[i].append(x)
            seen: tuple[object, ...] = tuple(self.past[i][-kind.tokens :])
            for stage, old in enumerate(self.states[i]):
                # each kind of number moves as the inputs and those before it say
                seen = (i, *seen)
                self.states[i][stage] = self._moved(seen, old, kind.values)
                seen = (*seen, old)
            self.outputs[i].append(self._id(seen))
            x = self._id(tuple(self.outputs[i][-kind.mixed :]))
        return (*(tuple(state) for state in self.states), x)


class Kind(NamedTuple):
    """A kind of layer: as a spec writes it, the tokens that its inputs come from, and its state."""

    spec: str
    tokens: int
    values: int = 1
    stages: int = 0
    mixed: int = 1


DRAWN = (
    Kind("linear(format=p1)", 1, 2, 1),
    Kind("gla(format=p2)", 1, 4, 1),
    Kind("gla(format=p3)", 1, 8, 1),
    Kind("mamba2(format=p2, conv=3)", 3, 4, 1),
    Kind("mlstm(format=p1)", 1, 2, 2),
    Kind("mlstm(format=p2, conv=2)", 2, 4, 2),
    Kind("rwkv(version=6, format=p2)", 2, 4, 1),
    Kind("rwkv(version=6, format=p1, shifts=2)", 2, 2, 1, 2),
    Kind("rwkv4(format=p1)", 2, 2, 2, 2),
    Kind("window(size=4)", 4),
    Kind("window(size=2, conv=3)", 4),
    Kind("shortconv(conv=3)", 3),
    Kind("mlp", 1),
)


@pytest.mark.parametrize("seed", range(40))
def test_no_random_stack_exceeds_T(seed: int) -> None:
    rng = random.Random(seed)
    kinds = [rng.choice(DRAWN) for _ in range(rng.randint(1, 4))]
    spec = " + ".join(kind.spec for kind in kinds)
    T = T_of(f"shortconv(conv=1) + {spec} @ positions=none")
    assert T is not None
    for _ in range(20):
        stack = Simulated(kinds, rng)
        for _ in range(rng.randint(0, 5)):
            stack.step("a")
        seen = [stack.step("b") for _ in range(T + 20)]
        assert settled_after(seen) <= T, spec


@pytest.mark.parametrize("kind", DRAWN, ids=lambda kind: kind.spec)
def test_one_layer_of_each_kind_comes_near_T(kind: Kind) -> None:
    """Within 400 draws; a counter of p bits needs all of its 2^p - 1 steps, which draws of eight
    values seldom make.
    """
    T = T_of(f"shortconv(conv=1) + {kind.spec} @ positions=none")
    assert T is not None
    rng = random.Random(7)
    longest = 0
    for _ in range(400):
        stack = Simulated([kind], rng)
        longest = max(longest, settled_after([stack.step("b") for _ in range(T + 9)]))
    assert T - 5 <= longest <= T


def test_every_mechanism_is_decided() -> None:
    """Which settle, of all that there are, at their defaults: theory.md, section 10, and nobody
    else.
    """
    settles = {name for name, cls in MECHANISMS.items() if cls().settles_after is not None}
    recurrent = {"linear", "lightning", "gla", "hgrn2", "mamba", "mamba2", "rglru", "mlstm"}
    assert settles == recurrent | {"rwkv4", "window", "reused_window", "shortconv", "mlp"}
    assert {name for name, cls in MECHANISMS.items() if cls().monotone} == recurrent | {"rwkv4"}
    assert RWKV(version=6).monotone
