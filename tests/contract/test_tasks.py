"""Laws every task obeys, over one table: round trip, oracle, counts by brute force, balance, determinism, refusal of what is no instance."""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import pkgutil
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import separatrix.tasks
from separatrix.errors import SeparatrixError, SizeError
from separatrix.tasks import TASKS, Dyck, Equality, Eva, SeqComp, Task, TwoSum, parse_task

EVERY_TASK: list[Task] = [
    Eva(n=5, V=5),
    Eva(n=3, V=8),
    Eva(n=8, V=3),
    SeqComp(L=1, m=4),
    SeqComp(L=2, m=3, branching=(2,)),
    SeqComp(L=3, m=2, branching=(3, 2)),
    SeqComp(L=4, m=2, branching=(1, 2, 1)),
    TwoSum(n=5, M=7),
    TwoSum(n=1, M=3),
    TwoSum(n=6, M=8),
    TwoSum(n=5, M=9, form="decision"),
    TwoSum(n=2, M=4, form="decision"),
    Equality(n=1),
    Equality(n=6),
    Dyck(n=4, k=2, D=2),
    Dyck(n=12, k=3, D=2),
    Dyck(n=10, k=2, D=100),
    Dyck(n=28, k=1, D=3),
    Dyck(n=34, k=2, D=4),
]


def subclasses(cls: type) -> Iterator[type]:
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


def concrete(module: str) -> set[type]:
    """Every concrete task of a module and those inside it."""
    return {cls for cls in subclasses(Task) if not inspect.isabstract(cls) and f"{cls.__module__}.".startswith(f"{module}.")}


def test_no_task_is_missing_from_the_dict() -> None:
    for found in pkgutil.iter_modules(separatrix.tasks.__path__, "separatrix.tasks."):
        importlib.import_module(found.name)
    assert concrete("separatrix") == set(TASKS.values())
    assert all(name == cls.name for name, cls in TASKS.items())
    assert {type(task) for task in EVERY_TASK} == set(TASKS.values())


def test_a_task_that_no_dict_holds_is_seen() -> None:
    class Forgotten(Eva):
        """A task nobody registered."""

    assert concrete(__name__) == {Forgotten}
    assert Forgotten not in TASKS.values()


def by_hand(task: Task, prompt: list[int]) -> int:
    """The answer straight from the definitions of theory.md, section 2."""
    if isinstance(task, Eva):
        return prompt[prompt[-1]]
    if isinstance(task, Equality):
        return int(prompt[: task.n] == prompt[task.n :])
    if isinstance(task, Dyck):
        stack: list[int] = []
        for token in prompt:
            if token < task.k:
                stack.append(token)
            elif not stack or stack.pop() != token - task.k:
                return 0
            if len(stack) > task.D:
                return 0
        return int(not stack)
    if isinstance(task, TwoSum):
        if task.form == "query":
            return int(any((x + prompt[-1]) % task.M == 0 for x in prompt[:-1]))
        return int(any((a + b) % task.M == 0 for a, b in itertools.combinations(prompt, 2)))
    assert isinstance(task, SeqComp)
    sizes = [task.m]
    for n in task.branching:
        sizes.append(n * sizes[-1])  # N_0, ..., N_{L-1}
    tables, rest = {}, list(prompt)
    for level in range(task.L, 0, -1):
        tables[level], rest = rest[: sizes[level - 1]], rest[sizes[level - 1] :]
    z_0, w = rest
    value = tables[1][z_0]
    for level in range(2, task.L + 1):
        n = task.branching[level - 2]
        w, part = divmod(w, n)
        value = tables[level][part * sizes[level - 2] + value]
    return value


@pytest.mark.parametrize("task", EVERY_TASK, ids=str)
def test_round_trip_and_shapes(task: Task) -> None:
    assert parse_task(task.spec) == task
    tokens, targets = task.sample(200, np.random.default_rng(0))
    assert (tokens.shape, targets.shape) == ((200, task.length), (200,))
    assert (tokens.dtype, targets.dtype) == (np.int64, np.int64)
    assert tokens.min() >= 0
    assert tokens.max() < task.vocabulary
    assert targets.min() >= 0
    assert targets.max() < task.answers


@pytest.mark.parametrize("task", EVERY_TASK, ids=str)
def test_oracle_sampler_and_definition_agree(task: Task) -> None:
    tokens, targets = task.sample(300, np.random.default_rng(1))
    expected = [by_hand(task, prompt) for prompt in tokens.tolist()]
    assert targets.tolist() == expected
    assert task.answer(tokens).tolist() == expected


