"""Laws every task obeys, over one table: round trip, oracle, counts by brute force, balance,
determinism, refusal of what is no instance.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.each import each
from support.task_cases import CASES, EXAMPLES, TINY, Prompt, few

import separatrix.tasks
from separatrix.core.errors import SeparatrixError, SizeError, UnknownNameError
from separatrix.tasks import (
    NO_ANSWER,
    TASKS,
    Dyck,
    Equality,
    Eva,
    SeqComp,
    Task,
    Thought,
    TwoSum,
    parse_any_task,
    parse_task,
)
from separatrix.tasks.questions import QUESTIONS
from separatrix.tasks.text import TEXT_TASKS, TextTask
from separatrix.theory.base import counted


def subclasses(cls: type) -> Iterator[type]:
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


def concrete(module: str) -> set[type]:
    """Every concrete task of a module and those inside it."""
    return {
        cls
        for cls in subclasses(Task)
        if not inspect.isabstract(cls) and f"{cls.__module__}.".startswith(f"{module}.")
    }


def test_no_task_is_missing_from_the_dict() -> None:
    for found in pkgutil.iter_modules(separatrix.tasks.__path__, "separatrix.tasks."):
        importlib.import_module(found.name)
    # forms of other tasks
    assert concrete("separatrix") == {*TASKS.values(), Thought, *QUESTIONS.values()}
    assert all(name == cls.name for name, cls in TASKS.items())
    assert set(CASES) == set(TASKS)
    assert all(
        type(task) is case.kind is TASKS[name]
        for name, case in CASES.items()
        for task in (*case.examples, *case.tiny)
    )


def test_a_task_that_no_dict_holds_is_seen() -> None:
    class Forgotten(Eva):
        """A task nobody registered."""

    assert concrete(__name__) == {Forgotten}
    assert Forgotten not in TASKS.values()


def expected(task: Task, prompts: Iterable[Iterable[int]]) -> list[int | list[int]]:
    return [CASES[task.name].by_hand(task, list(prompt)) for prompt in prompts]


@each("task", few(EXAMPLES))
def test_round_trip_and_shapes(task: Task) -> None:
    assert parse_task(task.spec) == task
    tokens, targets = task.sample(200, np.random.default_rng(0))
    assert (tokens.shape, targets.shape) == (
        (200, task.length),
        (200, task.length) if task.several else (200,),
    )
    assert (tokens.dtype, targets.dtype) == (np.int64, np.int64)
    assert tokens.min() >= 0
    assert tokens.max() < task.vocabulary
    due = targets[targets != NO_ANSWER] if task.several else targets
    assert len(due)
    assert due.min() >= 0
    assert due.max() < task.answers


@pytest.mark.parametrize("task", few(EXAMPLES, rest=True))
def test_oracle_sampler_and_definition_agree(task: Task) -> None:
    tokens, targets = task.sample(300, np.random.default_rng(1))
    right = expected(task, tokens.tolist())
    assert targets.tolist() == right
    assert task.answer(tokens).tolist() == right


@each("task", few(task for task in EXAMPLES if task.layout().parts))
def test_prompts_are_made_of_their_parts(task: Task) -> None:
    """Those whose parts are not all of a prompt are read alone: mqar's filler belongs to none."""
    tokens, _ = task.sample(50, np.random.default_rng(1))
    parts = task.read(tokens)
    held = sum(part[0].size for part in parts)
    assert (task.write(*parts) == tokens).all() if held == task.length else task.name == "mqar"


