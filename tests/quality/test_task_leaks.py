"""Tasks cannot be guessed: probes that see counts, repeats or single tokens gain no more than the task itself gives away; leaky variants are caught.

Every probe is a ridge regression from features to one-hot answers, judged on instances it was not fitted to. In tasks answered yes or no every
feature of every probe is uncorrelated with the answer, so no score may correlate with it. Where a function stands in the prompt some values are
likelier answers than others, and a probe may reach the level that this gives, worked out by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from numpy.typing import NDArray

from separatrix.tasks import Batch, Dyck, Equality, Eva, SeqComp, Task, TwoSum

TRAIN, TEST = 8_000, 8_000
TASKS: list[Task] = [
    Eva(n=12, V=4),
    Eva(n=6, V=6),
    Eva(n=4, V=12),
    SeqComp(L=1, m=6),
    SeqComp(L=2, m=6, branching=(1,)),
    SeqComp(L=3, m=3, branching=(2, 1)),
    TwoSum(n=4, M=6),
    TwoSum(n=8, M=64),
    TwoSum(n=16, M=16),
    TwoSum(n=4, M=9, form="decision"),
    TwoSum(n=8, M=64, form="decision"),
    TwoSum(n=16, M=33, form="decision"),
    Equality(n=12),
    Equality(n=20),
    Dyck(n=12, k=3, D=4),
    Dyck(n=16, k=2, D=8),
    Dyck(n=28, k=1, D=3),
    Dyck(n=40, k=2, D=4),
]
BINARY = TwoSum | Equality | Dyck
Ints = NDArray[np.int64]
Features = NDArray[np.float64]


def one_hot(values: Ints) -> Features:
    """Indicators of the values that occur, for every column side by side."""
    columns = values.reshape(len(values), -1).T
    return np.concatenate([column[:, None] == np.unique(column) for column in columns], axis=1).astype(float)


def counts(tokens: Ints) -> Features:
    return (tokens[:, :, None] == np.arange(tokens.max() + 1)).sum(1).astype(float)


def repeats(tokens: Ints) -> Features:
    """How many tokens repeat an earlier one, and at which places."""
    again = np.array([[token in row[:place] for place, token in enumerate(row)] for row in tokens.tolist()])
    return np.concatenate([one_hot(again.sum(1)), again], axis=1)


PROBES: dict[str, Callable[[Ints], Features]] = {
    "constant": lambda tokens: np.zeros((len(tokens), 0)),
    "first token": lambda tokens: one_hot(tokens[:, :1]),
    "last token": lambda tokens: one_hot(tokens[:, -1:]),
    "last two tokens": lambda tokens: one_hot(tokens[:, -2:]),
    "counts": counts,
    "repeats before the last token": lambda tokens: repeats(tokens[:, :-1]),
    "repeats": repeats,
}


def scores(probe: str, batch: Batch, answers: int) -> Features:
    """The probe's score of each answer for the instances it was not fitted to."""
    x = np.concatenate([PROBES[probe](batch.tokens), np.ones((len(batch.tokens), 1))], axis=1)
    y = np.eye(answers)[batch.targets]
    weights = np.linalg.solve(x[:TRAIN].T @ x[:TRAIN] + 10 * np.eye(x.shape[1]), x[:TRAIN].T @ y[:TRAIN])
    return x[TRAIN:] @ weights


def caught(probe: str, task: Task, batch: Batch) -> bool:
    """Whether the probe finds a leak: a correlation, or an accuracy above its level, of more than four standard errors."""
    score, targets = scores(probe, batch, task.answers), batch.targets[TRAIN:]
    if isinstance(task, BINARY) and probe != "constant":
        return float(np.corrcoef(score[:, 1], targets)[0, 1]) * TEST**0.5 > 4
    best = float(level(task, probe))
    return float((score.argmax(1) == targets).mean()) > best + 4 * (best * (1 - best) / TEST) ** 0.5


