"""Majority: answers and ties by hand, how often the winner comes, classes at every prefix
length, and the levels by brute force.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from support.counted_classes import counted_classes
from support.each import each

from separatrix.tasks import Majority


def test_answers_by_hand() -> None:
    """The smaller symbol wins a tie; the last prompt is the table that opens the module."""
    assert Majority(n=3).answer(np.array([[0, 0, 1], [1, 0, 1], [1, 1, 1]])).tolist() == [0, 1, 1]
    assert Majority(n=4).answer(np.array([[0, 1, 1, 0], [1, 0, 1, 1]])).tolist() == [0, 1]
    assert Majority(n=4, k=3).answer(
        np.array([[2, 2, 1, 1], [2, 0, 2, 1], [0, 1, 2, 2]])
    ).tolist() == [1, 2, 2]
    assert Majority(n=7, k=3).answer(np.array([[1, 0, 2, 1, 2, 1, 0]])).tolist() == [1]


@each(
    "n, k, counts",
    [
        *(
            (3, 2, [2, 1]),
            (9, 2, [5, 4]),
            (8, 2, [5, 3]),
            (7, 3, [3, 2, 2]),
            (8, 3, [4, 2, 2]),
            (9, 3, [4, 3, 2]),
        ),
        *((5, 5, [2, 1, 1, 1, 0]), (10, 4, [4, 2, 2, 2])),
    ],
)
def test_the_winner_wins_as_barely_as_it_can(n: int, k: int, counts: list[int]) -> None:
    task = Majority(n=n, k=k)
    tokens, targets = task.sample(400, np.random.default_rng(0))
    assert task.least == counts[0]
    for row, target in zip(tokens.tolist(), targets.tolist(), strict=True):
        assert row.count(target) == counts[0]
        assert sorted((row.count(symbol) for symbol in range(k)), reverse=True) == counts


@each("n, k", [(3, 2), (6, 2), (7, 2), (4, 3), (6, 3)])
def test_order_is_uniform(n: int, k: int) -> None:
    """Chi-square over all prompts that can be drawn, below freedom + 5 sigma."""
    task = Majority(n=n, k=k)
    total = 20_000
    tokens, _ = task.sample(total, np.random.default_rng(1))
    drawn = Counter(map(tuple, tokens.tolist()))
    shape = sorted(Counter(next(iter(drawn))).values())
    possible = [
        p for p in itertools.product(range(k), repeat=n) if sorted(Counter(p).values()) == shape
    ]
    assert set(drawn) <= set(possible)
    mean = total / len(possible)
    assert (
        sum((drawn[p] - mean) ** 2 / mean for p in possible)
        < len(possible) + 5 * (2 * len(possible)) ** 0.5
    )


def largest_guess(task: Majority, view: Callable[[tuple[int, ...]], object]) -> Fraction:
    """Accuracy of the best guess from a view of the prompt, over all prompts that can be drawn,
    which are equally likely.
    """
    tokens, _ = task.sample(1, np.random.default_rng(0))
    shape = sorted(Counter(tokens[0].tolist()).values())
    prompts = [
        p
        for p in itertools.product(range(task.k), repeat=task.n)
        if sorted(Counter(p).values()) == shape
    ]
    seen: dict[object, Counter[int]] = {}
    for prompt in prompts:
        seen.setdefault(view(prompt), Counter())[Counter(prompt).most_common(1)[0][0]] += 1
    return Fraction(sum(max(answers.values()) for answers in seen.values()), len(prompts))


def behind_nearest(prompt: tuple[int, ...]) -> int:
    """The token behind the latest earlier token whose id is nearest to the last one's without
    being equal.
    """
    near = min(abs(x - prompt[-1]) for x in prompt[:-1] if x != prompt[-1])
    return prompt[max(p for p, x in enumerate(prompt[:-1]) if abs(x - prompt[-1]) == near) + 1]


@pytest.mark.parametrize(
    ("n", "k"),
    [
        (3, 2),
        (4, 2),
        (7, 2),
        (10, 2),
        (3, 3),
        (4, 3),
        (5, 3),
        (7, 3),
        (8, 3),
        (5, 4),
        (6, 4),
        (5, 5),
    ],
)
def test_levels_by_brute_force(n: int, k: int) -> None:
    """What one place and the token behind the nearest key are worth."""
    task = Majority(n=n, k=k)
    assert task.level("position") == largest_guess(task, lambda prompt: prompt[0])
    assert task.level("nearest key") == largest_guess(task, behind_nearest)
    assert (task.level("counts"), task.level("constant")) == (1, Fraction(1, k))


@each("n", range(3, 14))
def test_no_other_prefix_of_two_symbols_has_more_classes(n: int) -> None:
    """By the number of ones so far and of ones to come."""
    found = [
        len({tuple(2 * (c + e) > n for e in range(n - t + 1)) for c in range(t + 1)})
        for t in range(n + 1)
    ]
    task = Majority(n=n)
    assert (
        counted_classes(task).exact() == found[task.prefix_length] == max(found) == (n + 1) // 2 + 1
    )


def shares(total: int, parts: int) -> list[tuple[int, ...]]:
    return [c for c in itertools.product(range(total + 1), repeat=parts) if sum(c) == total]


@each(
    "n, k",
    [*((n, 3) for n in range(3, 13)), *((n, 4) for n in range(4, 9)), (5, 5), (6, 5), (7, 5)],
)
def test_all_counts_of_half_a_prompt_are_told_apart(n: int, k: int) -> None:
    """By counts instead of prompts, which reaches further than the contract's brute force."""
    t = (n + 1) // 2
    ends = np.array(shares(n - (n + 1) // 2, k))
    rows = {(np.array(c) + ends).argmax(1).tobytes() for c in shares(t, k)}
    assert counted_classes(Majority(n=n, k=k)).exact() == len(rows) == comb(t + k - 1, k - 1)
