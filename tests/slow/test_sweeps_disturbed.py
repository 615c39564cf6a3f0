"""Sweeps on pretended training, disturbed in every way at once: workers die, memory is too small,
packs are cut anew, somebody else takes runs and gives them back, and Ctrl-C comes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support import pretended
from support.engines import InPlace

from separatrix.models.stored.run import Run
from separatrix.training.packs import Pack, Slice, Update, packed, remaining
from separatrix.training.sweeps import schedule
from separatrix.training.sweeps.live import Snapshot
from separatrix.training.sweeps.schedule import run_sweep
from separatrix.training.sweeps.store import Store

ENDED = ("done", "diverged", "failed")
SEEDS = 12
MOST = 60
"""Slices of a session until the disturbance ends."""
quick = partial(pretended.pretend, pause=0.0)
narrow = partial(pretended.narrow, pause=0.0)


@pytest.mark.slow
def test_every_run_ends_once_with_its_own_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("POLL", "TELL", "MOMENT"):
        monkeypatch.setattr(schedule, name, 0.0)
    # no run shall fail: that would be right after so many deaths
    monkeypatch.setattr(schedule, "LOSSES", 1000)
    for seed in range(SEEDS):
        with Store.create(tmp_path / f"{seed}.db", version="test") as store:
            store._database._connection.execute("PRAGMA synchronous = OFF")
            luck = random.Random(seed)
            runs = pretended.runs(luck.randrange(1, 14), steps=luck.randrange(1, 9))
            store.add("sweep", runs)
            for _ in sessions(store, runs, luck):
                assert not store.owners()
                assert "running" not in store.counts()
            for row in store.rows("sweep"):
                assert row.outcome == pretended.expected(row.run), seed
                assert row.completions == 1, seed
                steps = [metric.step for metric in store.metrics(row.key)]
                assert steps == list(range(1, pretended.last(row.run) + 1)), seed


def sessions(store: Store, runs: list[Run], luck: random.Random) -> Iterator[None]:
    """One scheduler after the other, until every run has ended."""
    keys = [run.key for run in runs]
    while missing := [row.key for row in store.rows("sweep") if row.status not in ENDED]:
        ended = [key for key in keys if key not in missing]
        packs = luck.choice(
            [
                remaining(runs, ended, store.packs(keys), most=luck.randrange(1, 8)),
                packed(luck.sample(runs, len(runs)), luck.randrange(1, 8)),
                packed(luck.sample(runs, luck.randrange(1, len(runs) + 1)), luck.randrange(1, 5)),
            ]
        )
        session(store, keys, packs, luck)
        yield


def session(store: Store, keys: list[str], packs: list[Pack], luck: random.Random) -> None:
    work = luck.choice([quick, narrow])
    share = 0.4 * luck.random()

    def disturbed(piece: Slice) -> Update:
        if luck.random() < 0.3 and len(engine.taken) < MOST:
            meddle(store, keys, luck)
        return work(piece)

    def told(snapshot: Snapshot) -> None:
        if luck.random() < 0.01:
            raise KeyboardInterrupt
        if len(engine.taken) > MOST or not snapshot.counts.get("running"):
            store.release("other")

    engine = InPlace(disturbed, luck.randrange(1, 4), lambda ticket, piece: luck.random() < share)
    seconds = luck.choice([1e-9, 60.0])
    try:
        run_sweep(store, packs, engine, owner="me", slice_seconds=seconds, told=told)
    except KeyboardInterrupt:
        pass
    finally:
        store.release("other")


def meddle(store: Store, keys: list[str], luck: random.Random) -> None:
    """Another process on the same store: it claims, finishes one run, or gives all back."""
    match luck.randrange(3):
        case 0:
            store.take_up(luck.sample(keys, luck.randrange(1, len(keys) + 1)), "other")
        case 1:
            held = [row.run for row in store.rows("sweep") if row.owner == "other"]
            if held:
                alone = Pack((held[0],))
                piece = Slice(pack=alone, checkpoint=None, seconds=60.0)
                store.tell(alone, quick(piece), "other")
        case 2:
            store.release("other")