def share_of_the_mode(n: int, V: int) -> Fraction:
    """E[max_v |f^-1(v)|] / n for uniform f: [n] -> [V], from the number of f that take no value more than k times."""

    def at_most(k: int) -> Fraction:
        power = [Fraction(1)] + [Fraction(0)] * n
        for _ in range(V):
            power = [sum((power[i - j] / factorial(j) for j in range(min(i, k) + 1)), Fraction(0)) for i in range(n + 1)]
        return power[n] * factorial(n) / V**n

    return sum((1 - at_most(k) for k in range(n)), Fraction(0)) / n


def test_share_of_the_mode_by_hand() -> None:
    """Two entries of two values are equal with probability 1/2; three agree with probability 1/4, else two do."""
    assert share_of_the_mode(2, 2) == Fraction(3, 4)
    assert share_of_the_mode(3, 2) == (Fraction(1, 4) * 3 + Fraction(3, 4) * 2) / 3
    assert share_of_the_mode(1, 5) == 1


def level(task: Task, probe: str) -> Fraction:
    """The accuracy that what a probe sees can give; more than chance only where entries of the function asked for are in sight."""
    if isinstance(task, BINARY) or probe in ("constant", "last token"):
        return task.chance
    table = task.n if isinstance(task, Eva) else task.prefix_length
    if probe == "counts" or probe.startswith("repeats"):  # which values the function takes, or hints of it
        return share_of_the_mode(table, task.answers)
    if probe == "first token" or isinstance(task, Eva):  # this entry is the one asked for in one of `table` cases
        return task.chance + (1 - task.chance) / table
    return task.chance


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_no_probe_finds_a_leak(task: Task) -> None:
    batch = task.sample(TRAIN + TEST, np.random.default_rng(0))
    assert [probe for probe in PROBES if caught(probe, task, batch)] == []


@pytest.mark.parametrize("task", [task for task in TASKS if isinstance(task, BINARY)], ids=str)
def test_every_place_has_the_same_marginal_under_both_answers(task: Task) -> None:
    """Chi-square of token by answer at every place: below the 1e-6 point for vocabulary - 1 degrees of freedom (normal approximation)."""
    tokens, targets = task.sample(40_000, np.random.default_rng(2))
    for place in range(task.length):
        table = np.stack([np.bincount(tokens[targets == answer, place], minlength=task.vocabulary) for answer in (0, 1)])
        expected = table.sum(0) * table.sum(1, keepdims=True) / table.sum()
        held = expected[0] > 0
        chi2 = ((table - expected)[:, held] ** 2 / expected[:, held]).sum()
        freedom = held.sum() - 1
        assert chi2 < freedom + 4.9 * (2 * freedom) ** 0.5 + 10


@dataclass(frozen=True)
class Leak:
    """A variant of a task that gives its answer away, and the probes that must see it."""

    task: Task
    spoil: Callable[[Ints, Ints, np.random.Generator], Batch]
    probes: tuple[str, ...]


def biased_answers(tokens: Ints, _: Ints, rng: np.random.Generator) -> Batch:
    """Eva whose values are 0 too often."""
    tokens = tokens.copy()
    tokens[:, :-1] *= rng.integers(0, 4, tokens[:, :-1].shape) > 0
    return Batch(tokens, np.take_along_axis(tokens, tokens[:, -1:], axis=1)[:, 0])


def constant_argument(tokens: Ints, _: Ints, rng: np.random.Generator) -> Batch:
    """Eva that asks for f(0) in every second instance."""
    tokens = tokens.copy()
    tokens[:, -1] *= rng.integers(0, 2, len(tokens))
    return Batch(tokens, np.take_along_axis(tokens, tokens[:, -1:], axis=1)[:, 0])


def answer_at_the_end(tokens: Ints, targets: Ints, _: np.random.Generator) -> Batch:
    """A last token with the parity of the answer."""
    tokens = tokens.copy()
    tokens[:, -1] = tokens[:, -1] // 2 * 2 + targets % 2
    return Batch(tokens, targets)


