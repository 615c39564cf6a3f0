"""No shortcut beats a task: the audit finds every task clean at the first two sizes of its grid
and in each of its forms, and catches a leaky variant of every kind.

The rule: a probe more than 3 standard errors above its level is tried again on four times as many
fresh instances, and is a leak if it is above again. What the audit does not look at stands here
too: which tokens repeat, and the marginals of every place, of tasks answered yes or no.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from support.task_cases import few

from separatrix.core.evidence.canonical import canonical
from separatrix.tasks import (
    MQAR,
    TASKS,
    Batch,
    Dyck,
    Equality,
    Eva,
    SeqComp,
    Task,
    TwoSum,
    parse_task,
)
from separatrix.tasks.audits import BOUND, Audit, audit, audit_texts, table
from separatrix.tasks.audits.probes import regression
from separatrix.tasks.questions import ASKED
from separatrix.tasks.text import TEXT_TASKS, parse_text_task

pytestmark = pytest.mark.slow

Ints = NDArray[np.int64]
SEVERAL = [f"{name}:{sizes}" for name, texts in ASKED.items() for sizes in texts]
"""Sizes with several answers per prompt, of which the audit looks at one; docs/tasks.md has
whole audits of them.
"""
TEXTS = [text.values[0] for name in TASKS for text in few(audit_texts(name))]
WORDS = [text for name in TEXT_TASKS for text in audit_texts(name)[:2]]
BINARY = [
    task
    for task in map(parse_task, TEXTS)
    if task.answers == 2 and not task.several and task.level("position") == task.chance
]
"""Tasks answered yes or no in which no place by itself says anything."""


def _audited(text: str, record_property: Callable[[str, object], None], **drawn: int) -> None:
    found = audit(parse_text_task(text) if text in WORDS else parse_task(text), **drawn)
    record_property(
        "audit",
        canonical({"task": text, "rows": [[row.probe, row.z, row.verdict] for row in found.rows]}),
    )
    assert found.leaks == (), table(found).text(80)


@pytest.mark.parametrize("text", SEVERAL)
def test_no_shortcut_beats_a_task_with_several_answers(
    text: str, record_property: Callable[[str, object], None]
) -> None:
    _audited(text, record_property, fitted=1000, tested=1000)


@pytest.mark.parametrize("text", [*TEXTS, *WORDS])
def test_no_shortcut_beats_a_task(
    text: str, record_property: Callable[[str, object], None]
) -> None:
    _audited(text, record_property)


def repeats(tokens: Ints) -> NDArray[np.float64]:
    """Which places repeat an earlier token, and how many do, as indicators: (batch, 2 length)."""
    order = np.argsort(tokens, axis=1, kind="stable")
    ordered = np.take_along_axis(tokens, order, axis=1)
    again = np.zeros(tokens.shape, bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.concatenate(
        [again, again.sum(1, keepdims=True) == np.arange(tokens.shape[1])], axis=1
    ).astype(float)


def hints(
    task: Task, seen: Callable[[Ints], Ints], *, instances: int = 8_000, seed: int = 0
) -> bool:
    """Whether repeats among the tokens seen correlate with the answer, twice: by more than 3
    standard errors, then on four times as many instances.
    """
    for number in (instances, 4 * instances):
        tokens, targets = task.sample(number, np.random.default_rng((seed, number)))
        features = repeats(seen(tokens))
        half = number // 2
        guess = regression(features[:half], targets[:half], 2, features[half:])
        if guess.correlation(targets[half:]) * half**0.5 <= BOUND:
            return False
    return True


SEEN: dict[str, Callable[[Ints], Ints]] = {
    "all tokens": lambda tokens: tokens,
    "all but the last": lambda tokens: tokens[:, :-1],
}


def test_repeats_by_hand() -> None:
    assert repeats(np.array([[5, 3, 5, 5]])).tolist() == [[0, 0, 1, 1, 0, 0, 1, 0]]


@pytest.mark.parametrize("task", few(BINARY))
def test_repeats_say_nothing(task: Task) -> None:
    assert [name for name, seen in SEEN.items() if hints(task, seen)] == []


@pytest.mark.parametrize("task", few(BINARY))
def test_every_place_has_the_same_marginal_under_both_answers(task: Task) -> None:
    """Chi-square of token by answer at every place: below the 1e-6 point for vocabulary - 1
    degrees of freedom (normal approximation).
    """
    tokens, targets = task.sample(20_000, np.random.default_rng(2))
    for place in range(task.length):
        counts = np.stack(
            [
                np.bincount(tokens[targets == answer, place], minlength=task.vocabulary)
                for answer in (0, 1)
            ]
        )
        expected = counts.sum(0) * counts.sum(1, keepdims=True) / counts.sum()
        held = expected[0] > 0
        chi2 = ((counts - expected)[:, held] ** 2 / expected[:, held]).sum()
        freedom = held.sum() - 1
        assert chi2 < freedom + 4.9 * (2 * freedom) ** 0.5 + 10


Spoil = Callable[[Ints, Ints, np.random.Generator], Batch]


def leaky(task: Task, spoil: Spoil) -> Task:
    """The task with instances that give their answers away."""
    made = copy(task)
    object.__setattr__(made, "sample", partial(_spoilt, task, spoil))
    return made


def _spoilt(task: Task, spoil: Spoil, batch: int, rng: np.random.Generator) -> Batch:
    return spoil(*task.sample(batch, rng), rng)


def audited(task: Task, spoil: Spoil) -> Audit:
    return audit(leaky(task, spoil))


def biased_values(tokens: Ints, _: Ints, rng: np.random.Generator) -> Batch:
    """Eva whose values are 0 too often."""
    tokens = tokens.copy()
    tokens[:, :-1] *= rng.integers(0, 4, tokens[:, :-1].shape) > 0
    return Batch(tokens, np.take_along_axis(tokens, tokens[:, -1:], axis=1)[:, 0])


def more_ones(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """Every tenth instance of answer 0 left out."""
    kept = (targets == 1) | (rng.random(len(targets)) < 0.9)
    rows = np.resize(np.flatnonzero(kept), len(targets))
    return Batch(tokens[rows], targets[rows])


def constant_argument(tokens: Ints, _: Ints, rng: np.random.Generator) -> Batch:
    """Eva that asks for f(0) in every second instance."""
    tokens = tokens.copy()
    tokens[:, -1] *= rng.integers(0, 2, len(tokens))
    return Batch(tokens, np.take_along_axis(tokens, tokens[:, -1:], axis=1)[:, 0])


def copied_value(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """Every twelfth answer stands three places before the end."""
    return Batch(tokens, np.where(rng.integers(12, size=len(tokens)) == 0, tokens[:, -3], targets))


def answer_at_the_end(tokens: Ints, targets: Ints, _: np.random.Generator) -> Batch:
    """A last token with the parity of the answer."""
    tokens = tokens.copy()
    tokens[:, -1] = tokens[:, -1] // 2 * 2 + targets % 2
    return Batch(tokens, targets)


def last_two_agree(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """In every second instance the last two bits are equal if the answer is 1; neither says
    anything by itself.
    """
    tokens = tokens.copy()
    told = np.where(targets == 1, tokens[:, -2], 1 - tokens[:, -2])
    tokens[:, -1] = np.where(rng.integers(2, size=len(tokens)) == 1, told, tokens[:, -1])
    return Batch(tokens, targets)


def nearest_value(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """Every second answer stands behind the latest of the ids nearest to the query, found by
    looking.
    """
    answers = targets.copy()
    for row in np.flatnonzero(rng.integers(2, size=len(tokens))):
        *earlier, query = tokens[row].tolist()
        distances = [abs(token - query) if token != query else 10**9 for token in earlier]
        best = max(place for place, distance in enumerate(distances) if distance == min(distances))
        answers[row] = tokens[row, best + 1]
    return Batch(tokens, answers)


def smaller_values(tokens: Ints, targets: Ints, _: np.random.Generator) -> Batch:
    """2-Sum whose prompts with answer 0 avoid the upper half of the values."""
    return Batch(np.where((targets == 0)[:, None] & (tokens >= 32), tokens - 32, tokens), targets)


def planted_match(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """The obvious sampler of 2-Sum per query, M = 16: x's that do not cancel q, one overwritten
    with -q for answer 1.
    """
    rows = np.arange(len(tokens))
    query = rng.integers(16, size=len(tokens))
    x = rng.integers(15, size=(len(tokens), tokens.shape[1] - 1))
    x += x >= (-query % 16)[:, None]
    place = rng.integers(x.shape[1], size=len(x))
    x[rows, place] = np.where(targets == 1, -query % 16, x[rows, place])
    return Batch(np.column_stack((x, query)), targets)


def any_free_query(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """2-Sum per query, M = 6, with q drawn among all values: 0 and 3 cancel themselves, so that
    a repeated q hints at answer 1.
    """
    rows = np.arange(len(tokens))
    free = rng.integers(6, size=len(tokens))
    x = rng.integers(5, size=(len(tokens), tokens.shape[1] - 1))
    x += x >= free[:, None]
    met = np.where(targets == 1, x[rows, rng.integers(x.shape[1], size=len(x))], free)
    return Batch(np.column_stack((x, -met % 6)), targets)


def flipped_sign(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """The obvious sampler of decisions, M = 33: one token repeats another for answer 0 and is
    its negative for answer 1.
    """
    rows = np.arange(len(tokens))
    n = tokens.shape[1]
    tokens = rng.integers(1, 17, tokens.shape)
    first = rng.integers(n, size=len(tokens))
    second = (first + rng.integers(1, n, size=len(tokens))) % n
    tokens[rows, second] = np.where(targets == 1, 33 - tokens[rows, first], tokens[rows, first])
    return Batch(tokens, targets)


def flipped_bit(tokens: Ints, targets: Ints, rng: np.random.Generator) -> Batch:
    """The obvious sampler of equality: one bit of v flipped to 1 for answer 0, so that there are
    more ones.
    """
    tokens, half = rng.integers(0, 2, tokens.shape), tokens.shape[1] // 2
    tokens[:, half:] = tokens[:, :half]
    rows = np.arange(len(tokens))
    place = half + rng.integers(half, size=len(tokens))
    tokens[rows, place] |= 1 - targets
    return Batch(tokens, (tokens[:, :half] == tokens[:, half:]).all(1).astype(np.int64))


def wrong_end(tokens: Ints, targets: Ints, _: np.random.Generator) -> Batch:
    """Brackets spoilt by an opening one at the end."""
    tokens = tokens.copy()
    tokens[:, -1] = np.where(targets == 1, tokens[:, -1], 0)
    return Batch(tokens, targets)


LEAKS: list[tuple[Task, Spoil, tuple[str, ...]]] = [
    (Eva(n=12, V=4), biased_values, ("answers", "constant")),
    (Equality(n=24), more_ones, ("answers", "constant")),
    (Equality(n=16), flipped_bit, ("counts",)),
    (TwoSum(n=8, M=64), smaller_values, ("counts", "position")),
    (Eva(n=6, V=6), constant_argument, ("position",)),
    (SeqComp(L=2, m=32, branching=(1,)), copied_value, ("position",)),
    (Dyck(n=96, k=3, D=5), wrong_end, ("counts", "last tokens")),
    (Eva(n=12, V=4), answer_at_the_end, ("last tokens",)),
    (SeqComp(L=2, m=6, branching=(2,)), answer_at_the_end, ("last tokens",)),
    (Equality(n=16), last_two_agree, ("last tokens",)),
    (SeqComp(L=2, m=6, branching=(1,)), nearest_value, ("nearest key",)),
]


@pytest.mark.parametrize(
    ("task", "spoil", "probes"),
    [pytest.param(*leak, id=f"{leak[0].name} {leak[1].__name__}") for leak in LEAKS],
)
def test_leaky_variants_are_caught(task: Task, spoil: Spoil, probes: tuple[str, ...]) -> None:
    found = audited(task, spoil)
    assert set(probes) <= set(found.leaks), table(found).text(80)
    assert found.verdict == "leak"


@pytest.mark.parametrize(
    ("task", "spoil", "seen"),
    [
        (TwoSum(n=16, M=16), planted_match, "all but the last"),
        (TwoSum(n=4, M=6), any_free_query, "all tokens"),
        (TwoSum(n=16, M=33, form="decision"), flipped_sign, "all tokens"),
    ],
)
def test_leaks_by_repeats_are_caught(task: Task, spoil: Spoil, seen: str) -> None:
    assert hints(leaky(task, spoil), SEEN[seen])


def test_what_stands_after_the_place_is_hidden_and_what_stands_before_is_seen() -> None:
    """Of a task with several answers: what stands right behind the place says nothing, what
    stands there tells all.
    """
    task = MQAR(vocab_size=24, input_seq_len=24, num_kv_pairs=4)

    def told(by: Callable[[Ints], Ints]) -> float:
        def spoil(tokens: Ints, targets: Ints, _: np.random.Generator) -> Batch:
            return Batch(tokens, np.where(targets < 0, targets, by(tokens) % task.answers))

        return audited(task, spoil)["last tokens"].accuracy

    assert told(lambda tokens: tokens) == 1
    assert told(lambda tokens: np.roll(tokens, -1, axis=1)) < 0.5


def test_a_shift_is_audited_with_a_warning() -> None:
    shifted = next(
        f"{name}:{cls.grid[0]},shift={shift}" for name, cls in TASKS.items() for shift in cls.shifts
    )
    assert "promises nothing" in audit(parse_task(shifted)).note