@pytest.mark.parametrize("task", EVERY_TASK, ids=str)
def test_equal_generators_give_equal_instances(task: Task) -> None:
    one, two, other = (task.sample(50, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert (one.tokens == two.tokens).all()
    assert (one.tokens != other.tokens).any()


@pytest.mark.parametrize("task", EVERY_TASK, ids=str)
def test_every_constant_guess_has_the_chance_stated(task: Task) -> None:
    total = 20_000
    _, targets = task.sample(total, np.random.default_rng(5))
    share = np.bincount(targets, minlength=task.answers) / total
    error = (float(task.chance) * (1 - float(task.chance)) / total) ** 0.5
    assert task.chance == Fraction(1, task.answers)
    assert np.abs(share - float(task.chance)).max() <= 4.5 * error


TINY: list[Task] = [
    Eva(n=1, V=2),
    Eva(n=3, V=2),
    Eva(n=2, V=4),
    SeqComp(L=1, m=3),
    SeqComp(L=2, m=2, branching=(2,)),
    SeqComp(L=2, m=3, branching=(1,)),
    SeqComp(L=3, m=2, branching=(1, 1)),
    *(TwoSum(n=n, M=M) for n in (1, 2, 4) for M in (3, 4, 5)),
    *(TwoSum(n=n, M=M, form="decision") for n in (2, 3, 4) for M in (3, 4, 5, 6)),
    *(Equality(n=n) for n in (1, 2, 5)),
    *(Dyck(n=n, k=k, D=D) for n, k, D in ((2, 1, 1), (6, 1, 2), (8, 1, 9), (4, 2, 1), (6, 2, 2), (4, 3, 2))),
]


def ranges(task: Task) -> list[int]:
    """How many values each place of a prompt may hold, from the definitions."""
    if isinstance(task, Eva):
        return [task.V] * task.n + [task.n]
    if isinstance(task, Equality | Dyck):
        return [task.vocabulary] * task.length
    if isinstance(task, TwoSum):
        return [task.M] * (task.n + (task.form == "query"))
    assert isinstance(task, SeqComp)
    sizes = [math.prod((task.m, *task.branching[:level])) for level in range(task.L)]
    return [size for size in reversed(sizes) for _ in range(size)] + [task.m, math.prod(task.branching)]


@pytest.mark.parametrize("task", TINY, ids=str)
def test_the_oracle_on_every_instance(task: Task) -> None:
    limits = ranges(task)
    assert (task.length, task.vocabulary) == (len(limits), max(limits))
    prompts = list(itertools.product(*map(range, limits)))
    expected = [by_hand(task, list(prompt)) for prompt in prompts]
    assert task.answer(np.array(prompts)).tolist() == expected
    if isinstance(task, Eva | SeqComp):  # drawn uniformly from all instances, so that chance is a matter of counting
        assert task.chance == Fraction(max(map(expected.count, expected)), len(expected))


@pytest.mark.parametrize("task", TINY, ids=str)
def test_one_token_past_its_range_at_any_place_is_refused(task: Task) -> None:
    for place, limit in enumerate(ranges(task)):
        for token in (limit, -1):
            prompt = np.zeros((3, task.length), np.int64)
            prompt[1, place] = token
            with pytest.raises(SizeError, match="must lie in"):
                task.answer(prompt)


@pytest.mark.parametrize("task", EVERY_TASK, ids=str)
def test_drawing_touches_no_global_generator(task: Task) -> None:
    before = np.random.get_state(legacy=True)  # noqa: NPY002
    task.sample(10, np.random.default_rng(0))
    after = np.random.get_state(legacy=True)  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("task", EVERY_TASK, ids=str)
def test_no_prompts_have_no_answers(task: Task) -> None:
    assert task.answer(np.zeros((0, task.length), np.int64)).shape == (0,)


@pytest.mark.parametrize("cls", TASKS.values(), ids=TASKS)
def test_every_task_says_what_it_is(cls: type[Task]) -> None:
    """The file opens with a token table: places, then inputs over targets; the listing has its texts."""
    opening = (inspect.getmodule(cls).__doc__ or "").splitlines()[:9]  # type: ignore[union-attr]
    rows = [row for word in ("position", "input", "target") for row, line in enumerate(opening) if word in line.split()[:3]]
    assert rows[:3] == sorted(rows[:3])
    assert {"position", "input", "target"} <= set(" ".join(opening).split())
    assert all((cls.title, cls.usage, cls.source))
    assert cls.__doc__


def classes(task: Task, prefixes: Iterable[tuple[int, ...]], continuations: list[tuple[int, ...]]) -> int:
    """Myhill-Nerode classes of prefixes under all continuations, by brute force."""
    ends = np.array(continuations, np.int64).reshape(len(continuations), -1)
    seen = set()
    for prefix in prefixes:
        starts = np.tile(np.array(prefix, np.int64), (len(ends), 1))
        seen.add(task.answer(np.concatenate([starts, ends], axis=1)).tobytes())
    return len(seen)


@pytest.mark.parametrize(("n", "V"), [(1, 2), (2, 2), (3, 3), (2, 5), (5, 2)])
def test_classes_of_eva(n: int, V: int) -> None:
    task = Eva(n=n, V=V)
    found = classes(task, itertools.product(range(V), repeat=n), [(x,) for x in range(n)])
    assert task.prefix_classes().exact() == found == V**n


@pytest.mark.parametrize(("n", "M"), [(1, 3), (2, 3), (3, 4), (2, 5), (4, 4), (5, 4), (3, 6), (4, 5)])
def test_classes_of_two_sum(n: int, M: int) -> None:
    ends = [(x,) for x in range(M)]
    query = TwoSum(n=n, M=M)
    assert query.prefix_classes().exact() == classes(query, itertools.product(range(M), repeat=n), ends)
    decision = TwoSum(n=n + 1, M=M, form="decision")
    assert decision.prefix_classes().exact() == classes(decision, itertools.product(range(M), repeat=n), ends)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_classes_of_equality(n: int) -> None:
    task, strings = Equality(n=n), list(itertools.product(range(2), repeat=n))
    assert task.prefix_classes().exact() == classes(task, strings, strings) == 2**n


@pytest.mark.parametrize(
    ("n", "k", "D"),
    [(2, 1, 1), (4, 1, 1), (6, 1, 1), (8, 1, 3), (2, 2, 1), (4, 2, 1), (4, 2, 2), (6, 2, 1), (6, 2, 2), (6, 2, 3), (4, 3, 2)],
)
def test_classes_of_dyck(n: int, k: int, D: int) -> None:
    """The prefix length named has the count claimed, and no other length has more."""
    task = Dyck(n=n, k=k, D=D)
    found = {
        t: classes(task, itertools.product(range(2 * k), repeat=t), list(itertools.product(range(2 * k), repeat=n - t)))
        for t in range(1, n)
    }
    assert task.prefix_classes().exact() == found[task.prefix_length] == max(found.values())


@pytest.mark.parametrize(("L", "m", "branching"), [(1, 2, ()), (1, 3, ()), (2, 2, (1,)), (2, 3, (1,)), (2, 2, (2,)), (3, 2, (1, 1))])
def test_classes_of_seqcomp(L: int, m: int, branching: tuple[int, ...]) -> None:
    task = SeqComp(L=L, m=m, branching=branching)
    last = task.entries(L)
    limits = [task.entries(level) for level in range(L - 1, 0, -1) for _ in range(task.entries(level))] + [m, task.w_values]
    ends = list(itertools.product(*map(range, limits)))
    found = classes(task, itertools.product(range(last), repeat=last), ends)
    assert task.prefix_classes().exact() == found == last**last


def test_token_order_of_seqcomp_by_hand() -> None:
    """L = 2, m = 2, n_1 = 2: z_2 has 4 entries (row a, column i at 2a + i), then z_1, z_0, w."""
    task = SeqComp(L=2, m=2, branching=(2,))
    assert (task.length, task.offset(2), task.offset(1), task.position_z0, task.position_w) == (8, 0, 4, 6, 7)
    prompt = np.array([[3, 2, 1, 0, 1, 0, 0, 1]])  # i_1 = z_1(0) = 1, i_2 = z_2(1, 1) = entry 3 = 0
    assert task.intermediate(prompt).tolist() == [[1, 0]]
    assert task.length == task.N(0) + task.N(1) + 2


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
            lambda m, ns: SeqComp(L=len(ns) + 1, m=m, branching=tuple(ns)), st.integers(2, 1000), st.lists(st.integers(1, 9), max_size=5)
        ),
    )
)
def test_any_task_prints_and_parses_back(task: Task) -> None:
    assert parse_task(task.spec) == task


