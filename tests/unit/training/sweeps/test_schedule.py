"""The scheduler on pretended training: every run ends exactly once, with the result that it has
undisturbed, whatever is lost on the way.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support import pretended
from support.engines import InPlace
from support.toy_runs import free

from separatrix.core.errors import StoreError
from separatrix.models.stored.run import Run
from separatrix.training.packs import Pack, Slice, Update, packed
from separatrix.training.sweeps.live import Snapshot
from separatrix.training.sweeps.schedule import LOSSES, run_sweep
from separatrix.training.sweeps.store import Store

quick = partial(pretended.pretend, pause=0.0)
one_step = 1e-9
"""Seconds of a slice that has time for its first step only."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "runs.db", version="test") as made:
        # no power cut is tried here, and each wait for the disk takes milliseconds
        made._database._connection.execute("PRAGMA synchronous = OFF")
        yield made


def filled(store: Store, runs: list[Run], most: int = 4) -> list[Pack]:
    store.add("sweep", runs)
    return packed(runs, most)


def check_all(store: Store, runs: list[Run]) -> None:
    """Each ended once, with the result of a training that nobody disturbed."""
    rows = store.rows("sweep")
    assert [row.key for row in rows] == [run.key for run in runs]
    assert [row.outcome for row in rows] == [pretended.expected(run) for run in runs]
    assert {row.completions for row in rows} == {1}
    assert not store.owners()


def test_all_runs_end(store: Store) -> None:
    runs = pretended.runs(10)
    seen: list[Snapshot] = []
    last = run_sweep(
        store,
        filled(store, runs),
        InPlace(quick),
        owner="me",
        slice_seconds=one_step,
        told=seen.append,
    )
    check_all(store, runs)
    assert (last.total, last.counts) == (10, {"done": 10})
    assert last.steps == sum(pretended.last(run) for run in runs)
    assert last.left == 0.0
    assert seen[-1] == last
    for run in runs:
        assert [metric.step for metric in store.metrics(run.key)] == [
            *range(1, pretended.last(run) + 1)
        ]


@pytest.mark.parametrize(("workers", "least"), [(1, 0.0), (25, 0.0), (1025, 40.0)])
def test_slices_of_many_workers_are_longer(store: Store, workers: int, least: float) -> None:
    # an update takes some 20 ms of the scheduler: 1,000 workers leave it half of its time
    engine = InPlace(quick, workers=workers)
    run_sweep(store, filled(store, pretended.runs(2)), engine, owner="me", slice_seconds=1e-9)
    assert {piece.seconds for piece in engine.taken} == {max(1e-9, least)}


def test_what_has_ended_is_not_run_again(store: Store) -> None:
    runs = pretended.runs(6)
    first = filled(store, runs[1:3], 2)
    run_sweep(store, first, InPlace(quick), owner="first")
    engine = InPlace(quick)
    last = run_sweep(store, filled(store, runs, 6), engine, owner="second")
    check_all(store, runs)
    # of the pack of six, the four that are left were trained as one
    assert {piece.pack for piece in engine.taken} == {Pack((runs[0], *runs[3:]))}
    assert last.counts == {"done": 6}
    engine = InPlace(quick)
    run_sweep(store, packed(runs), engine, owner="third")
    assert engine.taken == []


def test_a_pack_goes_on_from_its_checkpoint(store: Store) -> None:
    """Also where members have ended since, and where packs are cut otherwise by now."""
    runs = pretended.runs(4, steps=9)
    packs = filled(store, runs)
    engine = InPlace(quick)

    def stop(snapshot: Snapshot) -> None:
        if len(engine.taken) == 7:
            raise KeyboardInterrupt

    patched = partial(run_sweep, store, slice_seconds=one_step)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("separatrix.training.sweeps.schedule.TELL", 0.0)
        with pytest.raises(KeyboardInterrupt):
            patched(packs, engine, owner="first", told=stop)
    # odd seeds end at step 7
    assert [row.status for row in store.rows()] == ["waiting", "done", "waiting", "done"]
    engine = InPlace(quick)
    patched([Pack((runs[2],)), Pack((runs[0],))], engine, owner="second")
    check_all(store, runs)
    assert [piece.pack for piece in engine.taken] == [packs[0]] * 2
    assert engine.taken[0].checkpoint is not None


@pytest.mark.parametrize("share", [0.2, 0.4])
def test_lost_slices_are_computed_again(store: Store, share: float) -> None:
    runs = pretended.runs(9)
    luck = random.Random(3)
    engine = InPlace(quick, losing=lambda ticket, piece: luck.random() < share)
    seen: list[Snapshot] = []
    run_sweep(
        store,
        filled(store, runs, 2),
        engine,
        owner="me",
        slice_seconds=one_step,
        told=seen.append,
    )
    check_all(store, runs)
    lines = [line for snapshot in seen for line in snapshot.lines]
    assert any("again (1 of 5)" in line for line in lines)