@each("task", few(EXAMPLES))
def test_equal_generators_give_equal_instances(task: Task) -> None:
    one, two, other = (task.sample(50, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert (one.tokens == two.tokens).all()
    assert (one.tokens != other.tokens).any()


@each("task", few(EXAMPLES, sizes=1))
def test_one_call_draws_what_several_do(task: Task) -> None:
    """However the rows are asked for, and whatever else the generator is used for before."""
    one, other = (np.random.default_rng(8) for _ in range(2))
    assert (one.random(3) == other.random(3)).all()
    whole = task.sample(1000, one)
    parts = [task.sample(rows, other) for rows in (500, 1, 7, 492)]
    for field, drawn in zip(whole, zip(*parts, strict=True), strict=True):
        assert np.array_equal(field, np.concatenate(drawn))
    assert one.bit_generator.state == other.bit_generator.state


@pytest.mark.parametrize("task", few(EXAMPLES, sizes=1, shifts=False, rest=True))
def test_every_constant_guess_has_the_chance_stated(task: Task) -> None:
    total = 20_000
    _, targets = task.sample(total, np.random.default_rng(5))
    if task.several:
        targets = np.array([row[row != NO_ANSWER][0] for row in targets])
    share = np.bincount(targets, minlength=task.answers) / total
    error = (float(task.chance) * (1 - float(task.chance)) / total) ** 0.5
    assert share.max() <= float(task.chance) + 4.5 * error
    if CASES[task.name].even:
        assert task.chance == Fraction(1, task.answers)
    assert share.max() >= float(task.chance) - 4.5 * error


@each("task", TINY)
def test_the_oracle_on_every_instance(task: Task) -> None:
    case = CASES[task.name]
    prompts = case.all_instances(task)
    right = expected(task, prompts)
    assert task.answer(np.array(prompts)).tolist() == right
    assert len({len(prompt) for prompt in prompts} | {task.length}) == 1
    if case.ranges is not None:
        assert task.vocabulary == max(case.ranges(task))
    if case.uniform:
        assert task.chance == Fraction(max(map(right.count, right)), len(right))


@each("task", [task for task in TINY if CASES[task.name].ranges])
def test_one_token_past_its_range_at_any_place_is_refused(task: Task) -> None:
    ranges = CASES[task.name].ranges
    assert ranges is not None
    for place, limit in enumerate(ranges(task)):
        for token in (limit, -1):
            prompt = np.zeros((3, task.length), np.int64)
            prompt[1, place] = token
            with pytest.raises(SizeError, match="must lie in"):
                task.answer(prompt)


@each("task", [task for task in TINY if CASES[task.name].instances])
def test_every_other_prompt_is_refused(task: Task) -> None:
    """What is no instance is an error, not a number; and what is drawn is an instance."""
    instances = set(CASES[task.name].all_instances(task))
    rng = np.random.default_rng(6)
    if task.sizes().get("n", 0) >= task.drawn_from("n"):
        assert {tuple(prompt) for prompt in task.sample(300, rng).tokens.tolist()} <= instances
    for prompt in rng.integers(task.vocabulary, size=(300, task.length)).tolist():
        if tuple(prompt) not in instances:
            with pytest.raises(SizeError):
                task.answer(np.array([prompt]))


@each("task", [task for task in TINY if task.prefix_classes() is not None])
def test_prefix_classes_by_brute_force(task: Task) -> None:
    """All prefixes that some instance has, told apart by their answers to every continuation. With
    a promise: the largest set of prefixes that are told apart two by two, each by a continuation
    that both may have.
    """
    count = task.prefix_classes()
    assert count is not None
    rows: dict[Prompt, dict[Prompt, object]] = {}
    for prompt in CASES[task.name].all_instances(task):
        # a target is due after its token: those inside the prefix are no answer to a continuation
        answers = CASES[task.name].by_hand(task, list(prompt))
        seen = answers if isinstance(answers, int) else tuple(answers[task.prefix_length :])
        rows.setdefault(prompt[: task.prefix_length], {})[prompt[task.prefix_length :]] = seen
    if len({frozenset(row) for row in rows.values()}) == 1:
        assert count.exact() == len({frozenset(row.items()) for row in rows.values()})
    else:
        assert count.exact() == _largest_told_apart(
            [*{frozenset(row.items()): row for row in rows.values()}.values()]
        )


def _largest_told_apart(rows: list[dict[Prompt, object]]) -> int:
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(rows)))
    for (i, one), (j, other) in itertools.combinations(enumerate(rows), 2):
        if any(end in other and _differ(other[end], right) for end, right in one.items()):
            graph.add_edge(i, j)
    return max(map(len, networkx.find_cliques(graph)))


def _differ(one: object, other: object) -> bool:
    """Whether no output is right for both: where only one of them has an answer due, any output
    is right for the other.
    """
    if isinstance(one, tuple) and isinstance(other, tuple):
        return any(a != b and NO_ANSWER not in (a, b) for a, b in zip(one, other, strict=True))
    return one != other


