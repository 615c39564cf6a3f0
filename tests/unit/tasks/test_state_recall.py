"""State-based recall: ids and chain by hand, and a sampler that gives nothing away."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.tasks import StateRecall, parse_task

TASK = StateRecall(n=4, V=2, K=2, P=3)
PROMPT = [1, 0, 0, 1, 4, 2, 5, 6, 8, 10]
"""Cells are ids 2..5, swaps 0~1, 0~2, 1~2 are 6, 7, 8, questions 9..11."""


def starts(task: StateRecall) -> list[int]:
    """The first id of the values, cells, swaps and questions."""
    return [ids.start for ids in task.token_ids.values()]


def test_the_table_that_opens_the_module() -> None:
    """?1 was 2 before 1~2, and 2 before 0~1; pointer 2 points to cell 3, which holds 1."""
    assert (TASK.length, TASK.vocabulary, TASK.swaps, starts(TASK)) == (10, 12, 3, [0, 2, 6, 9])
    assert TASK.chain(np.array([PROMPT])).tolist() == [[11, 11, 5, 1]]
    assert parse_task("state-recall:n=8,V=2,K=3") == StateRecall(n=8, V=2, K=3, P=5)


@each(
    "place, token, said",
    [
        (0, 2, "the memory holds 2"),
        (4, 1, "a pointer holds 1"),
        (4, 5, "point to one cell"),
        (7, 5, "a swap holds 5"),
        (7, 9, "a swap holds 9"),
        (9, 8, "the question holds 8"),
        (9, 12, "token ids run from"),
    ],
)
def test_what_is_no_instance(place: int, token: int, said: str) -> None:
    prompt = list(PROMPT)
    prompt[place] = token
    with pytest.raises(SizeError, match=said):
        TASK.answer(np.array([prompt]))


@pytest.mark.parametrize(
    "task",
    [
        StateRecall(n=6, V=3, K=1, P=3),
        StateRecall(n=8, V=2, K=3, P=5),
        StateRecall(n=10, V=4, K=6, P=4),
    ],
    ids=str,
)
def test_what_is_asked_for_began_anywhere(task: StateRecall) -> None:
    """The pointer asked for and where it pointed from at the beginning are independent; every
    swap is uniform.
    """
    total = 40_000
    tokens, _ = task.sample(total, np.random.default_rng(0))
    first = task.chain(tokens)[:, task.K - 1] - starts(task)[3]
    pairs = np.bincount(first * task.P + tokens[:, -1] - starts(task)[3], minlength=task.P**2)
    expected = total / task.P**2
    assert ((pairs - expected) ** 2 / expected).sum() < task.P**2 + 5 * (2 * task.P**2) ** 0.5
    for place in range(task.n + task.P, task.length - 1):
        seen = np.bincount(tokens[:, place] - starts(task)[2], minlength=task.swaps)
        expected = total / task.swaps
        assert ((seen - expected) ** 2 / expected).sum() < task.swaps + 5 * (2 * task.swaps) ** 0.5


def test_the_cell_asked_for_is_uniform_and_the_memory_balanced() -> None:
    task = StateRecall(n=8, V=4, K=2, P=3)
    tokens, _ = task.sample(20_000, np.random.default_rng(1))
    assert (np.sort(tokens[:, :8], axis=1) == [0, 0, 1, 1, 2, 2, 3, 3]).all()
    cells = np.bincount(task.chain(tokens)[:, 2] - 4, minlength=8)
    assert ((cells - 2500) ** 2 / 2500).sum() < 7 + 5 * 14**0.5


def test_levels_by_hand() -> None:
    """n = 7, V = 3: one value stands in 3 cells, two in 2. Two cells agree in 3 x 2 + 2 x 2 of
    42 ordered pairs.
    """
    uneven = StateRecall(n=7, V=3, K=1, P=3)
    assert uneven.level("counts") == Fraction(3, 7)
    assert uneven.level("position") == Fraction(1, 7) + Fraction(6, 7) * Fraction(2 * 2 + 3 * 2, 42)
    assert uneven.level("last tokens") == uneven.chance == Fraction(1, 3)
    even = StateRecall(n=12, V=4, K=1, P=3)
    assert {even.level(probe) for probe in ("counts", "position", "nearest key", "constant")} == {
        Fraction(1, 4)
    }
    scarce = StateRecall(n=5, V=8, K=1, P=3)
    assert scarce.level("counts") == scarce.level("position") == Fraction(1, 5)


@pytest.mark.parametrize(
    ("n", "V", "P", "share"),
    [
        (8, 2, 3, Fraction(5, 7)),
        (12, 4, 5, Fraction(24, 55)),
        (16, 8, 5, Fraction(62, 195)),
        (6, 2, 6, Fraction(1, 2)),
        (5, 8, 5, Fraction(1, 5)),
    ],
)
def test_the_most_frequent_value_pointed_to(n: int, V: int, P: int, share: Fraction) -> None:
    """Right with probability E[M]/P, whatever is swapped: over all choices of P cells, and in
    instances drawn.
    """
    task = StateRecall(n=n, V=V, K=4, P=P)
    total = 20_000
    memory = np.arange(n) % V
    assert (
        Fraction(
            sum(np.bincount(memory[list(cells)]).max() for cells in combinations(range(n), P)),
            comb(n, P) * P,
        )
        == share
    )
    tokens, targets = task.sample(total, np.random.default_rng(2))
    values = np.take_along_axis(tokens[:, :n], tokens[:, n : n + P] - V, axis=1)
    modes = (values[:, :, None] == np.arange(V)).sum(axis=1).argmax(axis=1)
    assert (
        abs((modes == targets).mean() - float(share))
        < 4.5 * (float(share * (1 - share)) / total) ** 0.5
    )


def test_more_values_than_memory() -> None:
    task = StateRecall(n=5, V=10**9, K=3)
    tokens, targets = task.sample(2000, np.random.default_rng(3))
    assert (task.answer(tokens) == targets).all()
    assert (np.diff(np.sort(tokens[:, :5], axis=1)) > 0).all()
    assert abs(tokens[:, :5].mean() / 1e9 - 0.5) < 5 * (1 / 12 / 10_000) ** 0.5


def test_every_memory_of_different_values_is_as_likely() -> None:
    """n = 3 of V = 4: 24 of them."""
    tokens = StateRecall(n=3, V=4, K=1, P=3).sample(24_000, np.random.default_rng(4)).tokens[:, :3]
    seen = np.bincount(tokens @ [16, 4, 1])
    assert (seen > 0).sum() == 24
    assert ((seen[seen > 0] - 1000) ** 2 / 1000).sum() < 23 + 5 * 46**0.5


@pytest.mark.parametrize(("K", "P"), [(1, 3), (2, 3), (4, 6), (24, 6)])
def test_no_swap_is_special(K: int, P: int) -> None:
    """A swap moves what is asked for as often as any other does, within 5 sigma of each."""
    task = StateRecall(n=P, V=2 * P, K=K, P=P)
    total = 20_000
    tokens, _ = task.sample(total, np.random.default_rng(5))
    chain = task.chain(tokens)
    at = np.concatenate((tokens[:, -1:], chain[:, :K]), axis=1)
    moved = (at[:, 1:] != at[:, :-1]).mean(0)
    assert np.abs(moved - moved.mean()).max() < 5 * (0.25 / total) ** 0.5
