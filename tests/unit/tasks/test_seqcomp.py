"""L-SeqComp: token order, helpers for places and the token w, the largest size that fits, all
against loops written from the definition.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.each import each
from support.task_cases import CASES

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Power
from separatrix.tasks import SeqComp, SeqCompForward, parse_task

TASK = SeqComp(L=3, m=8, branching=(4, 2))


def test_sizes_by_hand() -> None:
    """N_0 = 8, N_1 = 4 x 8 = 32, N_2 = 2 x 32 = 64; n = 8 + 32 + 64 + 2."""
    assert parse_task("seqcomp:L=3,m=8,n_1=4,n_2=2") == TASK
    assert TASK.spec == "seqcomp:L=3,m=8,n_1=4,n_2=2"
    assert [TASK.N(level) for level in (0, 1, 2)] == [8, 32, 64]
    assert [TASK.offset(level) for level in (3, 2, 1, 0)] == [0, 64, 96, 104]
    assert (TASK.position_z0, TASK.position_w, TASK.length) == (104, 105, 106)
    assert (TASK.w_values, TASK.vocabulary, TASK.answers, TASK.chance) == (
        8,
        64,
        64,
        Fraction(1, 64),
    )
    assert (TASK.prefix_length, TASK.prefix_classes()) == (64, Power(64, 64))


def test_one_function() -> None:
    """L = 1: z_1, z_0 and a w with one value."""
    task = SeqComp(L=1, m=3)
    assert (task.length, task.vocabulary, task.answers, task.w_values, task.prefix_length) == (
        5,
        3,
        3,
        1,
        3,
    )
    assert task.answer(np.array([[2, 0, 1, 0, 0], [2, 0, 1, 2, 0]])).tolist() == [2, 1]
    assert (task.split_w(0), task.join_w(())) == ((), 0)
    assert parse_task("seqcomp:L=1,m=3") == task
    assert (task.sample(50, np.random.default_rng(0)).tokens[:, -1] == 0).all()


def test_the_table_that_opens_the_module() -> None:
    task = SeqComp(L=2, m=2, branching=(2,))
    assert task.chain(np.array([[1, 0, 2, 3, 1, 0, 0, 1]])).tolist() == [[1, 3]]


def test_places_are_row_major() -> None:
    """Entry (a, i) of z_l is entry number a N_{l-2} + i of its part."""
    for level, rows, columns in ((3, 2, 32), (2, 4, 8)):
        expected = TASK.offset(level)
        for a, i in itertools.product(range(rows), range(columns)):
            assert TASK.position(level, a, i) == expected
            expected += 1
    assert [TASK.position(1, 0, i) for i in range(8)] == list(range(96, 104))
    a = np.arange(2).repeat(32)
    i = np.tile(np.arange(32), 2)
    assert TASK.position(3, a, i).tolist() == list(range(64))


def test_places_beyond_sixty_four_bits() -> None:
    """The smallest prompt known to break one bounded layer in each group (theory.md, Theorem V):
    n = 6.4415e25, in exact integers.
    """
    task = SeqComp(L=3, m=2062164, branching=(336675, 92780327893311))
    n_1 = 2062164 * 336675
    n_2 = n_1 * 92780327893311
    assert task.length == 2062164 + n_1 + n_2 + 2
    assert f"{task.length:.4e}" == "6.4415e+25"
    assert task.position(3, 92780327893310, n_1 - 1) == n_2 - 1
    assert task.position(2, 336674, 2062163) == n_2 + n_1 - 1
    w = task.join_w((336674, 92780327893310))
    assert w == 336675 * 92780327893311 - 1
    assert task.split_w(w) == (336674, 92780327893310)
    assert parse_task(task.spec) == task


def test_w_counts_its_tuples_first_part_fastest() -> None:
    tuples = [(a, b) for b in range(2) for a in range(4)]
    assert [TASK.split_w(w) for w in range(8)] == tuples
    assert [TASK.join_w(pair) for pair in tuples] == list(range(8))
    first, second = TASK.split_w(np.arange(8))
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == tuples
    assert np.array_equal(TASK.join_w([first, second]), np.arange(8))
    with pytest.raises(SizeError, match="w has 2 parts, 1"):
        TASK.join_w((1,))


@each("level", [-1, 3, 4, 1.0])
def test_levels_that_do_not_exist(level: int) -> None:
    with pytest.raises(SizeError, match="level is"):
        TASK.N(level)
    if level != 3:
        with pytest.raises(SizeError, match="level is"):
            TASK.offset(level)
    for asked in {level, 0} - {3, 1.0}:
        with pytest.raises(SizeError, match="level is"):
            TASK.position(asked, 0, 0)


@given(st.integers(1, 6), st.integers(0, 500))
def test_the_largest_m_that_fits(L: int, beyond: int) -> None:
    """With every n_l = 2 a prompt has m + 2m + ... + 2^{L-1} m + 2 tokens."""

    def length(m: int) -> int:
        return sum(m * 2**level for level in range(L)) + 2

    n = length(2) + beyond
    task = SeqComp.of_length(L, n)
    assert task == parse_task(f"seqcomp:L={L},n={n}")
    assert task.branching == (2,) * (L - 1)
    assert length(task.m) <= n < length(task.m + 1)
    assert task.length == length(task.m)
    with pytest.raises(SizeError, match=f"the smallest is {length(2)}"):
        SeqComp.of_length(L, length(2) - 1)


def test_every_intermediate_value_is_uniform() -> None:
    """Chi-square of i_1, i_2, i_3 below freedom + 5 sigma, and the last is the answer."""
    tokens, targets = TASK.sample(64_000, np.random.default_rng(2))
    chain = TASK.chain(tokens)
    assert chain.shape == (64_000, 3)
    assert (chain[:, -1] == targets).all()
    for column, values in enumerate((8, 32, 64)):
        counts = np.bincount(chain[:, column], minlength=values)
        expected = 64_000 / values
        assert len(counts) == values
        assert ((counts - expected) ** 2 / expected).sum() < values - 1 + 5 * (
            2 * (values - 1)
        ) ** 0.5


def test_every_entry_is_asked_for_in_every_row() -> None:
    """Places of z_3 that decide the answer: all 64, each with frequency 1/64 within 5 sigma."""
    total = 64_000
    tokens, _ = TASK.sample(total, np.random.default_rng(3))
    _, w_2 = TASK.split_w(tokens[:, TASK.position_w])
    counts = np.bincount(w_2 * 32 + TASK.chain(tokens)[:, 1], minlength=64)
    assert np.abs(counts / total - 1 / 64).max() < 5 * (1 / 64 / total) ** 0.5


def test_functions_on_one_domain() -> None:
    """form=uniform: every n_l = 1, so that n = L m + 2; functions are permutations unless told
    otherwise, or a shift says how they are drawn.
    """
    bijective = "permutations"
    uniform = SeqComp(L=3, m=8, branching=(1, 1), values=bijective)
    assert parse_task("seqcomp:L=3,m=8,form=uniform") == uniform == parse_task(uniform.spec)
    assert uniform.spec == "seqcomp:L=3,m=8,n_1=1,n_2=1,values=permutations"
    assert parse_task("seqcomp:L=3,n=31,form=uniform") == SeqComp(
        L=3, m=9, branching=(1, 1), values=bijective
    )
    assert parse_task("seqcomp:L=3,n=31,form=uniform").length == 29
    assert parse_task("seqcomp:L=1,m=8,form=uniform") == SeqComp(L=1, m=8, values=bijective)
    assert parse_task("seqcomp:L=2,m=8,form=uniform,values=functions") == SeqComp(
        L=2, m=8, branching=(1,)
    )
    assert parse_task("seqcomp:L=2,m=8,form=uniform,shift=few") == SeqComp(
        L=2, m=8, branching=(1,), shift="few"
    )
    assert uniform.family().at(9) == SeqComp(L=3, m=9, branching=(1, 1), values=bijective)


@pytest.mark.parametrize("kind", [SeqComp, SeqCompForward])
@pytest.mark.parametrize("branching", [(), (1, 1, 1), (3, 2)])
def test_permutations_take_every_value_once(
    kind: type[SeqComp | SeqCompForward], branching: tuple[int, ...]
) -> None:
    """Every z_l holds each of its values once, and the answer is uniform: chi-square below freedom
    + 5 sigma, beside the first entry of z_L too.
    """
    task = kind(L=len(branching) + 1, m=4, branching=branching, values="permutations")
    tokens, targets = task.sample(20_000, np.random.default_rng(4))
    for level in range(1, task.L + 1):
        start, count = task.offset(level), task.entries(level)
        part = np.sort(tokens[:, start : start + count], axis=1)
        assert (part == np.arange(count)).all()
    assert (task.answer(tokens) == targets).all()
    N = task.answers
    assert task.chance == task.level("counts") == task.level("position") == Fraction(1, N)
    same = (targets == tokens[:, task.offset(task.L)]).mean()
    assert abs(same - 1 / N) < 5 * (1 / N / 20_000) ** 0.5
    counts = np.bincount(targets, minlength=N)
    assert ((counts - 20_000 / N) ** 2 / (20_000 / N)).sum() < N + 5 * (2 * N) ** 0.5


def composed_modes(task: SeqComp | SeqCompForward, tokens: np.ndarray) -> np.ndarray:
    """The value that most z_0 lead to, w known."""
    copies = []
    for start in range(task.m):
        asked = tokens.copy()
        asked[:, task.position_z0] = start
        copies.append(task.answer(asked))
    ends = np.stack(copies, axis=1)
    return np.array([np.bincount(row, minlength=task.answers).argmax() for row in ends])


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("seqcomp:L=1,m=2", 0.75),
        ("seqcomp:L=3,m=3,n_1=2,n_2=1", 0.75),
        ("seqcomp:L=16,m=6,form=uniform,values=functions", 0.95),
        ("seqcomp:L=16,m=6,form=uniform", 1 / 6),
        ("seqcomp:L=2,m=4,n_1=2,values=permutations", 1 / 4),
    ],
)
def test_the_mode_of_the_composition_is_worth_what_is_told(text: str, share: float) -> None:
    """Within 4 standard errors and 0.03, as the task's words have it."""
    task = parse_task(text)
    assert isinstance(task, SeqComp)
    tokens, targets = task.sample(4000, np.random.default_rng(6))
    seen = (composed_modes(task, tokens) == targets).mean()
    assert abs(seen - share) < 0.03 + 4 * 0.008


