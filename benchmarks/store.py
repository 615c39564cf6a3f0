"""The store of training runs at its largest: what adding, claiming and telling cost for each run,
and how long `separatrix runs list` takes, from the shell to its last line.

    python benchmarks/store.py [--runs 100000] [--metrics 10] [--store FILE]

Nothing is trained. The store is made in a folder of its own unless FILE, which is kept, names it.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from separatrix.core.evidence.outcome import Outcome
from separatrix.models.stored.run import Run
from separatrix.training.packs import Metric, Pack, Update, packed
from separatrix.training.sweeps.store import Store

STACKS = ("full", "gdn*2", "mamba2*3 + full", "linear*4", "full*2 + gdn*6")
TASKS = ("eva:n=8,V=8", "eva:n=16,V=16", "seqcomp:L=2,n=16", "eva:n=64,V=64")
RATES = (1e-3, 3e-3, 1e-2, 3e-2)
MEMBERS = 16
ROUNDS = 7
LISTS = {
    "runs list": (),
    "runs list --sort=-accuracy": ("--sort=-accuracy",),
    "runs list --sweep s1 --status diverged": ("--sweep", "s1", "--status", "diverged"),
    "runs list --limit 0 (all of them)": ("--limit", "0"),
    "runs list --json (all of them)": ("--json",),
}


def grid(number: int) -> list[Run]:
    """So many runs of many cells."""
    cells = [(stack, task, rate) for stack in STACKS for task in TASKS for rate in RATES]
    seeds = math.ceil(number / len(cells))
    return [
        Run(architecture=stack, task=task, learning_rate=rate, seed=seed)
        for stack, task, rate in cells
        for seed in range(seeds)
    ][:number]


def told(pack: Pack, metrics: int, rng: random.Random) -> Update:
    """What a pack gives that is trained in one slice."""
    ended = []
    for run in pack.runs:
        diverged = rng.random() < 0.01
        tested = 0 if diverged else run.tested
        correct = rng.randrange(tested + 1)
        outcome = Outcome(
            seed=run.seed,
            status="diverged" if diverged else "done",
            stopped="diverged" if diverged else "steps",
            correct=correct,
            tested=tested,
            right=correct,
            due=tested,
            steps_done=run.steps,
            parameters=25_000,
            seconds=rng.uniform(1, 100),
        )
        ended.append((run.key, outcome))
    steps = [100 * place for place in range(1, metrics + 1)]
    return Update(
        metrics=tuple(
            Metric(run.key, step, rng.random(), rng.random(), run.learning_rate)
            for run in pack.runs
            for step in steps
        ),
        finished=tuple(ended),
        checkpoint=None,
        step=1000,
        seconds=20.0,
    )


def fill(path: Path, runs: Sequence[Run], metrics: int) -> None:
    """Adds the runs, and ends all but one of a hundred packs."""
    rng = random.Random(0)
    with Store.create(path) as store:
        start = time.perf_counter()
        third = len(runs) // 3
        for place, part in enumerate((runs[:third], runs[third:])):
            store.add(f"s{place}", part)
        print(f"add    {per_run(start, len(runs))}")
        packs = packed(runs, MEMBERS)
        kept = [pack for place, pack in enumerate(packs) if place % 100]
        times = {"claim": 0.0, "tell": 0.0}
        for pack in kept:
            start = time.perf_counter()
            assert len(store.take_up(pack.keys, "benchmark")[0]) == len(pack.runs)
            times["claim"] += time.perf_counter() - start
            update = told(pack, metrics, rng)
            start = time.perf_counter()
            store.tell(pack, update, "benchmark")
            times["tell"] += time.perf_counter() - start
        number = sum(len(pack.runs) for pack in kept)
        for name, seconds in times.items():
            print(
                f"{name:6} {1000 * seconds / number:8.3f} ms for each run,"
                f" {1000 * seconds / len(kept):.2f} ms for each pack of {MEMBERS}"
            )


def alone(path: Path, number: int = 200) -> None:
    """The same for packs of one run, the most that a run can cost, with checkpoints of 1 MB."""
    runs = [Run(architecture="full", task="eva:n=4,V=4", seed=seed) for seed in range(number)]
    rng = random.Random(1)
    times: dict[str, list[float]] = {"claim": [], "tell": [], "tell with 1 MB": []}
    with Store.open(path) as store:
        store.add("alone", runs)
        for run in runs:
            pack = Pack((run,))
            going = Update(
                metrics=(), finished=(), checkpoint=rng.randbytes(1_000_000), step=10, seconds=1.0
            )
            ended = told(pack, 10, rng)
            for name, work in (
                ("claim", lambda pack=pack: store.take_up(pack.keys, "alone")),
                ("tell with 1 MB", lambda pack=pack, going=going: store.tell(pack, going, "alone")),
                ("tell", lambda pack=pack, ended=ended: store.tell(pack, ended, "alone")),
            ):
                start = time.perf_counter()
                work()
                times[name].append(1000 * (time.perf_counter() - start))
    for name, values in times.items():
        values.sort()
        print(
            f"one run alone, {name:14}  median {statistics.median(values):6.2f} ms,"
            f" 95 % below {values[int(0.95 * number)]:6.2f} ms"
        )


def per_run(start: float, number: int) -> str:
    seconds = time.perf_counter() - start
    return f"{1000 * seconds / number:8.3f} ms for each run, {seconds:.1f} s in all"


def lists(path: Path) -> None:
    """The whole command, alternating with a bare start of Python: seconds on the clock, and those
    of them that a core computed, which other work on the machine does not lengthen.
    """
    commands = {"python -c pass": ["-c", "pass"]} | {
        name: ["-m", "separatrix", "runs", "list", "--store", str(path), *options]
        for name, options in LISTS.items()
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    busy: dict[str, list[float]] = {name: [] for name in commands}
    sizes: dict[str, int] = {}
    for _ in range(ROUNDS):
        for name, words in commands.items():
            before = os.times()
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, *words],
                capture_output=True,
                check=True,
                env={**os.environ, "COLUMNS": "120"},
            )
            times[name].append(time.perf_counter() - start)
            after = os.times()
            busy[name].append(sum(after[2:4]) - sum(before[2:4]))
            sizes[name] = done.stdout.count(b"\n")
    for name, values in times.items():
        print(
            f"{name:40} {statistics.median(values):6.3f} s"
            f"  ({min(values):.3f} to {max(values):.3f}; {statistics.median(busy[name]):.3f} s of"
            f" computing; {sizes[name]:,} lines)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--metrics", type=int, default=10)
    parser.add_argument("--store", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.store or Path(folder, "runs.sqlite")
        if not path.exists():
            fill(path, grid(chosen.runs), chosen.metrics)
            alone(path)
        print(f"{path.stat().st_size / 1e6:.0f} MB")
        lists(path)


if __name__ == "__main__":
    main()
