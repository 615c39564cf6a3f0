"""The store: what is kept, who may tell it, and that an ended run never changes."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.toy_runs import checkpoint, free, outcome, pack, run, update

from separatrix.core.errors import ClaimLost, StoreError, UnknownNameError
from separatrix.training.packs import Metric, Pack
from separatrix.training.sweeps.processes import is_held, let_go
from separatrix.training.sweeps.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "runs.db", version="1") as made:
        yield made


def test_a_run_is_one_row_however_many_sweeps_have_it(store: Store) -> None:
    assert store.add("a", [run(0), run(1)]) == 2
    # the same run in other words is the same run
    assert store.add("b", [run(2), replace(run(1), task="eva: V=4, n=4"), run(2)]) == 1
    assert store.sweeps() == {"a": 2, "b": 2}
    assert [row.run.seed for row in store.rows()] == [0, 1, 2]
    assert [(row.sweep, row.run.seed) for row in store.rows("b")] == [("b", 2), ("b", 1)]


def test_what_is_told_is_what_is_read(store: Store) -> None:
    both = pack(0, 1)
    store.add("a", both.runs)
    assert store.take_up(both.keys, "me")[0] == list(both.keys)
    store.tell(both, update(both, 10), "me")
    nan = [Metric(both.keys[1], 20, math.nan, 0.25, 1e-3)]
    store.tell(both, update(both, 20, finished=[both.runs[0]], metrics=nan), "me")

    first, second = store.rows("a")
    assert (first.status, first.outcome, first.run) == (
        "done",
        outcome(both.runs[0]),
        both.runs[0].canonical(),
    )
    assert (first.completions, first.version, first.step, first.seconds) == (1, "1", 40, 1.5)
    assert (second.status, second.outcome, second.step) == ("running", None, 20)
    assert [metric.step for metric in store.metrics(both.keys[1])] == [10, 20]
    assert math.isnan(store.metrics(both.keys[1])[1].loss)
    assert store.counts() == {"running": 1, "done": 1}


def test_metrics_are_of_one_training(store: Store) -> None:
    alone = pack(0)
    store.add("a", alone.runs)
    store.take_up(alone.keys, "me")
    for step in (10, 20, 30, 15):
        store.tell(alone, update(alone, step), "me")
    assert [metric.step for metric in store.metrics(alone.keys[0])] == [10, 15]


def test_checkpoints_stay_until_nobody_goes_on_with_them(store: Store) -> None:
    both = pack(0, 1)
    store.add("a", both.runs)
    store.take_up(both.keys, "me")
    store.tell(both, update(both, 10, checkpoint=b"ten"), "me")
    store.tell(both, update(both, 20, finished=[both.runs[0]], checkpoint=b"twenty"), "me")
    store.release("me")
    # the ended run is still a member of what was trained
    assert store.packs([both.keys[1]]) == [both]
    assert checkpoint(store, both) == b"twenty"
    assert checkpoint(store, Pack(both.runs[1:])) is None
    store.take_up(both.keys, "you")
    store.tell(both, update(both, 30, finished=[both.runs[1]], metrics=[], checkpoint=None), "you")
    assert checkpoint(store, both) is None


def test_checkpoints_of_other_code_are_not_gone_on_with(store: Store) -> None:
    alone = pack(0)
    store.add("a", alone.runs)
    store.take_up(alone.keys, "me")
    store.tell(alone, update(alone, 10), "me")
    with Store.open(store.path, version="2") as other:
        assert checkpoint(other, alone) is None
        assert other.packs(alone.keys) == []


def test_who_holds_a_run(store: Store) -> None:
    both = pack(0, 1)
    store.add("a", both.runs)
    assert store.take_up(both.keys[:1], "me")[0] == [both.keys[0]]
    assert store.take_up(both.keys, "you")[0] == [both.keys[1]]
    assert store.take_up(both.keys, "me")[0] == [both.keys[0]]
    store.release("you")
    assert store.take_up(both.keys, "me")[0] == list(both.keys)
    free(store, both.keys[:1])
    assert store.take_up(both.keys, "you")[0] == [both.keys[0]]


def test_a_claim_that_was_lost_tells_nothing(store: Store) -> None:
    alone = pack(0)
    store.add("a", alone.runs)
    store.take_up(alone.keys, "me")
    # as where its process has died
    let_go(store._lock("me"))
    assert store.take_up(alone.keys, "you")[0] == list(alone.keys)
    with pytest.raises(ClaimLost, match="me holds no run"):
        store.tell(alone, update(alone, 10), "me")
    with pytest.raises(ClaimLost, match="me holds 0 of 1 runs"):
        store.fail(alone.keys, "no", "me")
    assert store.metrics(alone.keys[0]) == []
    assert checkpoint(store, alone) is None
    assert store.rows()[0].status == "running"


def test_who_lives_keeps_its_claims_whatever_the_clock_says(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = pack(0)
    store.add("a", alone.runs)
    store.take_up(alone.keys, "me")
    for then in (0.0, 1e12):
        monkeypatch.setattr("time.time", lambda then=then: then)
        with Store.open(store.path, version="1") as other:
            assert other.take_up(alone.keys, "you")[0] == []


def test_closed_a_store_holds_nothing_even_where_nothing_can_be_given_back(store: Store) -> None:
    alone = pack(0)
    store.add("a", alone.runs)
    closed = Store.open(store.path, version="1")
    closed.take_up(alone.keys, "me")
    closed.take_up([], "me too")
    moved = store.path.rename(store.path.with_name("moved"))
    with pytest.raises(StoreError, match="moved"):
        closed.close()
    moved.rename(store.path)
    assert not is_held(store._lock("me too"))
    assert store.take_up(alone.keys, "you")[0] == list(alone.keys)


def test_locked_files_of_the_dead_go_and_of_the_living_stay(tmp_path: Path) -> None:
    path = tmp_path / "r[u]ns*.db"
    with Store.create(path) as store:
        store.take_up([], "me")
        stale, sweeps = store._lock("killed"), path.with_name(f"{path.name}-{'a' * 16}")
        stale.touch()
        # somebody's own file
        sweeps.write_text("notes")
        with Store.open(path) as other:
            other.take_up([], "you")
            assert not stale.exists()
            assert is_held(store._lock("me"))
    assert sorted(tmp_path.iterdir()) == [path, sweeps]


def test_a_name_that_another_process_has_takes_nothing_from_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = pack(0)
    store.add("a", alone.runs)
    store.take_up(alone.keys, "me")
    # as another process sees it
    monkeypatch.setattr("separatrix.training.sweeps.processes._held", {})
    with Store.open(store.path, version="1") as other, pytest.raises(StoreError, match="claimed"):
        other.take_up(alone.keys, "me")
    monkeypatch.undo()
    store.tell(alone, update(alone, 10), "me")


def test_a_part_of_a_pack_may_be_told(store: Store) -> None:
    both = pack(0, 1)
    store.add("a", both.runs)
    store.take_up(both.keys[:1], "me")
    store.take_up(both.keys, "you")
    mine = [Metric(both.keys[0], 10, 1.0, 0.5, 1e-3)]
    store.tell(both, update(both, 10, metrics=mine), "me")
    with pytest.raises(ClaimLost, match=f"not hold run {both.keys[1][:12]}"):
        store.tell(both, update(both, 20), "me")
    assert [len(store.metrics(key)) for key in both.keys] == [1, 0]


def test_who_lost_its_claim_ends_nothing_once_more(store: Store) -> None:
    """A process that gave its claims back, and goes on where another has been."""
    one = pack(0)
    store.add("a", one.runs)
    store.take_up(one.keys, "stopped")
    store.release("stopped")
    store.take_up(one.keys, "other")
    store.tell(one, update(one, 10, finished=[one.runs[0]]), "other")
    before = store.rows()
    with pytest.raises(ClaimLost, match="stopped holds no run"):
        store.tell(one, update(one, 10, finished=[one.runs[0]]), "stopped")
    assert store.rows() == before
    assert before[0].completions == 1


def test_packs_are_taken_up_whole(store: Store) -> None:
    three = pack(0, 1, 2)
    store.add("a", three.runs)
    store.take_up(three.keys, "before")
    store.tell(three, update(three, 10, finished=[three.runs[2]]), "before")
    store.release("before")
    held, begun = store.take_up(three.keys[:1], "me")
    assert held == list(three.keys[:1])
    assert [(one.pack, one.held) for one in begun] == [(three, list(three.keys[:2]))]
    assert begun[0].checkpoint == checkpoint(store, three)
    assert store.take_up(three.keys[1:], "other") == ([], [])


def test_a_checkpoint_is_none_of_members_that_another_holds(store: Store) -> None:
    """Their metrics end before it: whoever went on from there would leave a gap."""
    both = pack(0, 1)
    store.add("a", both.runs)
    store.take_up(both.keys, "before")
    store.tell(both, update(both, 10), "before")
    store.release("before")
    # to another version that checkpoint is none, so that it takes one member alone
    Store.open(store.path, version="another").take_up(both.keys[1:], "other")
    store.take_up(both.keys, "me")
    mine = [Metric(both.keys[0], 20, 1.0, 0.5, 1e-3)]
    store.tell(both, update(both, 20, metrics=mine), "me")
    store.release("other")
    assert store.packs(both.keys[1:]) == []
    assert store.packs(both.keys[:1]) == [both]


def test_a_training_that_begins_anew_has_the_only_curve(tmp_path: Path) -> None:
    both = pack(0, 1)
    path = tmp_path / "runs.db"
    for version, step in (("1", 10), ("2", 25)):
        with Store.create(path, version=version) as store:
            store.add("a", both.runs)
            store.take_up(both.keys, "me")
            metrics = [Metric(key, step, 1.0, 0.5, 1e-3) for key in both.keys]
            store.tell(both, update(both, 30, metrics=metrics), "me")
            more = [Metric(key, 40, 1.0, 0.5, 1e-3) for key in both.keys]
            store.tell(both, update(both, 50, metrics=more), "me")
            for key in both.keys:
                assert [metric.step for metric in store.metrics(key)] == [step, 40]


def test_an_ended_run_never_changes(store: Store) -> None:
    both = pack(0, 1)
    store.add("a", both.runs)
    store.take_up(both.keys, "me")
    store.tell(both, update(both, 10, finished=[both.runs[0]]), "me")
    before = store.rows()[0]
    again = update(both, 30, finished=[both.runs[0]], metrics=[])
    other = replace(outcome(both.runs[0]), correct=1)
    store.tell(both, replace(again, finished=((both.keys[0], other),)), "me")
    # that it was ended twice is told, and nothing else of it changed
    assert store.rows()[0] == replace(before, completions=2)
    assert store.take_up(both.keys, "me")[0] == [both.keys[1]]
    with pytest.raises(ClaimLost):
        store.fail(both.keys, "no", "me")
    assert store.rows()[1].status == "running"
    # not even by hand
    for statement in ("UPDATE runs SET outcome = '{}'", "DELETE FROM runs"):
        with (
            sqlite3.connect(store.path) as connection,
            pytest.raises(sqlite3.IntegrityError, match=r"never"),
        ):
            connection.execute(statement)
        connection.close()


def test_failed_runs_wait_again_when_asked(store: Store) -> None:
    both = pack(0, 1)
    store.add("a", both.runs)
    store.take_up(both.keys, "me")
    store.fail(both.keys[:1], "out of\nluck", "me")
    assert (store.rows()[0].status, store.rows()[0].error) == ("failed", "out of luck")
    assert store.take_up(both.keys, "me")[0] == [both.keys[1]]
    assert store.retry(both.keys) == 1
    assert store.take_up(both.keys, "me")[0] == list(both.keys)


def test_orders_and_limits(store: Store) -> None:
    runs = [run(seed, rate) for seed in (1, 0) for rate in (3e-3, 1e-3)]
    store.add("a", runs)

    def found(**how: str | int) -> list[tuple[int, float]]:
        return [(row.run.seed, row.run.learning_rate) for row in store.rows("a", **how)]  # type: ignore[arg-type]

    assert found() == [(1, 3e-3), (1, 1e-3), (0, 3e-3), (0, 1e-3)]
    assert found(sort="seed") == [(0, 3e-3), (0, 1e-3), (1, 3e-3), (1, 1e-3)]
    assert found(sort="-learning_rate", limit=2) == [(1, 3e-3), (0, 3e-3)]
    assert found(status="done") == []
    with pytest.raises(UnknownNameError, match="'seed'"):
        store.rows(sort="sead")
    with pytest.raises(UnknownNameError, match="'done'"):
        store.rows(status="don")


def test_runs_by_the_beginning_of_their_keys(store: Store) -> None:
    runs = [run(seed) for seed in range(40)]
    store.add("a", runs)
    for one in runs:
        assert store.run(one.key[:16]).key == one.key
    with pytest.raises(StoreError, match="several runs"):
        store.run("")
    for strange in ("x", "\udcff"):
        with pytest.raises(StoreError, match=ascii(strange).replace("\\", ".")):
            store.run(strange)
    assert len(store.rows(limit=10**20)) == 40