def test_the_other_order_is_a_task_of_its_own() -> None:
    forward = parse_task("seqcomp-forward:L=2,n=64,shift=few")
    assert forward == SeqCompForward(L=2, m=20, branching=(2,), shift="few")
    assert not isinstance(forward, SeqComp)  # the theorems about L-SeqComp do not hold there


SHIFTS: list[SeqComp | SeqCompForward] = [
    kind(L=2, m=5, branching=(3,), shift=shift)
    for kind in (SeqComp, SeqCompForward)
    for shift in kind.shifts
]


@pytest.mark.parametrize("task", SHIFTS, ids=str)
def test_shifts_draw_what_they_say(task: SeqComp | SeqCompForward) -> None:
    assert parse_task(task.spec) == task
    assert task.family().at(5) == type(task)(L=2, m=5, branching=(3,))
    tokens, targets = task.sample(20_000, np.random.default_rng(0))
    assert (task.answer(tokens) == targets).all()
    z_2 = tokens[:, task.offset(2) : task.offset(2) + 15]
    distance = (z_2 - np.arange(15)) % 15
    match task.shift:
        case "zipf":  # octaves 0 | 1 2 | 3..6 | 7..14, a quarter each: chance 1/4, not 1/15
            share = np.bincount(z_2.ravel(), minlength=15) / z_2.size
            expected = [1 / 4, *[1 / 8] * 2, *[1 / 16] * 4, *[1 / 32] * 8]
            assert np.abs(share - expected).max() < 5 * (1 / 4 / z_2.size) ** 0.5
            assert task.chance == Fraction(1, 4)
        case "few":
            assert max(len(set(row)) for row in z_2.tolist()) == 4
            assert task.chance == Fraction(1, 15)
        case _:
            assert set(distance.ravel().tolist()) == {0, 1, 2, 13, 14}
            assert task.chance == Fraction(1, 15)
    best = np.bincount(targets).max() / len(targets)
    assert abs(best - float(task.chance)) < 5 * (float(task.chance) / len(targets)) ** 0.5


