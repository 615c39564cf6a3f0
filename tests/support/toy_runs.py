"""Runs, outcomes and updates for tests of sweeps: nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence

from separatrix.core.evidence.outcome import Outcome
from separatrix.models.stored.run import Run
from separatrix.training.packs import Metric, Pack, Update
from separatrix.training.sweeps.store import Store
from support.outcomes import singly


def run(seed: int = 0, learning_rate: float = 3e-3, architecture: str = "full") -> Run:
    return Run(
        architecture=architecture, task="eva:n=4,V=4", seed=seed, learning_rate=learning_rate
    )


def pack(*seeds: int) -> Pack:
    return Pack(tuple(run(seed) for seed in seeds))


def outcome(of: Run, correct: int = 2000) -> Outcome:
    return singly(seed=of.seed, correct=correct, steps_done=40, parameters=900, seconds=1.5)


def update(
    pack: Pack,
    step: int,
    *,
    finished: Sequence[Run] = (),
    checkpoint: bytes | None = b"weights",
    metrics: Sequence[Metric] | None = None,
) -> Update:
    """What a slice gave that ended at `step`, with a metric of every member."""
    if metrics is None:
        metrics = [Metric(key, step, 1 / step, 0.5, 1e-3) for key in pack.keys]
    return Update(
        metrics=tuple(metrics),
        finished=tuple((one.key, outcome(one)) for one in finished),
        checkpoint=checkpoint,
        step=step,
        seconds=2.0,
    )


def free(store: Store, keys: Sequence[str]) -> None:
    """Takes runs from whoever has claimed them, whoever that is."""
    with store._database.transaction() as connection:
        for key in keys:
            connection.execute(
                "UPDATE runs SET status = 'waiting', owner = NULL"
                " WHERE key = ? AND status = 'running'",
                (key,),
            )


def checkpoint(store: Store, pack: Pack) -> bytes | None:
    """The last checkpoint of exactly this pack; None where there is none of this version."""
    query = "SELECT data FROM checkpoints WHERE pack = ? AND version = ?"
    with store._database.reading() as connection:
        found = connection.execute(query, (pack.key, store.version)).fetchone()
    return None if found is None else found[0]
