"""Counting: answers by hand, the exact distribution of both forms, and what places, last tokens
and neighbours are worth.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from support.each import each

from separatrix.tasks import Counting, counting, parse_task

Law = dict[tuple[int, ...], Fraction]


def test_answers_by_hand() -> None:
    assert Counting(n=4).answer(np.array([[0, 0, 0, 0], [1, 0, 1, 1]])).tolist() == [0, 3]
    assert Counting(n=4, V=3, form="queried").answer(
        np.array([[2, 0, 2, 1, 2], [2, 0, 2, 0, 1], [1, 1, 1, 1, 1]])
    ).tolist() == [2, 0, 4]


def ones(n: int) -> Law:
    return {
        bits: Fraction(1, (n + 1) * comb(n, sum(bits)))
        for bits in itertools.product((0, 1), repeat=n)
    }


def queried(n: int, V: int, m: int) -> Law:
    """q uniform, m-1 other symbols, the places shared among the m in all ways alike, in uniform
    order.
    """
    law = {}
    for prompt in itertools.product(range(V), repeat=n + 1):
        *x, q = prompt
        others = [x.count(v) for v in range(V) if v != q and v in x]
        if len(others) < m:
            # of the sets of m-1 others, those that hold all that occur; ways to share; orders
            sets = Fraction(comb(V - 1 - len(others), m - 1 - len(others)), comb(V - 1, m - 1))
            orders = 1
            left = n
            for often in (x.count(q), *others):
                orders *= comb(left, often)
                left -= often
            law[prompt] = sets / (V * comb(n + m - 1, m - 1) * orders)
    return law


def law(task: Counting) -> Law:
    return ones(task.n) if task.form == "ones" else queried(task.n, task.V, task.symbols)


TASKS = [
    *(Counting(n=n) for n in (1, 2, 3, 6, 8)),
    *(
        Counting(n=n, V=V, form="queried")
        for n, V in ((1, 2), (5, 2), (3, 3), (5, 3), (6, 3), (4, 5))
    ),
]


@pytest.mark.parametrize("task", TASKS[::2], ids=str)
def test_the_sampler_follows_its_description(task: Counting) -> None:
    """Chi-square over all prompts below freedom + 5 sigma; nothing else is drawn; no answer is
    more likely than chance, exactly.
    """
    exact = law(task)
    total = 40_000
    assert sum(exact.values()) == 1
    drawn = Counter(map(tuple, task.sample(total, np.random.default_rng(3)).tokens.tolist()))
    assert set(drawn) <= set(exact)
    chi2 = sum(
        (drawn[prompt] - total * p) ** 2 / (total * p)
        for prompt, p in ((prompt, float(p)) for prompt, p in exact.items())
    )
    assert chi2 < len(exact) - 1 + 5 * (2 * (len(exact) - 1)) ** 0.5 + 5
    answers: dict[int, Fraction] = {}
    for p, answer in zip(exact.values(), task.answer(np.array(list(exact))).tolist(), strict=True):
        answers[answer] = answers.get(answer, Fraction(0)) + p
    assert max(answers.values()) == task.chance
    assert task.form == "queried" or set(answers.values()) == {task.chance}


def best_guess(task: Counting, view: Callable[[tuple[int, ...]], Hashable]) -> Fraction:
    seen: dict[Hashable, dict[int, Fraction]] = {}
    for prompt, p in law(task).items():
        answer = sum(prompt) if task.form == "ones" else prompt[:-1].count(prompt[-1])
        cell = seen.setdefault(view(prompt), {})
        cell[answer] = cell.get(answer, Fraction(0)) + p
    return sum((max(cell.values()) for cell in seen.values()), Fraction(0))


def behind_nearest(prompt: tuple[int, ...]) -> int:
    """The token behind the latest earlier token whose id is nearest to the last one's without
    being equal; -1 for none.
    """
    near = min((abs(x - prompt[-1]) for x in prompt[:-1] if x != prompt[-1]), default=0)
    return (
        prompt[max(p for p, x in enumerate(prompt[:-1]) if abs(x - prompt[-1]) == near) + 1]
        if near
        else -1
    )


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_levels_by_brute_force(task: Counting) -> None:
    """A place, the last tokens (three of ones; two with a query, since a linear probe cannot
    compare three) and the nearest key, in fractions.
    """
    width = 3 if task.form == "ones" else 2
    assert task.level("last tokens") == best_guess(task, lambda prompt: prompt[-width:])
    if task.length > 1:
        assert task.level("position") == best_guess(task, lambda prompt: prompt[0])
    assert task.level("nearest key") == best_guess(task, behind_nearest)
    assert task.level("constant") == task.chance


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_the_level_of_counts_is_the_best_guess_from_all_of_them(task: Counting) -> None:
    """In fractions, from how often each symbol occurs in the whole prompt, the last token
    included. Ones: the answer itself.
    """
    assert task.level("counts") == best_guess(
        task, lambda prompt: tuple(map(prompt.count, range(task.V)))
    )
    assert task.form == "queried" or task.level("counts") == 1


def alike(total: int, parts: int) -> Fraction:
    """`most_alike` by all ways to share."""
    ways = [d for d in itertools.product(range(total + 1), repeat=parts) if sum(d) == total]
    return Fraction(sum(max(d.count(v) for v in d if v) for d in ways), len(ways))


@pytest.mark.parametrize(("total", "parts"), [(1, 1), (2, 2), (7, 3), (8, 4), (6, 5), (4, 6)])
def test_bounds_of_equal_parts(total: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact where it says so; the union bounds are no less."""
    exact = alike(total, parts)
    assert counting.most_alike.__wrapped__(total, parts) == exact
    monkeypatch.setattr(counting, "_EXACT", 0)
    assert exact <= counting.most_alike.__wrapped__(total, parts) <= 2 * exact