@each("values", [2, 3, 4, 5, 8, 100])
def test_octaves_end_with_the_values(values: int) -> None:
    """One over the number of binary digits of `values` for value 0, and no value beyond."""
    task = SeqComp(L=1, m=values, shift="zipf")
    law = {value: share for ids, share in task.law(1) for value in ids}
    assert (sorted(law), sum(law.values())) == ([*range(values)], 1)
    assert task.chance == law[0] == Fraction(1, len(f"{values:b}"))
    assert all(law[value] >= law[value + 1] for value in range(values - 2))


def behind_nearest(prompt: tuple[int, ...]) -> int:
    """The token behind the latest earlier one whose id is nearest to the last one's, but not the
    same; -1 if there is none.
    """
    places = [place for place, token in enumerate(prompt) if token != prompt[-1]]
    return (
        prompt[min(places, key=lambda place: (abs(prompt[place] - prompt[-1]), -place)) + 1]
        if places
        else -1
    )


@pytest.mark.parametrize("task", [*CASES["seqcomp"].tiny, *CASES["seqcomp-forward"].tiny], ids=str)
def test_levels_by_trying_every_instance(task: SeqComp | SeqCompForward) -> None:
    """The best any table can do that sees what a probe sees: equal to the level, or below it where
    that is a bound.
    """
    prompts = CASES[task.name].all_instances(task)
    right = task.answer(np.array(prompts)).tolist()

    def best(see: Callable[[tuple[int, ...]], Hashable]) -> Fraction:
        seen: dict[Hashable, Counter[int]] = {}
        for prompt, answer in zip(prompts, right, strict=True):
            seen.setdefault(see(prompt), Counter())[answer] += 1
        return Fraction(sum(max(answers.values()) for answers in seen.values()), len(prompts))

    assert best(lambda _: 0) == task.level("constant") == task.chance
    assert max(
        best(lambda prompt, place=place: prompt[place]) for place in range(task.length - 1)
    ) == task.level("position")
    assert best(lambda prompt: prompt[-3:]) <= task.level("last tokens")
    assert best(lambda prompt: tuple(sorted(prompt))) <= task.level("counts")
    assert best(behind_nearest) <= task.level("nearest key")
