"""What a sweep costs beside its training, and how it scales on one machine: two Markdown tables.

    python benchmarks/sweeps.py               10,000 runs without work; 3 rounds of training
    python benchmarks/sweeps.py --runs 1000 --rounds 1

The first: wall time of a sweep whose work returns at once, per run: claimed, sent, received and
told, each run a pack of its own. The second: model-steps per second of small models (width 32, 16
tokens, packs of 4) against processes, in interleaved rounds; starting the processes is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from separatrix.core.errors import SeparatrixError
from separatrix.core.evidence.outcome import Outcome
from separatrix.models.stored.run import Run
from separatrix.training.packs import Slice, Update, packed
from separatrix.training.sweeps.engines.pool import LocalEngine
from separatrix.training.sweeps.live import Snapshot
from separatrix.training.sweeps.schedule import run_sweep
from separatrix.training.sweeps.store import Store

PROCESSES = (1, 2)
TARGET = 20.0
"""Milliseconds per run."""
MEMBERS = 4


class Enough(Exception):
    """The time of a round is over."""


def at_once(piece: Slice) -> Update:
    """Runs that have ended before they began."""
    finished = tuple(
        (run.key, Outcome(seed=run.seed, correct=0, due=2048, steps_done=1, parameters=1))
        for run in piece.pack.runs
    )
    return Update(metrics=(), finished=finished, checkpoint=None, step=1, seconds=0.0)


def specified(many: int) -> list[Run]:
    return [
        Run(
            architecture="full*2 @ heads=1, head_dim=32",
            task="eva:n=8",
            seed=seed,
            steps=10**6,
            batch=128,
            width=32,
            tested=256,
            stop_at=2.0,
        ).canonical()
        for seed in range(many)
    ]


def overhead(many: int, processes: int) -> float:
    """Seconds of a sweep of runs without work."""
    import sweeps

    runs = specified(many)
    with tempfile.TemporaryDirectory() as folder, Store.create(Path(folder, "runs.db")) as store:
        store.add("overhead", runs)
        packs = packed(runs, 1)
        # workers import it by its name
        with LocalEngine(processes, work=sweeps.at_once) as engine:
            begin = time.perf_counter()
            last = run_sweep(store, packs, engine, owner="benchmark")
            seconds = time.perf_counter() - begin
        assert last.counts["done"] == many
        assert {row.completions for row in store.rows()} == {1}
    return seconds


def pace(processes: int, seconds: float) -> float:
    """Model-steps per second while every process trains a pack of its own, from the first full
    slice of each on.
    """
    runs = specified(MEMBERS * processes)
    seen: list[tuple[float, int]] = []

    def told(snapshot: Snapshot) -> None:
        # every process has told of a slice
        if snapshot.counts.get("running") == len(runs) and all(row.step for row in store.rows()):
            seen.append((time.perf_counter(), snapshot.steps))
        if seen and seen[-1][0] - seen[0][0] >= seconds:
            raise Enough

    with (
        tempfile.TemporaryDirectory() as folder,
        Store.create(Path(folder, "runs.db")) as store,
        LocalEngine(processes) as engine,
    ):
        store.add("pace", runs)
        with suppress(Enough):
            run_sweep(
                store, packed(runs, MEMBERS), engine, owner="benchmark", slice_seconds=1.0,
                told=told,
            )  # fmt: skip
    return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="Of each round of training.")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    print("| processes | runs | sweep, s | per run, ms | target, ms | met |")
    print("| --- | --- | --- | --- | --- | --- |")
    for processes in PROCESSES:
        seconds = overhead(arguments.runs, processes)
        each = 1000 * seconds / arguments.runs
        met = "yes" if each < TARGET else "no"
        cells = (
            processes,
            f"{arguments.runs:,}",
            f"{seconds:.1f}",
            f"{each:.2f}",
            f"{TARGET:g}",
            met,
        )
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    paces: dict[int, list[float]] = {processes: [] for processes in PROCESSES}
    for _ in range(arguments.rounds):
        for processes in PROCESSES:
            paces[processes].append(pace(processes, arguments.seconds))
    print("\n| processes | model-steps/s, median | all rounds | against one process |")
    print("| --- | --- | --- | --- |")
    one = statistics.median(paces[1])
    for processes, found in paces.items():
        median = statistics.median(found)
        shown = ", ".join(f"{pace:.0f}" for pace in found)
        print(f"| {processes} | {median:.0f} | {shown} | {median / one:.2f} |")


if __name__ == "__main__":
    try:
        main()
    except SeparatrixError as error:
        sys.exit(f"error: {error}")