def bad(piece: Slice) -> bool:
    return pretended.has_bad(piece.pack)


def test_a_run_that_kills_its_workers_fails_alone(store: Store) -> None:
    runs = pretended.runs(4, first=pretended.BAD - 1)
    engine = InPlace(quick, losing=lambda ticket, piece: bad(piece))
    last = run_sweep(store, filled(store, runs), engine, owner="me")
    assert last.counts == {"done": 3, "failed": 1}
    rows = {row.run.seed: row for row in store.rows()}
    assert rows[pretended.BAD].status == "failed"
    assert "without progress" in rows[pretended.BAD].error
    # the whole pack, then a half, then the run alone
    assert sum(bad(piece) for piece in engine.taken) == (LOSSES + 1) + 2 + 2
    del rows[pretended.BAD]
    assert all(row.outcome == pretended.expected(row.run) for row in rows.values())


def test_a_run_whose_work_raises_fails_alone(store: Store) -> None:
    runs = pretended.runs(8, first=pretended.BAD - 3)
    engine = InPlace(partial(pretended.raising, pause=0.0))
    last = run_sweep(store, filled(store, runs, 8), engine, owner="me", slice_seconds=one_step)
    assert last.counts == {"done": 7, "failed": 1}
    rows = {row.run.seed: row for row in store.rows()}
    assert rows[pretended.BAD].error.startswith("ValueError: the bad run (")
    assert not rows[pretended.BAD].completions
    del rows[pretended.BAD]
    assert all(row.outcome == pretended.expected(row.run) for row in rows.values())
    # failed runs are not tried again
    engine = InPlace(quick)
    assert run_sweep(store, packed(runs), engine, owner="again").counts["failed"] == 1
    assert engine.taken == []


def test_a_pack_that_memory_is_too_small_for_starts_again_as_halves(store: Store) -> None:
    runs = pretended.runs(7)
    engine = InPlace(partial(pretended.narrow, pause=0.0))
    last = run_sweep(store, filled(store, runs, 7), engine, owner="me", slice_seconds=one_step)
    check_all(store, runs)
    assert last.steps == sum(pretended.last(run) for run in runs)


def test_the_longest_come_first(store: Store) -> None:
    short = pretended.runs(1, steps=10)
    long = pretended.runs(1, steps=2000, first=1)
    wide = pretended.runs(1, steps=10, first=2, width=512)
    runs = [*short, *long, *wide]
    engine = InPlace(pretended.at_once)
    run_sweep(store, filled(store, runs), engine, owner="me")
    assert [piece.pack.runs[0] for piece in engine.taken] == [*long, *wide, *short]


def test_slices_are_short_at_first(store: Store) -> None:
    runs = pretended.runs(1, steps=9)
    engine = InPlace(at_most_one_step, losing=lambda ticket, piece: ticket == 7)
    run_sweep(store, filled(store, runs), engine, owner="me")
    assert [piece.seconds for piece in engine.taken] == [1, 2, 4, 8, 16, 20, 20, 1, 2, 4]


def at_most_one_step(piece: Slice) -> Update:
    return quick(Slice(pack=piece.pack, checkpoint=piece.checkpoint, seconds=0.0))