@each("task", few(EXAMPLES))
def test_drawing_touches_no_global_generator(task: Task) -> None:
    before = np.random.get_state(legacy=True)  # noqa: NPY002
    task.sample(10, np.random.default_rng(0))
    after = np.random.get_state(legacy=True)  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@each("task", few(EXAMPLES))
def test_no_prompts_have_no_answers(task: Task) -> None:
    assert task.answer(np.zeros((0, task.length), np.int64)).shape == (
        (0, task.length) if task.several else (0,)
    )


_CODE = re.compile(r"\w+Error\b|\braises\b|`|level\(|\bself\b|__|\w+\.py\b", re.IGNORECASE)
"""What only developers read."""
_TOLD: dict[str, type[Task] | type[TextTask]] = {**TASKS, **TEXT_TASKS, Thought.name: Thought}


@each("cls", _TOLD.values())
def test_every_task_says_what_it_is(cls: type[Task] | type[TextTask]) -> None:
    """The texts that people and models read are there, without a word about code."""
    words = cls.words
    texts = (cls.title, cls.usage, cls.source, words.asks, words.drawn, words.counted)
    assert all(texts)
    texts += (cls.due,)
    assert words.origin
    assert cls.__doc__
    for text in (*texts, *words.definition.split("\n"), *cls.shifts.values()):
        assert not _CODE.search(text), text
    assert all(len(line) <= 96 for line in words.table.split("\n"))


@each("cls", TASKS.values())
def test_the_table_shows_inputs_over_targets(cls: type[Task]) -> None:
    """Each in its column: where a target is due, it begins where its input begins."""
    rows = {
        word: line
        for line in reversed(cls.words.table.split("\n"))
        for word in ("position", "input", "target")
        if word in line.split("   ")[0:1] + line.split()[:8]
    }
    assert {"input", "target"} <= set(rows)
    at = rows["input"].index("input")
    assert at == rows["target"].index("target")
    starts = {match.start() for match in re.finditer(r"(?<=  )\S", rows["input"])}
    due = [match.start() for match in re.finditer(r"(?<=  )\S", rows["target"])]
    assert due
    assert set(due) - starts <= {at} or cls.name in ("seqcomp", "seqcomp-forward", "qsa")


@given(
    st.one_of(
        st.builds(lambda n, V: Eva(n=n, V=V), st.integers(1, 10**9), st.integers(2, 10**9)),
        st.builds(
            lambda n, M, form: TwoSum(n=n, M=M, form=form),
            st.integers(2, 10**9),
            st.integers(3, 10**9),
            st.sampled_from(["query", "decision"]),
        ),
        st.builds(lambda n: Equality(n=n), st.integers(1, 10**9)),
        st.builds(lambda n, k, D: Dyck(n=2 * n, k=k, D=D), *[st.integers(1, 10**9)] * 3),
        st.builds(
            lambda m, ns: SeqComp(L=len(ns) + 1, m=m, branching=tuple(ns)),
            st.integers(2, 1000),
            st.lists(st.integers(1, 9), max_size=5),
        ),
    )
)
def test_any_task_prints_and_parses_back(task: Task) -> None:
    assert parse_task(task.spec) == task


@each("task", few(EXAMPLES))
def test_what_is_no_instance_is_refused(task: Task) -> None:
    good = task.sample(2, np.random.default_rng(0)).tokens
    ragged: Any = [good[0].tolist(), good[1, 1:].tolist()]
    bads: list[Any] = [
        good[:, :-1],
        good[0],
        good.astype(float),
        good > 0,
        good - task.vocabulary,
        good + task.vocabulary,
        ragged,
        good[None],
    ]
    for bad in bads:
        with pytest.raises(SizeError, match=r"tokens|ids|values"):
            task.answer(bad)


BAD_TEXTS = [
    ("eva:n", "size=value"),
    ("eva:n=4,n=5", "given twice"),
    ("eva:n=1_", "must be an integer"),
    ("eva:n=\u0663", "must be an integer"),
    ("eva:n=1e3", "must be an integer"),
    (f"eva:n={'9' * 5000}", r"n=9{12}\.\.\. .* is too large"),
    ("eva:n=4,,V=3", "size=value"),
    ("eva:", "size=value"),
    ("evs:n=4", "Did you mean 'eva'"),
    ("", "the task is empty"),
    (" :n=3", "the task is empty"),
    ("xyzzy", r"Known: .*eva, .*seqcomp.* `separatrix list tasks` lists all"),
    ("eva:n=4,thought=values", "no chain"),
    ("seqcomp:L=2,n=64,thought=loud", "unknown form of thought 'loud'"),
]


