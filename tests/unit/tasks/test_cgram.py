"""c-gram retrieval: the oracle against the definition, near misses, no shorter context suffices."""

from __future__ import annotations

import numpy as np
import pytest

from separatrix.core.errors import SizeError
from separatrix.tasks import CGram, parse_task


def test_the_table_of_the_module() -> None:
    assert CGram(n=13, V=8).answer(
        np.array([[2, 5, 7, 2, 6, 4, 3, 6, 1, 0, 2, 2, 6]])
    ).tolist() == [4]


def test_the_oracle_on_prompts_of_any_kind() -> None:
    """Most random prompts over four ids are no instances; those that are may have the two
    occurrences overlap.
    """
    task = CGram(n=11, V=4)
    rng = np.random.default_rng(0)
    met = set()
    answered = 0
    for prompt in rng.integers(4, size=(3_000, 11)).tolist():
        places = [start for start in range(9) if prompt[start : start + 2] == prompt[9:]]
        met.add(len(places))
        if len(places) == 1:
            answered += 1
            assert task.answer(np.array([prompt])).tolist() == [prompt[places[0] + 2]]
        else:
            with pytest.raises(SizeError, match=f"stand {len(places)} times"):
                task.answer(np.array([prompt]))
    assert {0, 1, 2} <= met
    assert answered > 300


def test_overlapping_occurrences_count() -> None:
    assert CGram(n=11, V=4).answer(np.array([[0, 1, 0, 1, 0, 1, 0, 2, 3, 3, 3]])).tolist() == [3]


@pytest.mark.parametrize(
    "task",
    [CGram(n=11, V=4), CGram(n=27, V=8), CGram(n=35, V=8, c=3), CGram(n=29, V=12, c=4)],
    ids=str,
)
def test_every_shorter_context_stands_there_with_another_token_at_the_missing_place(
    task: CGram,
) -> None:
    tokens = task.sample(300, np.random.default_rng(1)).tokens
    for prompt in tokens.tolist():
        asked = prompt[-task.c :]
        windows = [prompt[start : start + task.c] for start in range(task.n - task.c)]
        assert windows.count(asked) == 1
        differing = [
            [place for place in range(task.c) if window[place] != asked[place]]
            for window in windows
        ]
        assert all([place] in differing for place in range(task.c))


@pytest.mark.parametrize(
    ("task", "near"),
    [
        (CGram(n=26, V=8), 3),
        (CGram(n=35, V=8, c=3), 1),
        (CGram(n=39, V=9, c=3), 2),
        (CGram(n=256, V=1000), 41),
        (CGram(n=64, V=16), 7),
    ],
    ids=str,
)
def test_one_token_less_is_shared_by_several_contexts(task: CGram, near: int) -> None:
    """Answering what follows any context that agrees but in one place: that asked for, or one of
    at least `near` others.
    """
    total = 4_000
    c = task.c
    before = task.n - task.c
    m = task.entries
    rng = np.random.default_rng(2)
    tokens, targets = task.sample(total, rng)
    assert task.near_misses == near
    same = 0 if m < task.V else (m / task.V - 1) / (m - 1)
    bound = 1 / (near + 1) + near / (near + 1) * same
    starts = np.arange(before - m * (c + 1), before, c + 1)
    for left_out in range(c):
        agrees = [
            tokens[:, starts + place] == tokens[:, before + place, None] for place in range(c)
        ]
        met = np.logical_and.reduce(
            [agree for place, agree in enumerate(agrees) if place != left_out]
        )
        assert met.sum(axis=1).min() >= near + 1
        found = starts[np.where(met, rng.random(met.shape), -1).argmax(axis=1)]
        assert (tokens[np.arange(total), found + c] == targets).mean() < bound + 4.5 * (
            bound / total
        ) ** 0.5


@pytest.mark.parametrize("text", ["cgram:n=40,V=1000000000", "cgram:n=70,V=1000000000000,c=3"])
def test_more_ids_than_memory(text: str) -> None:
    task = parse_task(text)
    tokens, targets = task.sample(500, np.random.default_rng(5))
    assert (task.answer(tokens) == targets).all()
    assert abs(tokens.mean() / task.vocabulary - 0.5) < 5 * (1 / 12 / 500) ** 0.5


def test_ids_are_dealt_at_random_whether_they_are_few_or_many() -> None:
    """Each place of the context asked for holds any id as often, places different ones; 4 ids a
    place are dealt whole, 9 of 40 in part.
    """
    for task in (CGram(n=26, V=8), CGram(n=26, V=80)):
        asked = task.sample(20_000, np.random.default_rng(6)).tokens[:, -2:]
        assert (asked[:, 0] != asked[:, 1]).all()
        for seen in (
            np.bincount(asked[:, 0], minlength=task.V),
            np.bincount(asked[:, 1], minlength=task.V),
        ):
            expected = 20_000 / task.V
            assert ((seen - expected) ** 2 / expected).sum() < task.V + 5 * (2 * task.V) ** 0.5


def test_long_contexts_of_large_vocabularies() -> None:
    """2^30 ids for each of 32 places do not fit into one number; fewer are used."""
    task = CGram(n=33**2 + 32, V=10_000, c=32)
    tokens, targets = task.sample(3, np.random.default_rng(4))
    assert task.answer(tokens).tolist() == targets.tolist()


def test_the_family_ends_where_contexts_run_out() -> None:
    """V = 8, c = 2: four ids a place, 16 contexts, 16 * 3 + 2 tokens and up to two more."""
    family = CGram(n=26, V=8).family()
    assert (family.smallest, family.largest) == (11, 52)
