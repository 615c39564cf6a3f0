"""Bounded Dyck: answers and counts by hand, both kinds of near misses, and the smallest depth
beyond a number of bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from support.counted_classes import counted_classes
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.tasks import Dyck, Task
from separatrix.tasks.dyck import stack_classes


def ids(*brackets: str) -> np.ndarray:
    """Token ids for k = 2: ( [ ) ]."""
    return np.array([["([)]".index(bracket) for bracket in text] for text in brackets])


def test_answers_by_hand() -> None:
    """The first prompt is the table that opens the module; ([)] crosses, (()) is 2 deep, the
    last two have the right counts.
    """
    prompts = ids("([])[]", "([)][]", "()[]()", "((()))", "(())[]", "()()((", ")(()()", "][()()")
    assert Dyck(n=6, k=2, D=2).answer(prompts).tolist() == [1, 0, 1, 0, 1, 0, 0, 0]
    assert Dyck(n=6, k=2, D=1).answer(prompts).tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    assert Dyck(n=6, k=2, D=3).answer(prompts).tolist() == [1, 0, 1, 1, 1, 0, 0, 0]


def test_stacks_with_and_without_failure() -> None:
    """k = 3, 4 brackets, at most 3 deep: 0 or 2 are open."""
    assert stack_classes(k=3, D=3, t=4, dead=False).exact() == 1 + 9
    assert stack_classes(k=3, D=3, t=4, dead=True).exact() == 1 + 9 + 1


def misses(task: Dyck, prompt: list[int]) -> set[str]:
    """What is wrong with a prompt."""
    stack: list[int] = []
    found = set()
    for token in prompt:
        if token < task.k:
            stack.append(token)
            found |= {"depth"} if len(stack) > task.D else set()
        elif not stack:
            return {"shape"}
        elif stack.pop() != token - task.k:
            found.add("kind")
    return found | ({"shape"} if stack else set())


@pytest.mark.parametrize(("n", "k", "D"), [(96, 2, 5), (98, 3, 20), (48, 1, 3), (82, 1, 12)])
def test_near_misses(n: int, k: int, D: int) -> None:
    """Wrong in kinds alone where there are several, in depth alone with one kind."""
    task = Dyck(n=n, k=k, D=D)
    tokens, targets = task.sample(600, np.random.default_rng(1))
    wrong = [misses(task, prompt) for prompt in tokens[targets == 0].tolist()]
    assert all(not misses(task, prompt) for prompt in tokens[targets == 1].tolist())
    assert {reason for found in wrong for reason in found} == ({"kind"} if k > 1 else {"depth"})
    assert all(len(found) == 1 for found in wrong)
    height = np.cumsum(np.where(tokens < k, 1, -1), axis=1)
    if k == 1:
        assert height.max() == D + 1
        assert np.count_nonzero(height > D, axis=1).max() == 1  # once too deep, not more often


@pytest.mark.parametrize(("n", "k", "D"), [(48, 1, 3), (50, 1, 4), (70, 3, 9)])
def test_up_to_five_neighbours_do_not_tell_a_prompt_too_deep(n: int, k: int, D: int) -> None:
    """Mean number of every pattern of 1 to 5 openings and closings , and of
    openings at each place, under both answers.
    """
    task = Dyck(n=n, k=k, D=D)
    labels = np.arange(12_000) % 2
    opens = task._nested(labels, np.random.default_rng(3)) < k
    features = [opens.astype(float)]
    for width in range(1, 6):
        codes = np.stack(
            [opens[:, i : n - width + 1 + i].astype(int) << i for i in range(width)]
        ).sum(0)
        features.append(np.stack([(codes == code).sum(1) for code in range(1 << width)], axis=1))
    x = np.concatenate(features, axis=1)
    x = x[:, x.var(0) > 0]
    zero = x[labels == 0]
    one = x[labels == 1]
    error = (x.var(0) * (1 / len(zero) + 1 / len(one))) ** 0.5
    assert (np.abs(zero.mean(0) - one.mean(0)) < 5 * error).all()
    assert task.answer(task._nested(labels, np.random.default_rng(3))).tolist() == labels.tolist()


@each(
    "n, k, D, remedy",
    [
        (2, 2, 1, "n of at least 96"),
        (90, 4, 4, "n of at least 96"),
        (94, 2, 5, "n of at least 96"),
        (98, 4, 4, "D of at least 5"),
        (60, 1, 2, "D of at least 3"),
        (46, 1, 3, "n of at least 48"),
        (56, 1, 8, "n of at least 58"),
    ],
)
def test_what_counters_or_few_brackets_would_give_away_is_not_drawn(
    n: int, k: int, D: int, remedy: str
) -> None:
    with pytest.raises(SizeError, match=remedy):
        Dyck(n=n, k=k, D=D).sample(1, np.random.default_rng(0))


def visible(prompt: list[int], k: int, width: int) -> int:
    """Closing brackets of another kind than the one they close, where both stand within `width`
    neighbours.
    """
    stack: list[tuple[int, int]] = []
    found = 0
    for place, token in enumerate(prompt):
        if token < k:
            stack.append((token, place))
        else:
            kind, opened = stack.pop()
            found += kind != token - k and place - opened < width
    return found


def exchanged(task: Dyck, total: int) -> tuple[np.ndarray, np.ndarray]:
    """Right prompts, and those drawn alike but wrong."""
    one, other = (
        task._crossed(np.full(total, label), np.random.default_rng(5)) for label in (1, 0)
    )
    assert task.answer(one).all()
    assert not task.answer(other).any()
    return one, other


@pytest.mark.parametrize(("n", "k", "D"), [(96, 2, 5), (128, 3, 8)])
def test_no_sixth_of_a_prompt_shows_a_pair_of_two_kinds(n: int, k: int, D: int) -> None:
    """Wrong pairs lie more than n/6 places apart, rounded down to an even number, four in each
    prompt; the obvious exchange of any two closing brackets is seen by 4 neighbours.
    """
    _, wrong = exchanged(Dyck(n=n, k=k, D=D), 500)
    assert {visible(prompt, k, n + 1) for prompt in wrong.tolist()} == {4}
    assert {visible(prompt, k, 2 * (n // 12) + 1) for prompt in wrong.tolist()} == {0}
    assert visible([0, 1, k + 1, k, 0, 1, k, k + 1], k, 4) == 2


@pytest.mark.parametrize(("n", "k", "D"), [(96, 2, 5), (128, 3, 8)])
def test_counters_are_equal_under_both_answers(n: int, k: int, D: int) -> None:
    """Prompt by prompt: brackets of each kind at each depth and at even places, how often each
    number of open brackets occurs, the order of one kind's brackets.
    """
    one, other = exchanged(Dyck(n=n, k=k, D=D), 300)
    assert (one != other).sum(axis=1).tolist() == [4] * 300

    def seen(prompt: np.ndarray) -> list[object]:
        step = np.where(prompt < k, 1, -1)
        depth = np.cumsum(step)
        level = np.where(step > 0, depth, depth + 1)
        open_ = np.stack([np.cumsum(np.where(prompt % k == c, step, 0)) for c in range(k)])
        return [
            sorted(zip(prompt.tolist(), level.tolist(), strict=True)),
            sorted(prompt[::2].tolist()),
            [step[prompt % k == c].tolist() for c in range(k)],
            sorted(np.sort(open_, axis=0).T.tolist()),
        ]

    for right, wrong in zip(one, other, strict=True):
        assert seen(right) == seen(wrong)


@pytest.mark.parametrize(("n", "k", "D"), [(96, 3, 6)])
def test_neighbours_have_one_law_when_kinds_are_wrong(n: int, k: int, D: int) -> None:
    """Chi-square of the last four tokens, of four in the middle, and of the first four, between
    the answers.
    """
    labels = np.arange(40_000) % 2
    tokens = Dyck(n=n, k=k, D=D)._crossed(labels, np.random.default_rng(6))
    for start in (0, n // 2 - 2, n - 4):
        codes = tokens[:, start : start + 4] @ ((2 * k) ** np.arange(4))
        table = np.stack(
            [np.bincount(codes[labels == label], minlength=(2 * k) ** 4) for label in (0, 1)]
        )
        table = table[:, table.sum(0) > 20]
        expected = table.sum(0) * table.sum(1, keepdims=True) / table.sum()
        freedom = table.shape[1] - 1
        assert ((table - expected) ** 2 / expected).sum() < freedom + 5 * (2 * freedom) ** 0.5 + 5


def classes(
    task: Task, prefixes: Iterable[tuple[int, ...]], continuations: list[tuple[int, ...]]
) -> int:
    """Myhill-Nerode classes of prefixes under all continuations, by brute force."""
    ends = np.array(continuations, np.int64).reshape(len(continuations), -1)
    seen = set()
    for prefix in prefixes:
        starts = np.tile(np.array(prefix, np.int64), (len(ends), 1))
        seen.add(task.answer(np.concatenate([starts, ends], axis=1)).tobytes())
    return len(seen)


@pytest.mark.parametrize(
    ("n", "k", "D"),
    [
        (2, 1, 1),
        (4, 1, 1),
        (6, 1, 1),
        (8, 1, 3),
        (2, 2, 1),
        (4, 2, 1),
        (4, 2, 2),
        (6, 2, 2),
        (4, 3, 2),
    ],
)
def test_classes_of_dyck(n: int, k: int, D: int) -> None:
    """The prefix length named has the count claimed, and no other length has more."""
    task = Dyck(n=n, k=k, D=D)
    found = {
        t: classes(
            task,
            itertools.product(range(2 * k), repeat=t),
            list(itertools.product(range(2 * k), repeat=n - t)),
        )
        for t in range(1, n)
    }
    assert counted_classes(task).exact() == found[task.prefix_length] == max(found.values())
