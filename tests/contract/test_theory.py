"""What every theorem and every verdict is: registered, described, never two answers at one size,
and checkable.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.each import each
from support.task_cases import EXAMPLES, few

import separatrix.theory
from separatrix.cards import card
from separatrix.core.errors import CheckFailed
from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import Dyck, Equality, Eva, SeqComp, Task, TwoSum
from separatrix.theory import THEOREMS, Theorem, judge, recheck
from separatrix.theory.fails.asymptotic import Asymptotic
from separatrix.theory.solves import contents, products, recall, states, steps
from separatrix.theory.solves.room import Construction

SOLVES = (contents, products, recall, states, steps)


def _is_a_room(room: Any, module: ModuleType) -> bool:
    """Whether it says what a construction takes of a stack."""
    here = inspect.isfunction(room) and room.__module__ == module.__name__
    if not here or room.__name__.startswith("_"):
        return False
    return room.__annotations__["return"] == "Room | None"


def test_every_theorem_is_registered() -> None:
    concrete = set()
    for module in pkgutil.walk_packages(separatrix.theory.__path__, "separatrix.theory."):
        for value in vars(importlib.import_module(module.name)).values():
            if (
                isinstance(value, type)
                and issubclass(value, Theorem)
                and not inspect.isabstract(value)
                and value is not Construction
                and (hasattr(value, "key") or issubclass(value, Construction))
                and not value.__name__.startswith("_")
            ):
                concrete.add(value)
    assert {type(theorem) for theorem in THEOREMS.values()} == concrete | {Construction, Asymptotic}
    rooms = {room for at in SOLVES for room in vars(at).values() if _is_a_room(room, at)}
    built = [theorem.room for theorem in THEOREMS.values() if isinstance(theorem, Construction)]
    # one function says of two kinds of layers what they take
    assert {room.func if isinstance(room, partial) else room for room in built} == rooms
    assert {
        "I",
        "I'",
        "II",
        "III",
        "IV",
        "V",
        "VI",
        "VII",
        "CPW-1.1",
        "Ye26-1.1",
        "retrieval",
        "composition",
        "match2",
    } <= set(THEOREMS)


@each("key", THEOREMS)
def test_every_theorem_says_what_it_is(key: str) -> None:
    theorem = THEOREMS[key]
    assert theorem.key == key
    assert theorem.at_once or theorem.after_thought
    assert all(
        len(text) > 5
        for text in (theorem.title, theorem.statement, theorem.source, theorem.proof_sketch)
    )
    assert key == "none" or theorem.premises


KINDS = [
    "full",
    "gdn",
    "linear",
    "loglinear",
    "window(size=4)",
    "sparse(block=4, topk=1)",
    "mlp",
    "full|gdn",
    "sparse(block=4, topk=1)|linear",
]
SIZES = [
    "heads=1, head_dim=1",
    "heads=1, head_dim=4, p8",
    "heads=1, head_dim=16",
    "heads=2, head_dim=32, bf16",
]
LAYERS = st.lists(st.sampled_from(KINDS), min_size=1, max_size=4).filter(
    lambda layers: set(layers) != {"mlp"}
)
ARCHITECTURES = st.builds(
    lambda layers, sizes: Architecture.parse(f"{' + '.join(layers)} @ {sizes}"),
    LAYERS,
    st.sampled_from(SIZES),
)
BRANCHING = st.lists(st.integers(1, 60), min_size=3, max_size=3)
TASKS = st.one_of(
    st.builds(lambda n, V: Eva(n=n, V=V), st.integers(1, 5000), st.integers(2, 5000)),
    st.builds(
        lambda n, M, form: TwoSum(n=n, M=M, form=form),
        st.integers(2, 500),
        st.integers(3, 3000),
        st.sampled_from(["query", "decision"]),
    ),
    st.builds(
        lambda L, m, n_l: SeqComp(L=L, m=m, branching=tuple(n_l[: L - 1])),
        st.integers(1, 4),
        st.integers(2, 400),
        BRANCHING,
    ),
    st.builds(lambda n: Equality(n=n), st.integers(1, 5000)),
    st.builds(
        lambda n, k, D: Dyck(n=2 * n, k=k, D=D),
        st.integers(1, 2000),
        st.integers(1, 9),
        st.integers(1, 3000),
    ),
)


@settings(
    max_examples=24, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(ARCHITECTURES, TASKS)
def test_one_answer_at_a_size_and_every_verdict_holds(
    architecture: Architecture, task: Task
) -> None:
    """`judge` itself raises when two theorems contradict each other."""
    verdicts = judge(architecture, task)
    assert verdicts
    assert [v.status == "OPEN" for v in verdicts] == sorted(v.status == "OPEN" for v in verdicts)
    for verdict in verdicts:
        assert verdict.statement
        assert set(architecture.assumptions) <= set(verdict.assumptions)
        recheck(verdict)


def test_a_verdict_of_no_theorem_or_of_one_that_is_silent_is_refused() -> None:
    verdict = judge(Architecture.parse("linear @ heads=1, head_dim=1"), Eva(n=32, V=32))[0]
    body = {name: value for name, value in vars(verdict).items() if name != "theorem"}
    for key, said in (
        ("VIII", "no theorem is called"),
        ("V", "says nothing about"),
        ("lifting", "no theorem is called"),
    ):
        with pytest.raises(CheckFailed, match=said):
            recheck(Verdict(theorem=key, **body))


@settings(
    max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(ARCHITECTURES, TASKS)
def test_a_theorem_shows_only_what_its_traits_say(architecture: Architecture, task: Task) -> None:
    for key, theorem in THEOREMS.items():
        for verdict in judge(architecture, task, among=lambda other, own=theorem: other is own):
            assert verdict.theorem == key
            assert verdict.status == "OPEN" or verdict.status in theorem.shows
            words = theorem.told(verdict, task, architecture, thought=not theorem.at_once)
            assert all(text and "{" not in text for text in words[:2])
            if isinstance(task, SeqComp):
                assert theorem.least_steps <= task.L


@pytest.mark.slow
@settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(ARCHITECTURES, TASKS)
def test_the_smallest_task_that_a_verdict_names_fails(
    architecture: Architecture, task: Task
) -> None:
    for verdict in judge(architecture, task):
        smallest = THEOREMS[verdict.theorem].smallest(task, verdict)
        if verdict.n is None:
            assert smallest is None
        elif smallest is not None:
            there = judge(architecture, smallest)
            assert (verdict.theorem, "FAILS") in {(v.theorem, v.status) for v in there}


CONTEXTS = (2, 8192, 262_144)


def _searched(name: str) -> bool:
    """Whether a card searches for parameters of Theorems VI and VII; nemotron-h-8b stands for all
    that do.
    """
    return 3 <= len(preset(name).reading) <= 6 and name != "nemotron-h-8b"


CARDS = [
    pytest.param(
        name,
        context,
        marks=[pytest.mark.slow] if (number + place) % 12 or _searched(name) else [],
        id=f"{context}-{name}",
    )
    for number, name in enumerate(PRESETS)
    for place, context in enumerate(CONTEXTS)
    if (number + place) % 3 == 0
]
"""Every released model at one of the contexts; every fourth one fast, and slow where parameters are
searched for.
"""


@pytest.mark.parametrize(("name", "context"), CARDS)
def test_cards_of_released_models(name: str, context: int) -> None:
    lines = card(preset(name), context)
    # no composition fits into two tokens
    asked = {"recall", "equality", "permutation"} | ({"composition"} if context > 2 else set())
    assert asked <= {line.question.split()[0].strip(",") for line in lines}
    for line in lines:
        assert line.text
        assert (line.status == "FAILS") == (line.n is not None)
        assert line.theorem in THEOREMS
        if line.verdict is not None:
            assert line.verdict.status == line.status
            # where nothing decides, what it lacks is said beside the theorem that could
            undecided = line.theorem == "none" and line.missing
            assert line.bound is not None or undecided or line.verdict.theorem == line.theorem
            recheck(line.verdict)
        if line.bound is not None:
            assert (line.status, line.bound.theorem) == ("OPEN", line.theorem)
            assert line.bound.n is None or line.bound.n > line.bound.asked
            if line.bound.verdict is not None:
                beyond = line.bound.verdict
                assert (beyond.status, beyond.theorem) == ("FAILS", line.theorem)
                recheck(beyond)


@pytest.mark.parametrize(
    ("spec", "n"),
    [
        ("linear @ heads=1, head_dim=1", 65),  # two fp32 numbers
        # 8 states of 32 bits for n in 128..255 hold 256 > 255; 9 hold 288 for n in 256..511
        ("loglinear @ heads=1, head_dim=1", 289),
        # the last of 2n tokens sees three more: n = 2 is seen whole, of n = 3 two bits are hidden
        # (Theorem R)
        ("window(size=4) @ heads=1, head_dim=1, p8", 3),
    ],
)
def test_equality_fails_at_the_first_n_beyond_the_cache(spec: str, n: int) -> None:
    model = Architecture.parse(spec)
    for context in (2 * n - 4, 2 * n - 2, 2 * n):
        (line,) = [line for line in card(model, context) if line.question.startswith("equality")]
        # two strings of n bits fill a context of 2n tokens
        if context < 2 * n:
            assert (line.status, line.n) == ("OPEN", None)
            assert line.bound is not None
            assert (line.bound.n, line.bound.asked) == (n, context // 2)
        else:
            assert (line.status, line.n, line.bound) == ("FAILS", n, None)
    assert not any(k > model.cache_bits(k) for k in range(1, n))


STACKS = [
    *(
        "full",
        "full*2 + linear @ heads=1, head_dim=1, p2",
        "linear @ heads=1, head_dim=1, p2",
        "linear @ heads=1, head_dim=4, p8",
    ),
    *(
        "loglinear @ heads=1, head_dim=1, p2",
        "sparse(block=2, topk=1) @ heads=1, head_dim=1, p2",
        "rglru(width=64)",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("task", few(EXAMPLES, sizes=1, shifts=False))
def test_every_task_can_be_judged(task: Task) -> None:
    """No kind of task breaks a theorem; Theorem I never decides by a prefix that is longer than
    the task's own; verdicts check.
    """
    for stack in STACKS:
        architecture = Architecture.parse(stack)
        for verdict in judge(architecture, task):
            recheck(verdict)
            if verdict.theorem == "I" and verdict.status == "FAILS":
                assert verdict.numbers["prefix"] <= task.prefix_length
            if verdict.theorem in {"III", "IV", "V", "lifting", "CPW-1.1", "Ye26-1.1"}:
                assert type(task) is SeqComp
