"""Tasks cannot be guessed: probes that see no more than counts, single tokens or the last tokens stay at chance, and leaky variants are caught."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from separatrix.tasks import Eva, SeqComp, Task, TwoSum

TRAIN, TEST = 6_000, 6_000
TASKS: list[Task] = [
    Eva(n=12, V=4),
    SeqComp(L=2, m=6, branching=(1,)),
    SeqComp(L=3, m=3, branching=(1, 1)),
    TwoSum(n=8, M=64),
    TwoSum(n=8, M=64, form="decision"),
]
Features = Callable[[NDArray[np.int64], Task], NDArray[np.float64]]


def one_hot(tokens: NDArray[np.int64], task: Task) -> NDArray[np.float64]:
    return np.eye(task.vocabulary)[tokens]


def last_tokens(tokens: NDArray[np.int64], task: Task) -> NDArray[np.float64]:
    return one_hot(tokens[:, -2:], task).reshape(len(tokens), -1)


def first_token(tokens: NDArray[np.int64], task: Task) -> NDArray[np.float64]:
    return one_hot(tokens[:, 0], task)


def probe(features: Features, tokens: NDArray[np.int64], targets: NDArray[np.int64], task: Task) -> float:
    """Accuracy of a ridge regression from features to one-hot answers, on instances it was not fitted to."""
    x = np.concatenate([features(tokens, task), np.ones((len(tokens), 1))], axis=1)
    y = np.eye(task.answers)[targets]
    gram = x[:TRAIN].T @ x[:TRAIN] + 10 * np.eye(x.shape[1])
    weights = np.linalg.solve(gram, x[:TRAIN].T @ y[:TRAIN])
    return float(((x[TRAIN:] @ weights).argmax(1) == targets[TRAIN:]).mean())


def limit(task: Task) -> float:
    chance = float(task.chance)
    return chance + 4 * (chance * (1 - chance) / TEST) ** 0.5


@pytest.mark.parametrize("features", [last_tokens, first_token])
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_probes_of_single_tokens_stay_at_chance(task: Task, features: Features) -> None:
    """A token that happens to be the entry asked for tells the answer: that share is part of the task, and no more may be gained."""
    tokens, targets = task.sample(TRAIN + TEST, np.random.default_rng(0))
    asked = 0.0
    if isinstance(task, Eva):
        asked = 1 / task.n  # the first and the last value are one of n
    elif isinstance(task, SeqComp) and features is first_token:
        asked = 1 / task.entries(task.L)  # the first entry of z_L; z_0 and w are no entries
    assert probe(features, tokens, targets, task) <= limit(task) + asked * (1 - float(task.chance))


@pytest.mark.parametrize("task", [task for task in TASKS if isinstance(task, TwoSum)], ids=str)
def test_counts_of_tokens_say_nothing_about_two_sum(task: Task) -> None:
    """A linear probe on counts: whether two tokens cancel is no linear function of how often each value occurs."""

    def counts(tokens: NDArray[np.int64], task: Task) -> NDArray[np.float64]:
        return one_hot(tokens, task).sum(1)

    tokens, targets = task.sample(TRAIN + TEST, np.random.default_rng(1))
    assert probe(counts, tokens, targets, task) <= limit(task)


@pytest.mark.parametrize("task", [task for task in TASKS if isinstance(task, TwoSum)], ids=str)
def test_every_place_has_the_same_marginal_under_both_answers(task: Task) -> None:
    """Chi-square of token by answer at every place: below the 1e-6 point for vocabulary - 1 degrees of freedom (normal approximation)."""
    tokens, targets = task.sample(40_000, np.random.default_rng(2))
    for place in range(task.length):
        table = np.stack([np.bincount(tokens[targets == answer, place], minlength=task.vocabulary) for answer in (0, 1)])
        expected = table.sum(0) * table.sum(1, keepdims=True) / table.sum()
        seen = expected[0] > 0
        chi2 = ((table - expected)[:, seen] ** 2 / expected[:, seen]).sum()
        freedom = seen.sum() - 1
        assert chi2 < freedom + 4.9 * (2 * freedom) ** 0.5 + 10


def test_a_leaky_variant_is_caught() -> None:
    """2-Sum whose negative answers draw smaller values: the marginal test and the probe both see it."""
    task = TwoSum(n=8, M=64)
    rng = np.random.default_rng(3)
    tokens, targets = task.sample(TRAIN + TEST, rng)
    leaky = tokens.copy()
    rows = targets == 0
    leaky[rows, 0] = rng.integers(0, 32, rows.sum())
    assert probe(first_token, leaky, targets, task) > limit(task) + 0.1


def test_a_leak_at_the_end_is_caught() -> None:
    """Eva whose last token repeats the answer's parity is seen by the probe of the last tokens."""
    task = Eva(n=12, V=4)
    tokens, targets = task.sample(TRAIN + TEST, np.random.default_rng(4))
    leaky = tokens.copy()
    leaky[:, -1] = leaky[:, -1] // 2 * 2 + targets % 2
    assert probe(last_tokens, leaky, targets, task) > limit(task) + 0.15
