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

from separatrix.tasks import Counting

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
    """A place and the nearest key, in fractions."""
    if task.length > 1:
        assert task.level("position") == best_guess(task, lambda prompt: prompt[0])
    assert task.level("nearest key") == best_guess(task, behind_nearest)
    assert task.level("constant") == task.chance
