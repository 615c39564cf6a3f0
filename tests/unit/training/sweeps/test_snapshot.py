"""Counts, pace and time left, by hand."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from support import pretended

from separatrix.training.packs import Pack
from separatrix.training.slices import Metric, Update
from separatrix.training.sweeps.costs import cost
from separatrix.training.sweeps.snapshot import Tally


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def update(step: int, **others: object) -> Update:
    plain = Update(metrics=(), finished=(), checkpoint=b"", step=step, seconds=1.0)
    return replace(plain, **others)  # pyright: ignore[reportArgumentType]


def test_counts_pace_and_time_left(clock: list[float]) -> None:
    """Two packs of two runs of 100 steps, all of equal cost: four hundred model-steps."""
    runs = pretended.runs(4, steps=100)
    one, other = Pack(tuple(runs[:2])), Pack(tuple(runs[2:]))
    tally = Tally([one, other])
    assert tally.snapshot({}, 0).left is None
    clock[0] += 10.0
    metric = Metric(runs[0].key, 20, 0.5, 0.9, 1e-3)
    tally.heard(one, one.keys, update(20, metrics=(metric,)), 0)
    shown = tally.snapshot({one: (20, set(one.keys))}, 0)
    assert (shown.total, shown.running, shown.waiting, shown.done) == (4, 2, 2, 0)
    # 40 model-steps in 10 s, and 360 are left
    assert (shown.steps, shown.rate) == (40, 4.0)
    assert shown.left == pytest.approx(90.0)
    (standing,) = shown.packs
    assert (standing.pack, standing.step, standing.metrics) == (one, 20, (metric,))
    # the first run ends early, at step 50: half its steps, and all of its cost
    clock[0] += 10.0
    outcome = replace(pretended.expected(runs[0]), steps_done=50)
    tally.heard(one, one.keys, update(60, finished=((runs[0].key, outcome),)), 20)
    shown = tally.snapshot({one: (60, {runs[1].key})}, 1)
    assert (shown.running, shown.done, shown.elsewhere, shown.waiting) == (1, 1, 1, 1)
    assert (shown.steps, shown.rate) == (40 + 30 + 40, 5.5)
    # 1 and 0.6 of four runs in 20 s
    assert shown.left == pytest.approx(20.0 / 1.6 * 2.4)
    assert shown.packs[0].metrics == ()


def test_what_was_done_before_says_nothing_of_the_pace(clock: list[float]) -> None:
    runs = pretended.runs(2, steps=100)
    first, second = (Pack((run,)) for run in runs)
    tally = Tally([first, second])
    tally.found(first, first.keys, 50)
    tally.ended(runs[1].key, "diverged", here=False)
    clock[0] += 10.0
    assert tally.snapshot({}, 0).left is None
    tally.heard(first, first.keys, update(75), 50)
    shown = tally.snapshot({first: (75, set(first.keys))}, 0)
    # a quarter took 10 s, and a quarter is left
    assert shown.left == pytest.approx(10.0)
    assert (shown.steps, shown.diverged, shown.waiting) == (25, 1, 0)


def test_the_pace_is_that_of_the_last_minute(clock: list[float]) -> None:
    runs = pretended.runs(1, steps=10_000)
    pack = Pack(tuple(runs))
    tally = Tally([pack])
    tally.heard(pack, pack.keys, update(6000), 0)
    clock[0] += 59.0
    tally.heard(pack, pack.keys, update(6600), 6000)
    clock[0] += 2.0
    assert tally.snapshot({}, 0).rate == 10.0


def test_lines_are_told_once(clock: list[float]) -> None:
    tally = Tally([])
    tally.said("lost")
    assert tally.snapshot({}, 0).lines == ("lost",)
    assert tally.snapshot({}, 0).lines == ()


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