def test_a_pack_that_another_has_claimed_meanwhile_is_left_to_it(store: Store) -> None:
    """A process that slept for longer than its lease wakes up."""
    runs = pretended.runs(4)
    packs = filled(store, runs, 2)

    def work(piece: Slice) -> Update:
        if piece.pack == packs[0] and not stolen:
            free(store, packs[0].keys)
            stolen.extend(store.take_up(packs[0].keys, "other")[0])
        elif stolen and len(engine.taken) > 4:
            finish(store, packs[0], "other")
        return quick(piece)

    stolen: list[str] = []
    engine = InPlace(work, workers=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("separatrix.training.sweeps.schedule.POLL", 0.0)
        run_sweep(store, packs, engine, owner="me", slice_seconds=one_step)
    assert stolen == list(packs[0].keys)
    store.release("other")
    check_all(store, runs)


@pytest.mark.parametrize("slices", [1, 3])
def test_what_another_gives_back_does_not_join_a_pack_that_has_gone_on(
    slices: int, store: Store
) -> None:
    """Of the steps that the pack has made meanwhile, that run has no metrics."""
    runs = pretended.runs(2, steps=12)
    packs = filled(store, runs)
    store.take_up(packs[0].keys, "before")
    piece = Slice(pack=packs[0], checkpoint=None, seconds=0.0)
    store.tell(packs[0], quick(piece), "before")
    store.release("before")
    # to another version that checkpoint is none, so that it takes one member alone
    Store.open(store.path, version="another").take_up([runs[1].key], "other")

    def work(piece: Slice) -> Update:
        if len(engine.taken) == slices:
            store.release("other")
            engine._workers = 2
        return quick(piece)

    engine = InPlace(work, workers=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("separatrix.training.sweeps.schedule.POLL", 0.0)
        later = Pack((runs[1],))
        run_sweep(store, [*packs, later], engine, owner="me", slice_seconds=one_step)
    check_all(store, runs)
    for run in runs:
        steps = [metric.step for metric in store.metrics(run.key)]
        assert steps == list(range(1, pretended.last(run) + 1))


def test_a_run_that_another_has_claimed_meanwhile_has_not_failed(store: Store) -> None:
    runs = pretended.runs(1)
    packs = filled(store, runs)

    def work(piece: Slice) -> Update:
        free(store, packs[0].keys)
        finish(store, packs[0], "other")
        raise ValueError("too late")

    last = run_sweep(store, packs, InPlace(work), owner="me")
    store.release("other")
    check_all(store, runs)
    assert last.counts == {"done": 1}


def finish(store: Store, pack: Pack, owner: str) -> None:
    piece = Slice(pack=pack, checkpoint=None, seconds=60.0)
    if store.take_up(pack.keys, owner)[0] and store.run(pack.keys[0]).status == "running":
        store.tell(pack, quick(piece), owner)


@pytest.mark.parametrize("problem", ["full", "locked"])
def test_a_store_that_cannot_be_written_stops_the_sweep(
    problem: str, store: Store, tmp_path: Path
) -> None:
    runs = pretended.runs(8)
    packs = filled(store, runs, 1)
    connection = store._database._connection
    connection.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(store.path, isolation_level=None)

    def soon(piece: Slice) -> Update:
        if len(engine.taken) == 5 and problem == "full":
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")
        if len(engine.taken) == 5 and problem == "locked":
            other.execute("BEGIN EXCLUSIVE")
        update = quick(piece)
        # a checkpoint of many pages, with blanks behind what counts
        return replace(update, checkpoint=update.checkpoint and update.checkpoint.ljust(100_000))

    engine = InPlace(soon)
    with pytest.raises(StoreError, match="full" if problem == "full" else "lock"):
        run_sweep(store, packs, engine, owner="me", slice_seconds=one_step)
    other.close()
    connection.execute("PRAGMA max_page_count = 1000000")
    before = {row.key: row.outcome for row in store.rows("sweep") if row.outcome is not None}
    # this process lives on, and holds nothing
    run_sweep(store, packs, InPlace(quick), owner="again")
    check_all(store, runs)
    assert before.items() <= {row.key: row.outcome for row in store.rows("sweep")}.items()


def quick_from_anywhere(piece: Slice) -> Update:
    """Checkpoints of zeros cannot be gone on with."""
    if piece.checkpoint is not None and not piece.checkpoint.strip(bytes(1)):
        raise ValueError("no checkpoint")
    return quick(piece)


def test_what_cannot_go_on_from_its_checkpoint_starts_again(store: Store) -> None:
    runs = pretended.runs(2)
    packs = filled(store, runs, 2)
    store.take_up(packs[0].keys, "before")
    first = quick(Slice(pack=packs[0], checkpoint=None, seconds=0.0))
    store.tell(packs[0], replace(first, checkpoint=bytes(9)), "before")
    store.release("before")
    seen: list[Snapshot] = []
    engine = InPlace(quick_from_anywhere)
    run_sweep(store, packs, engine, owner="me", told=seen.append)
    check_all(store, runs)
    assert engine.taken[0].checkpoint == bytes(9)
    lines = [line for snapshot in seen for line in snapshot.lines]
    (line,) = lines
    assert "a pack of 2" in line
    assert "ValueError: no checkpoint" in line
    assert f"line {quick_from_anywhere.__code__.co_firstlineno + 3})" in line


def test_nothing_to_do(store: Store) -> None:
    last = run_sweep(store, [], InPlace(quick), owner="me")
    assert (last.total, last.left, last.solved) == (0, 0.0, 0)


def test_where_there_is_no_worker_it_waits_for_one(store: Store) -> None:
    runs = pretended.runs(2)

    class Growing(InPlace):
        looks = 0

        @property
        def workers(self) -> int:
            self.looks += 1
            return int(self.looks > 5)

    run_sweep(store, filled(store, runs), Growing(quick), owner="me")
    check_all(store, runs)


def test_a_run_in_two_packs_is_trained_once(store: Store) -> None:
    """Its checkpoint is of a pack that one claim brings, and it waits in the queue as well."""
    runs = pretended.runs(4)
    begun = filled(store, runs, 4)[0]
    store.take_up(begun.keys, "before")
    store.tell(begun, quick(Slice(pack=begun, checkpoint=None, seconds=0.0)), "before")
    store.release("before")
    engine = InPlace(quick, workers=1)
    run_sweep(store, [Pack((run,)) for run in runs], engine, owner="me")
    check_all(store, runs)
    assert [piece.pack for piece in engine.taken] == [begun]
