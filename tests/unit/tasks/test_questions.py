"""Levels of tasks with several answers per prompt, against every prompt of small sizes with its
exact probability: what each probe could reach at best.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from fractions import Fraction
from math import factorial, lcm

import numpy as np
import pytest
from support.each import each
from support.question_cases import by_hand

from separatrix.constructions import construct
from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import NO_ANSWER, Questions, parse_task
from separatrix.tasks.audits.probes import (
    Prompts,
    _behind_nearest,  # pyright: ignore[reportPrivateUsage]
    cut,
)
from separatrix.tasks.resized import resized
from separatrix.theory.judge import THEOREMS, graded, judge, recheck

Row = tuple[tuple[int, ...], Fraction]
"""A prompt and its probability."""
Look = Callable[[list[int], int], Hashable]
"""What a probe sees of a prompt and the place where an answer is due."""


def asked(text: str) -> Questions:
    task = parse_task(text)
    assert isinstance(task, Questions)
    return task


def best(task: Questions, rows: Iterable[Row], look: Look) -> Fraction:
    """Accuracy of the best guess from what `look` sees, over a uniform one of the answers."""
    seen: dict[Hashable, Counter[int]] = defaultdict(Counter)
    scale = 0
    rows = list(rows)
    every = lcm(*(share.denominator for _, share in rows))
    for prompt, share in rows:
        weight = share * every
        for place, answer in enumerate(by_hand(task, list(prompt))):
            if answer != NO_ANSWER:
                seen[look(list(prompt), place)][answer] += weight.numerator
                scale += weight.numerator
    return Fraction(sum(max(each.values()) for each in seen.values()), scale)


def constant(prompt: list[int], place: int) -> Hashable:
    return None


def last_three(prompt: list[int], place: int) -> Hashable:
    return tuple(prompt[max(0, place - 2) : place + 1])


def nearest(prompt: list[int], place: int) -> Hashable:
    tokens = np.array([prompt])
    nothing = max(prompt) + 1
    return int(_behind_nearest(cut(tokens, np.array([place]), nothing=nothing))[0])


def at(column: int) -> Look:
    return lambda prompt, place: prompt[column] if column < place else None


def values(n: int) -> Look:
    """The values of n pairs, in whatever order."""
    return lambda prompt, place: tuple(sorted(prompt[1 : 2 * n : 2]))


def uniform(rows: Iterable[tuple[int, ...]]) -> list[Row]:
    every = list(rows)
    return [(row, Fraction(1, len(every))) for row in every]


def bits(n: int) -> list[Row]:
    return uniform(itertools.product(range(2), repeat=n))


@pytest.mark.parametrize("queries", ["all", "4"])
def test_prefixes_of_parity(queries: str) -> None:
    task = asked(f"parity:n=7,queries={queries}")
    assert best(task, bits(7), constant) == task.chance == Fraction(1, 2)
    assert best(task, bits(7), last_three) == task.level("last tokens")
    assert best(task, bits(7), nearest) <= task.level("nearest key")
    assert all(best(task, bits(7), at(column)) == task.level("position") for column in range(6))


def test_early_places_of_state_tracking_are_certain_and_late_ones_chance() -> None:
    """Of 16 places 3 are a look at the last tokens, and 7 of them at fewer than 8 tokens."""
    chance = Fraction(1, 24)
    every = asked("permutation:n=16,k=4,queries=all")
    assert every.level("last tokens") == (3 + 13 * chance) / 16
    assert every.level("counts") == (7 + 9 * chance) / 16
    late = asked("permutation:n=16,k=4,queries=9")
    assert {late.level(probe) for probe in ("last tokens", "counts", "nearest key")} == {chance}
    assert late.level("parities") == 2 * chance


def recalled(n: int, K: int, V: int, k: int, *, independent: bool) -> Iterator[Row]:
    """Prompts of recall by what their words say: every list of values with its weight."""
    lists: Counter[tuple[int, ...]] = Counter()
    if independent:
        lists.update(itertools.product(range(V), repeat=n))
    elif n < V:
        lists.update(itertools.permutations(range(V), n))
    else:
        for more in itertools.product(range(V), repeat=n - V):
            lists.update(itertools.permutations((*range(V), *more)))
    total = lists.total()
    ways = factorial(K) // factorial(K - n) * factorial(n) // factorial(n - k)
    for keys in itertools.permutations(range(V, V + K), n):
        for values, often in lists.items():
            pairs = tuple(itertools.chain.from_iterable(zip(keys, values, strict=True)))
            for queries in itertools.permutations(keys, k):
                yield (*pairs, *queries), Fraction(often, total * ways)


@pytest.mark.parametrize(
    ("n", "K", "V", "k", "form"),
    [
        (3, 3, 2, 2, "present"),
        (2, 3, 2, 2, "present"),
        (2, 3, 4, 1, "present"),
        (3, 3, 2, 1, "independent"),
        (2, 3, 3, 2, "independent"),
    ],
)
def test_keys(n: int, K: int, V: int, k: int, form: str) -> None:
    task = asked(f"recall:n={n},K={K},V={V},form={form},queries={k}")
    rows = list(recalled(n, K, V, k, independent=form == "independent"))
    assert best(task, rows, constant) == task.chance == Fraction(1, V)
    assert best(task, rows, values(n)) <= task.level("counts")
    assert best(task, rows, at(1)) <= task.level("position")
    assert best(task, rows, nearest) <= task.level("nearest key")


@pytest.mark.parametrize(("n", "V", "k"), [(8, 4, 1), (12, 4, 2)])
def test_hops(n: int, V: int, k: int) -> None:
    task = asked(f"khop:n={n},V={V},k={k},queries=all")
    blocks = list(itertools.permutations(range(V)))
    # letters are alike, so that the newest block may be in any order; but who knows this order
    # knows the place, too, and its own letters
    rows = uniform(
        tuple(itertools.chain(*row, blocks[0]))
        for row in itertools.product(blocks, repeat=n // V - 1)
    )
    for back in range(1, n):
        assert _right(task, rows, lambda place, back=back: place - back) <= task.level("position")
        assert _right(task, rows, lambda place, back=back: back - 1) <= task.level("position")


def _right(task: Questions, rows: list[Row], where: Callable[[int], int]) -> Fraction:
    """How often the letter at `where(place)` is the answer due at the place."""
    due = [
        0 <= where(place) < place and prompt[where(place)] == answer
        for prompt, _ in rows
        for place, answer in enumerate(by_hand(task, list(prompt)))
        if answer != NO_ANSWER
    ]
    return Fraction(sum(due), len(due))


def test_longer_sizes_of_a_model_that_was_asked_everywhere() -> None:
    task = asked("parity:n=8,queries=all")
    other, text = resized(task, "n=16,queries=4")
    assert (other.spec, text) == ("parity:n=16,queries=4", "n=16,queries=4")
    starts = asked("seqcomp:L=2,m=4,n_1=8,queries=8,split=1,stages=1")
    assert resized(starts, "queries=9,stages=0").task.spec.endswith("queries=9,split=1")
    with pytest.raises(SizeError, match="leaves"):
        resized(task, "n=8")


def test_theorem_a_is_about_each_answer() -> None:
    """A state of 2^k bits and n independent facts: the ceiling is that of one question."""
    stack = Architecture.parse("linear(heads=1,head_dim=2)")
    one = parse_task("recall:n=4000,K=8000,V=16,form=independent")
    every = parse_task("recall:n=4000,K=8000,V=16,form=independent,queries=all")
    said = [graded(stack, task) for task in (one, every)]
    assert said[0] is not None
    assert said[1] is not None
    assert said[0].numbers == said[1].numbers
    stages = parse_task("seqcomp:L=2,m=400,n_1=8,queries=8,split=1,stages=1")
    assert graded(stack, stages) is None


def test_seen_prompts_end_in_their_question() -> None:
    task = asked("seqcomp:L=2,m=3,n_1=2,queries=2,split=1,stages=1")
    tokens, _ = task.sample(50, np.random.default_rng(0))
    for place in range(9, 13):
        seen: Prompts = cut(tokens, np.full(50, place), nothing=task.vocabulary)
        alone = task.alone(seen.front, seen.back)
        z_0, w = (place, None) if place % 2 else (place - 1, place)
        assert (alone[:, :9] == tokens[:, :9]).all()
        assert (alone[:, 9] == tokens[:, z_0]).all()
        assert (alone[:, 10] == (0 if w is None else tokens[:, w])).all()


@each(
    "text, before, after",
    [
        ("parity:n=4,queries=all", [2] * 3, [2]),
        ("eva:n=2,V=3,queries=all", [3] * 2, [2] * 2),
        ("seqcomp:L=2,m=2,n_1=1,queries=1,split=1", [2] * 2, [2, 2, 2, 1]),
        ("seqcomp:L=2,m=2,n_1=1,queries=all", [2] * 2, [2, 2, 1, 2, 2]),
        ("twosum:n=2,M=7,queries=1", [7] * 2, [7]),
    ],
)
def test_prefix_classes_by_brute_force(text: str, before: list[int], after: list[int]) -> None:
    task = asked(text)
    assert len(before) == task.prefix_length
    ends = [end for end in itertools.product(*map(range, after)) if _allowed(task, before, end)]
    rows = {
        tuple(tuple(by_hand(task, [*prefix, *end])[task.prefix_length :]) for end in ends)
        for prefix in itertools.product(*map(range, before))
    }
    count = task.prefix_classes()
    assert count is not None
    assert count.exact() == len(rows)


def _allowed(task: Questions, before: list[int], end: tuple[int, ...]) -> bool:
    """Whether what follows a prefix may follow it: no question is asked twice."""
    try:
        task.answer(np.array([[*(0 for _ in before), *end]]))
    except SizeError:
        return False
    return True


@pytest.mark.parametrize(
    ("stack", "text"),
    [
        ("linear(heads=1,head_dim=2,positions=none)", "parity:n=10000000000,queries=all"),
        ("linear(heads=1,head_dim=2,positions=none)", "eva:n=400000,V=2,queries=3"),
        ("linear(heads=1,head_dim=2)", "recall:n=400,K=800,V=16,form=independent,queries=9"),
        ("linear(heads=1,head_dim=2)", "seqcomp:L=3,m=40,n_1=3,n_2=2,queries=all,split=1,stages=1"),
    ],
)
def test_what_fails_one_question_fails_several(stack: str, text: str) -> None:
    """By the theorems that count prefixes, facts and runs; the verdict holds again."""
    task = asked(text)
    architecture = Architecture.parse(stack)
    found = judge(architecture, task)
    assert {verdict.status for verdict in found} == {"FAILS"}
    single = {verdict.theorem: verdict for verdict in judge(architecture, task.task)}
    for verdict in found:
        assert verdict.task == task.spec
        recheck(verdict)
        theorem = THEOREMS[verdict.theorem]
        # the n of composed functions is the length of a prompt, which has more questions
        least = theorem.smallest(task, verdict)
        assert isinstance(least, Questions)
        assert least.task == theorem.smallest(task.task, single[verdict.theorem])
        assert theorem.told(verdict, task, architecture).text


def test_theorems_about_one_question_are_silent() -> None:
    """One full layer answers eva, but its proof says nothing of several questions."""
    one = judge(Architecture.parse("full"), parse_task("eva:n=16"))
    assert one[0].status == "SOLVABLE"
    (verdict,) = judge(Architecture.parse("full"), parse_task("eva:n=16,queries=all"))
    assert verdict.status == "OPEN"
    with pytest.raises(SizeError, match="answer one question"):
        construct(parse_task("eva:n=16,queries=all"))