def test_levels_of_long_prompts_take_no_time() -> None:
    task = Counting(n=10**12, V=10**9, form="queried")
    assert task.chance == Fraction(task.symbols - 1, 10**12 + task.symbols - 1)
    assert task.level("counts") == 1


@each("n, V, form", [(1, 2, "ones"), (7, 2, "ones"), (6, 3, "queried"), (4, 9, "queried")])
def test_chance_of_independent_tokens(n: int, V: int, form: str) -> None:
    """The most likely number of successes among n of probability 1/V."""
    likely = max(Fraction(comb(n, c) * (V - 1) ** (n - c), V**n) for c in range(n + 1))
    assert parse_task(f"counting:n={n},V={V},form={form},shift=independent").chance == likely


@each("text", ["n=8", "n=8,V=4,form=queried"])
def test_independent_tokens_are_counted_as_the_oracle_does(text: str) -> None:
    task = parse_task(f"counting:{text},shift=independent")
    drawn = task.sample(50, np.random.default_rng(0))
    assert task.answer(drawn.tokens).tolist() == drawn.targets.tolist()


def test_what_independent_prompts_ask_for() -> None:
    """Of queried ones any symbol, uniform and apart from the others; else how many are 1."""
    task = parse_task("counting:n=8,V=4,form=queried,shift=independent")
    tokens, targets = task.sample(4000, np.random.default_rng(0))
    assert tokens.shape == (4000, 9)
    # each share within five standard errors of 1/4
    error = 5 * (3 / 16 / 4000) ** 0.5
    assert np.abs(np.bincount(tokens[:, -1]) / 4000 - 1 / 4).max() < error
    assert np.abs(np.bincount(tokens[:, 0]) / 4000 - 1 / 4).max() < error
    # n p and n p (1 - p) of the number of successes
    assert abs(targets.mean() - 2) < 5 * (1.5 / 4000) ** 0.5
    bits = parse_task("counting:n=8,shift=independent").sample(50, np.random.default_rng(0))
    assert bits.tokens.shape == (50, 8)
    assert bits.tokens.sum(1).tolist() == bits.targets.tolist()