def smaller_values(tokens: Ints, targets: Ints, _: np.random.Generator) -> Batch:
    """2-Sum whose prompts with answer 0 avoid the upper half of the values."""
    return Batch(np.where((targets == 0)[:, None] & (tokens >= 32), tokens - 32, tokens), targets)


def planted_match(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """The obvious sampler of 2-Sum per query, M = 16: x's that do not cancel q, one overwritten with -q for answer 1."""
    rows, query = np.arange(len(tokens)), rng.integers(16, size=len(tokens))
    x = rng.integers(15, size=(len(tokens), tokens.shape[1] - 1))
    x += x >= (-query % 16)[:, None]
    place = rng.integers(x.shape[1], size=len(x))
    x[rows, place] = np.where(targets == 1, -query % 16, x[rows, place])
    return Batch(np.column_stack((x, query)), targets)


def any_free_query(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """2-Sum per query, M = 6, with q drawn among all values: 0 and 3 cancel themselves, so that a repeated q hints at answer 1."""
    rows, free = np.arange(len(tokens)), rng.integers(6, size=len(tokens))
    x = rng.integers(5, size=(len(tokens), tokens.shape[1] - 1))
    x += x >= free[:, None]
    met = np.where(targets == 1, x[rows, rng.integers(x.shape[1], size=len(x))], free)
    return Batch(np.column_stack((x, -met % 6)), targets)


def flipped_sign(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """The obvious sampler of decisions, M = 33: one token repeats another for answer 0 and is its negative for answer 1."""
    rows, n = np.arange(len(tokens)), tokens.shape[1]
    tokens = rng.integers(1, 17, tokens.shape)
    first = rng.integers(n, size=len(tokens))
    second = (first + rng.integers(1, n, size=len(tokens))) % n
    tokens[rows, second] = np.where(targets == 1, 33 - tokens[rows, first], tokens[rows, first])
    return Batch(tokens, targets)


def flipped_bit(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """The obvious sampler of equality: one bit of v flipped to 1 for answer 0, so that there are more ones."""
    tokens, half = rng.integers(0, 2, tokens.shape), tokens.shape[1] // 2
    tokens[:, half:] = tokens[:, :half]
    rows, place = np.arange(len(tokens)), half + rng.integers(half, size=len(tokens))
    tokens[rows, place] |= 1 - targets
    return Batch(tokens, (tokens[:, :half] == tokens[:, half:]).all(1).astype(np.int64))


def wrong_end(tokens: Ints, targets: Ints, _: np.random.Generator) -> Batch:
    """Brackets spoilt by an opening one at the end."""
    tokens = tokens.copy()
    tokens[:, -1] = np.where(targets == 1, tokens[:, -1], 0)
    return Batch(tokens, targets)


LEAKS = [
    Leak(Equality(n=6), flipped_bit, ("counts",)),
    Leak(Dyck(n=12, k=3, D=4), wrong_end, ("last token", "last two tokens", "counts")),
    Leak(Eva(n=12, V=4), biased_answers, ("constant", "last token", "counts")),
    Leak(Eva(n=6, V=6), constant_argument, ("first token",)),
    Leak(Eva(n=12, V=4), answer_at_the_end, ("last token", "last two tokens")),
    Leak(SeqComp(L=2, m=6, branching=(2,)), answer_at_the_end, ("last token",)),
    Leak(TwoSum(n=8, M=64), smaller_values, ("first token", "last token", "counts")),
    Leak(TwoSum(n=16, M=16), planted_match, ("repeats before the last token",)),
    Leak(TwoSum(n=4, M=6), any_free_query, ("repeats",)),
    Leak(TwoSum(n=16, M=33, form="decision"), flipped_sign, ("repeats",)),
]


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: f"{leak.task.name} {leak.spoil.__name__}")
def test_leaky_variants_are_caught(leak: Leak) -> None:
    rng = np.random.default_rng(3)
    batch = leak.spoil(*leak.task.sample(TRAIN + TEST, rng), rng)
    assert [probe for probe in leak.probes if not caught(probe, leak.task, batch)] == []