@given(st.integers(2, 1000), st.lists(st.integers(1, 9), min_size=1, max_size=5), st.data())
def test_w_splits_and_joins(m: int, branching: list[int], data: Any) -> None:
    task = SeqComp(L=len(branching) + 1, m=m, branching=tuple(branching))
    w = data.draw(st.integers(0, task.w_values - 1))
    parts = task.split_w(w)
    assert all(0 <= part < n for part, n in zip(parts, branching, strict=True))
    assert task.join_w(parts) == w


@pytest.mark.parametrize("n", [16, 17, 22, 4096])
def test_the_largest_seqcomp_that_fits(n: int) -> None:
    task = SeqComp.of_length(3, n)
    assert task.length <= n < SeqComp(L=3, m=task.m + 1, branching=(2, 2)).length


@pytest.mark.parametrize("task", EVERY_TASK, ids=str)
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


@pytest.mark.parametrize(
    ("task", "place", "token"),
    [(Eva(n=3, V=8), -1, 3), (Eva(n=8, V=3), 0, 3), (SeqComp(L=2, m=3, branching=(2,)), -2, 3), (SeqComp(L=2, m=3, branching=(2,)), -1, 2)],
    ids=str,
)
def test_a_token_out_of_its_own_range_is_refused(task: Task, place: int, token: int) -> None:
    tokens = task.sample(1, np.random.default_rng(0)).tokens
    tokens[0, place] = token
    with pytest.raises(SizeError, match="must lie in"):
        task.answer(tokens)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("eva", "size n is missing"),
        ("eva:n=0", "at least 1|from 1"),
        ("eva:n=4,V=1", "from 2"),
        ("eva:n", "size=value"),
        ("eva:n=4,n=5", "given twice"),
        ("eva:n=4,k=5", "unknown size"),
        ("eva:n=four", "must be an integer"),
        ("eva:n=1_", "must be an integer"),
        ("eva:n=\u0663", "must be an integer"),
        ("eva:n=1e3", "must be an integer"),
        ("eva:n=-3", "n is -3"),
        ("eva:n=1", "V is 1"),
        (f"eva:n={10**30}", r"n is 10\^30; it must be an integer from 1 to 10\^12"),
        (f"eva:n={'9' * 5000}", r"n=9{12}\.\.\. .* is too large"),
        ("eva:n=4,,V=3", "size=value"),
        ("eva:", "size=value"),
        ("evs:n=4", "Did you mean 'eva'"),
        ("", "the task is empty"),
        (" :n=3", "the task is empty"),
        ("xyzzy", r"Known: .*eva, seqcomp, twosum.* `separatrix tasks` lists all"),
        ("seqcomp:m=4", "L"),
        ("seqcomp:L=0,m=4", "L is 0"),
        ("seqcomp:L=3,m=4,n_1=2", "n_2 is missing"),
        ("seqcomp:L=2,m=4,n_1=0", "n_1 is 0"),
        ("seqcomp:L=3,n=15", "the smallest is 16"),
        ("seqcomp:L=2,n=64,m=4", "give either n, or m"),
        ("seqcomp:L=2,n=64,n_1=4", "give either n, or m"),
        ("seqcomp:L=2,m=4,n_1=2,n_2=2", "unknown size 'n_2' of task 'seqcomp'. Did you mean 'n_1'"),
        ("seqcomp:L=65,m=4", "L is 65; it must be an integer from 1 to 64"),
        ("seqcomp:L=1,m=1", "m is 1; it must be an integer from 2"),
        (f"seqcomp:L=3,m=4,n_1={10**99},n_2={10**99}", r"a prompt has at most 10\^100"),
        ("twosum:n=4", "M is missing"),
        ("twosum:n=4,M=2", "M is 2"),
        ("twosum:n=1,M=8,form=decision", "n is 1"),
        ("twosum:n=4,M=8,form=decide", "Did you mean 'decision'"),
        ("equality:n=0", "n is 0"),
        ("equality", "size n is missing"),
        ("dyck:n=5,k=2,D=2", "n must be even"),
        ("dyck:n=0,k=2,D=2", "n is 0"),
        ("dyck:n=4,k=0,D=2", "k is 0"),
        ("dyck:n=4,k=2,D=0", "D is 0"),
        ("dyck:n=4,k=2", "size D is missing"),
    ],
)
def test_bad_task_texts(text: str, said: str) -> None:
    with pytest.raises(SeparatrixError, match=said) as caught:
        parse_task(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("batch", [0, -1, 10**10, 10**30, 2.0, True, "3", None])
@pytest.mark.parametrize("task", [Eva(n=5, V=5), SeqComp(L=1, m=4), TwoSum(n=5, M=7), Equality(n=3), Dyck(n=6, k=2, D=2)], ids=str)
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
    assert task.prefix_classes().exceeds_bits(10**12 - 1)
    with pytest.raises(SizeError, match=r"2\^30"):
        task.sample(1, np.random.default_rng(0))
    with pytest.raises(SizeError, match="shape"):
        task.answer(np.zeros((1, 3), np.int64))


@pytest.mark.parametrize("size", [10**30, 10**5000, -(10**5000), 4.0, "4", True, None], ids=range(7))
def test_bad_sizes_in_python(size: Any) -> None:
    with pytest.raises(SizeError, match=r"n is .* integer from 1"):
        Eva(n=size, V=4)
    with pytest.raises(SizeError, match=r"M is .* integer from 3"):
        TwoSum(n=4, M=size)


@pytest.mark.parametrize("branching", [(), (2, 2), [2], None, (2.0,), (0,), (True,)])
def test_bad_branching_in_python(branching: Any) -> None:
    with pytest.raises(SizeError, match="n_1"):
        SeqComp(L=2, m=4, branching=branching)
