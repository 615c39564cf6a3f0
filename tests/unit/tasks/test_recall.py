"""Recall and index: counts, families, what the sampler promises, tokens that are no instance."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from support.each import each
from support.prefix_counts import COUNTS

from separatrix.core.errors import SizeError
from separatrix.tasks import Index, Recall, parse_task
from separatrix.tasks.measured import level


def test_the_table_of_the_module() -> None:
    task = Recall(n=3, K=3, V=2, form="last")
    assert task.answer(
        np.array([[3, 0, 2, 1, 3, 1, 3], [3, 0, 2, 1, 3, 1, 4], [3, 0, 2, 1, 3, 1, 2]])
    ).tolist() == [1, 2, 1]
    assert Index(n=4, V=4).answer(np.array([[2, 0, 3, 0, 6]])).tolist() == [3]


@each("n", [2, 3, 5, 8])
def test_counts_are_those_of_the_theory(n: int) -> None:
    rows = [
        (Recall(n=n, K=9, V=3), "recall-promise", {"n": n, "V": 3}),
        (Recall(n=n, K=9, V=3, form="absent"), "recall-distinct", {"n": n, "K": 9, "V": 3}),
        (Recall(n=n + 1, K=4, V=3, form="last"), "recall", {"n": n + 1, "K": 4, "V": 3}),
        (Index(n=n, V=3), "eva", {"n": n, "V": 3}),
    ]
    for task, key, sizes in rows:
        count = task.prefix_classes()
        assert count is not None
        assert count.exact() == COUNTS[key](**sizes).exact()


@pytest.mark.parametrize(
    ("task", "prompt", "said"),
    [
        (Recall(n=2, K=3, V=2), [2, 0, 2, 1, 2], "a key stands twice"),
        (Recall(n=2, K=3, V=2, form="absent"), [2, 0, 2, 1, 3], "a key stands twice"),
        (Recall(n=2, K=3, V=2), [2, 0, 3, 1, 4], "for is not there"),
        (Recall(n=2, K=3, V=2), [2, 0, 1, 1, 2], r"1; it must lie in \[2, 5\)"),
        (Recall(n=2, K=3, V=2), [2, 0, 3, 1, 0], r"0; it must lie in \[2, 5\)"),
        (Recall(n=2, K=3, V=2), [2, 3, 3, 1, 2], r"3; it must lie in \[0, 2\)"),
        (Index(n=2, V=3), [0, 3, 4], r"3; it must lie in \[0, 3\)"),
        (Index(n=2, V=3), [0, 1, 2], r"2; it must lie in \[3, 5\)"),
    ],
    ids=str,
)
def test_what_is_no_instance(task: Recall | Index, prompt: list[int], said: str) -> None:
    with pytest.raises(SizeError, match=said):
        task.answer(np.array([prompt]))


@pytest.mark.parametrize("form", ["present", "absent", "last"])
def test_pairs_alone_say_nothing_about_the_answer(form: str) -> None:
    """Every value of 0..V-1 stands among those that count, and the answer is as likely as any
    other whatever the last pair's value is.
    """
    task = Recall(n=9, K=8 if form == "last" else 12, V=4, form=form)  # type: ignore[arg-type]
    tokens, targets = task.sample(40_000, np.random.default_rng(1))
    queries = (
        [
            task.answer(np.column_stack((tokens[:200, :-1], np.full(200, key))))
            for key in range(4, 16)
        ]
        if form == "absent"
        else []
    )
    if queries:
        assert all(set(column) == {0, 1, 2, 3, 4} for column in np.array(queries).T.tolist())
    table = np.zeros((4, task.answers))
    np.add.at(table, (tokens[:, -2], targets), 1)
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    assert ((table - expected) ** 2 / expected).sum() < freedom + 5 * (2 * freedom) ** 0.5


def test_the_last_write_matters() -> None:
    """Of the keys asked for that are there, many are written before with another value, and
    absent ones come as often as any answer.
    """
    task = Recall(n=16, K=12, V=4, form="last")
    tokens, targets = task.sample(20_000, np.random.default_rng(2))
    met = tokens[:, 0:-1:2] == tokens[:, -1:]
    first = tokens[:, 1:-1:2][np.arange(20_000), met.argmax(axis=1)]
    found = met.any(axis=1)
    assert abs((~found).mean() - 0.2) < 5 * (0.16 / 20_000) ** 0.5
    assert (first != targets)[found].mean() > 0.35
    assert (
        np.array([len(set(row)) for row in tokens[:500, 0:-1:2].tolist()]) == task.written
    ).all()


@pytest.mark.parametrize(
    ("task", "chance"),
    [
        (Recall(n=6, K=9, V=5), Fraction(1, 5)),
        (Recall(n=6, K=9, V=5, form="last"), Fraction(1, 6)),
        (Recall(n=6, K=9, V=3, shift="zipf"), Fraction(6, 11)),
        (Recall(n=6, K=9, V=3, form="absent", shift="zipf"), Fraction(3, 4) * Fraction(6, 11)),
        (Recall(n=6, K=9, V=7, form="last", shift="few"), Fraction(7, 8) * Fraction(1, 4)),
    ],
    ids=str,
)
def test_chance_by_hand(task: Recall, chance: Fraction) -> None:
    tokens, targets = task.sample(30_000, np.random.default_rng(3))
    assert task.chance == chance
    assert (task.answer(tokens) == targets).all()
    share = np.bincount(targets, minlength=task.answers).max() / 30_000
    assert abs(share - float(chance)) < 5 * (0.25 / 30_000) ** 0.5


def test_levels_by_hand() -> None:
    """n = 8, V = 4: of 8 values 2 on average are the answer, one behind the key asked for; another
    key has it with (8/4 - 1)/7 = 1/7, each other value with (6/7)/3 = 2/7. n = 4, V = 9, absent:
    9/10 of the time one of the four different values, and counts know the other tenth for sure.
    """
    plenty = Recall(n=8, K=16, V=4)
    short = Recall(n=4, K=6, V=9, form="absent")
    assert [plenty.level(probe) for probe in ("constant", "counts", "position", "nearest key")] == [
        Fraction(1, 4)
    ] * 3 + [Fraction(2, 7)]
    assert [short.level(probe) for probe in ("constant", "position", "last tokens")] == [
        Fraction(1, 10)
    ] + [Fraction(9, 40)] * 2
    assert short.level("counts") == Fraction(1, 10) + Fraction(9, 40)


@pytest.mark.parametrize("form", ["absent", "last"])
def test_counts_know_what_is_not_there_and_no_more(form: str) -> None:
    """V = 4: "none" comes once in five times and the number of different keys tells it; of a
    value that is there its frequency tells nothing.
    """
    task = Recall(n=9, K=10, V=4, form=form)  # type: ignore[arg-type]
    tokens, targets = task.sample(40_000, np.random.default_rng(4))
    keys = np.sort(np.concatenate((tokens[:, 0:-1:2], tokens[:, -1:]), axis=1), axis=1)
    different = 1 + (keys[:, 1:] != keys[:, :-1]).sum(axis=1)
    assert ((different == task.written) == (targets != task.V)).all()
    often = (tokens[:, 1:-1:2, None] == np.arange(4)).sum(axis=1)
    for most in (often.argmax(axis=1), often.argmin(axis=1)):
        right = (np.where(different == task.written, most, 4) == targets).mean()
        assert abs(right - 2 / 5) < 5 * (0.24 / 40_000) ** 0.5
    assert task.level("counts") == Fraction(2, 5)


@pytest.mark.parametrize(
    "task",
    [
        *(Recall(n=4, K=8, V=3), Recall(n=4, K=7, V=2, form="absent")),
        *(Recall(n=5, K=7, V=2, form="last"), Recall(n=4, K=8, V=2, form="last")),
    ],
    ids=str,
)
def test_counts_grow_with_the_family(task: Recall) -> None:
    family = task.family()
    assert family.at(task.n) == task
    counts = [family.at(n).prefix_classes().exact() for n in range(family.smallest, 20)]  # type: ignore[union-attr]
    assert counts == sorted(counts)
    with pytest.raises(SizeError):
        family.at(family.smallest - 1)


@pytest.mark.parametrize(("n", "K", "V"), [(16, 12, 4), (30, 40, 12), (9, 5, 20)])
def test_what_was_written_first_is_overwritten(n: int, K: int, V: int) -> None:
    """Every key is written twice at least. The first value is right as often as any of the m; the
    second where it is the last, as often as derived, both within 4.5 standard errors.
    """
    task = Recall(n=n, K=K, V=V, form="last")
    total = 20_000
    tokens, targets = task.sample(total, np.random.default_rng(9))
    found = tokens[:, 0:-1:2] == tokens[:, -1:]
    there = targets < V
    assert (found.sum(1)[there] >= 2).all()
    rows = np.arange(total)
    first = found.argmax(1)
    later = found.copy()
    later[rows, first] = False
    D = task.written
    last = (1 - 1 / D) ** (n - 2 * D)
    for place, right in ((first, 0.0), (later.argmax(1), last)):
        share = right + (1 - right) / min(V, D)
        seen = (tokens[rows, 2 * place + 1] == targets)[there].mean()
        assert abs(seen - share) < 4.5 * (share * (1 - share) / there.sum()) ** 0.5


@each("form", ["present", "absent", "independent"])
def test_what_is_written_first_is_no_shortcut_where_keys_are_written_once(form: str) -> None:
    """It is the answer: as a rule "that does not solve the task" it made the level 1."""
    task = parse_task(f"recall:n=8,K=16,V=4,form={form}")
    assert task.shortcuts == ()
    assert parse_task("recall:n=16,K=12,V=4,form=last").shortcuts == ("most writes",)


def test_the_level_of_recall_leaves_room_for_the_task() -> None:
    for sizes in Recall.grid:
        found = level(parse_task(f"recall:{sizes}"))
        assert found is not None
        assert found < 0.75, sizes