@each("text, said", [*BAD_TEXTS, *(bad for case in CASES.values() for bad in case.bad)])
def test_bad_task_texts(text: str, said: str) -> None:
    with pytest.raises(SeparatrixError, match=said) as caught:
        parse_task(text)
    assert "\n" not in str(caught.value)


SIZED = [
    (f"{name}:{cls.grid[0]}", size)
    for name, cls in (TASKS | TEXT_TASKS).items()
    for size, value in parse_any_task(f"{name}:{cls.grid[0]}").sizes().items()
    if type(value) is int
]


@each("text, size", SIZED)
def test_the_smallest_value_that_is_named_can_be_drawn(text: str, size: str) -> None:
    name, _, sizes = text.partition(":")
    given = dict(part.split("=") for part in sizes.split(","))
    if size not in given:  # another spelling of it is
        return

    def at(value: int) -> str:
        return f"{name}:" + ",".join(f"{k}={v}" for k, v in (given | {size: value}).items())

    with pytest.raises(SizeError) as refused:
        parse_any_task(at(-1))
    found = re.search(rf"{size} is -1;.*?(?:from|at least) (\d+)", str(refused.value))
    assert found
    task = parse_any_task(at(int(found[1])))
    assert len(task.sample(3, np.random.default_rng(0))) in (2, 3)


@each("batch", [0, -1, 10**10, 10**30, 2.0, True, "3", None])
@each(
    "task", [Eva(n=5, V=5), SeqComp(L=1, m=4), TwoSum(n=5, M=7), Equality(n=3), Dyck(n=6, k=2, D=2)]
)
def test_bad_batches(task: Task, batch: Any) -> None:
    with pytest.raises(SizeError, match="batch"):
        task.sample(batch, np.random.default_rng(0))


@pytest.mark.parametrize(
    "task",
    [
        *(Eva(n=10**12), SeqComp(L=2, m=10**50, branching=(10**49,)), TwoSum(n=10**12, M=10**12)),
        *(Equality(n=10**12), Dyck(n=10**12, k=9, D=10**12)),
    ],
    ids=lambda t: t.name,
)
def test_what_can_be_judged_but_not_drawn(task: Task) -> None:
    """Sizes far beyond any memory: everything exact still answers, drawing says why it does not."""
    assert parse_task(task.spec) == task
    assert counted(task).exceeds_bits(10**12 - 1)
    with pytest.raises(SizeError, match=r"2\^30"):
        task.sample(1, np.random.default_rng(0))
    with pytest.raises(SizeError, match="shape"):
        task.answer(np.zeros((1, 3), np.int64))


@each("text, size", SIZED)
@each("wrong", [-3, 10**5000, 2.0, True, "4", None])
def test_bad_sizes_in_python(text: str, size: str, wrong: Any) -> None:
    task = parse_any_task(text)
    if not hasattr(task, size) or (wrong is None and size in ("V", "P", "sets")):
        return  # a branching is below; these three have a default
    with pytest.raises(SizeError, match=f"{size} is"):
        replace(task, **{size: wrong})  # pyright: ignore[reportArgumentType]


@each("shift", [[], {}, None, 3, "no-such"])
@each("name", [name for name, kind in TASKS.items() if kind.shifts])
def test_a_shift_that_there_is_not(name: str, shift: Any) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown shift of {name}"):
        replace(parse_task(f"{name}:{TASKS[name].grid[0]}"), shift=shift)  # type: ignore[call-arg]


@each("task", few(EXAMPLES))
def test_a_family_grows_in_one_size_and_has_no_shift(task: Task) -> None:
    family = task.family()
    small = family.at(family.smallest)
    assert family.at(small.sizes()[family.grows]) == small
    assert (type(small), small.sizes().get("shift", "none")) == (type(task), "none")
    assert 0 < family.smallest <= small.sizes()[family.grows] <= family.largest


@each("branching", [(), (2, 2), [2], None, (2.0,), (0,), (True,)])
def test_bad_branching_in_python(branching: Any) -> None:
    with pytest.raises(SizeError, match="n_1"):
        SeqComp(L=2, m=4, branching=branching)
