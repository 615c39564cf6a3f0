"""Counts, pace and time left, by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support import pretended

from separatrix.core.evidence.records import SOLVED
from separatrix.models.stored.run import Run
from separatrix.training.packs import Pack, Update, cost, packed
from separatrix.training.sweeps.live import Watch
from separatrix.training.sweeps.store import Store


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "runs.db", version="test") as made:
        yield made


def begin(store: Store, runs: Sequence[Run], most: int) -> list[Pack]:
    store.add("sweep", runs)
    return packed(runs, most)


def tell(store: Store, pack: Pack, step: int, owner: str = "me", **others: object) -> None:
    """What a slice gave of the members of a pack that an owner can have."""
    store.take_up(pack.keys, owner)
    plain = Update(metrics=(), finished=(), checkpoint=b"1", step=step, seconds=1.0)
    store.tell(pack, replace(plain, **others), owner)  # pyright: ignore[reportArgumentType]


def test_counts_pace_and_time_left(store: Store, clock: list[float]) -> None:
    """Two packs of two runs of 100 steps, all of equal cost: four hundred model-steps."""
    runs = pretended.runs(4, steps=100)
    one, other = packs = begin(store, runs, 2)
    watch = Watch(store, packs, "me", runs)
    assert watch.snapshot().left is None
    clock[0] += 10.0
    tell(store, one, 20)
    shown = watch.snapshot()
    assert (shown.total, shown.counts) == (4, {"running": 2, "waiting": 2})
    # 40 model-steps in 10 s, and 360 are left
    assert (shown.steps, shown.rate) == (40, 4.0)
    assert shown.left == pytest.approx(90.0)
    assert shown.solved == 0
    # the first run ends early, at step 50: half its steps, and all of its cost
    clock[0] += 10.0
    outcome = replace(pretended.expected(runs[0]), steps_done=50)
    tell(store, one, 60, finished=((runs[0].key, outcome),))
    store.take_up(other.keys[:1], "other")
    shown = watch.snapshot()
    assert shown.counts == dict.fromkeys(("running", "done", "elsewhere", "waiting"), 1)
    assert (shown.steps, shown.rate) == (40 + 30 + 40, 5.5)
    # 1 and 0.6 of four runs in 20 s
    assert shown.left == pytest.approx(20.0 / 1.6 * 2.4)
    assert (shown.ended, shown.solved) == (1, outcome.accuracy >= SOLVED)


def test_what_was_done_before_says_nothing_of_the_pace(store: Store, clock: list[float]) -> None:
    runs = pretended.runs(2, steps=100)
    first, second = packs = begin(store, runs, 1)
    tell(store, first, 50)
    outcome = replace(
        pretended.expected(runs[1]), status="diverged", stopped="diverged", correct=0, tested=0
    )
    tell(store, second, 10, finished=((runs[1].key, outcome),))
    watch = Watch(store, packs[:1], "me", runs)
    clock[0] += 10.0
    assert watch.snapshot().left is None
    tell(store, first, 75)
    shown = watch.snapshot()
    # a quarter took 10 s, and a quarter is left
    assert shown.left == pytest.approx(10.0)
    assert (shown.steps, shown.counts) == (25, {"running": 1, "diverged": 1})
    assert (shown.ended, shown.solved) == (1, 0)


def test_solved_runs_are_those_that_are_not_damaged(store: Store) -> None:
    runs = pretended.runs(3)
    packs = begin(store, runs, 3)
    whole = pretended.outcome(runs[0], 0).tested
    ends = [
        (run.key, pretended.outcome(run, correct))
        for run, correct in zip(runs, (whole, whole, whole // 2), strict=True)
    ]
    tell(store, packs[0], 5, finished=tuple(ends), checkpoint=None)
    watch = Watch(store, packs, "me", runs)
    assert watch.snapshot().solved == 2
    with store._database.transaction() as connection:
        connection.execute("DROP TRIGGER ended_stays")
        connection.execute("UPDATE runs SET version = 'other' WHERE key = ?", (runs[0].key,))
    assert watch.snapshot().solved == 1


def test_lines_are_told_once(store: Store) -> None:
    watch = Watch(store, [], "me", [])
    watch.said("lost")
    assert watch.snapshot().lines == ("lost",)
    assert watch.snapshot().lines == ()


def test_cost_grows_with_steps_members_and_sizes() -> None:
    base = pretended.runs(1, steps=10)[0]
    one = cost(Pack((base,)))
    assert cost(Pack((replace(base, steps=20),))) == pytest.approx(2 * one)
    assert cost(Pack(tuple(pretended.runs(2, steps=10)))) > one
    for larger in (
        replace(base, width=64),
        replace(base, batch=256),
        replace(base, hidden=128),
        replace(base, task="eva:n=16"),
        replace(base, architecture="full*2"),
    ):
        assert cost(Pack((larger,))) > one
