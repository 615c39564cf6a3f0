"""A sweep that is killed again and again (SIGKILL), and what is lost: a line for each kill.

    python benchmarks/kills.py                      50 kills of the scheduler, a worker, or both
    python benchmarks/kills.py --schedulers 2       two processes on one store; one is killed
    python benchmarks/kills.py --pretended          training that only pretends, so that it is quick

The sweep is first run undisturbed. Exit code 1 unless every run of the disturbed one ended exactly
once, with the same outcome and metrics bit for bit, no ended run ever changed, and no kill cost
more than the steps since the last checkpoints.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = "SEPARATRIX_KILLS_LOG"
"""Names the file in which workers tell of every few steps that they made."""
LAST_STEPS = 2.0
"""Seconds by which a slice may be longer than was asked: its last steps, and a test."""


SEEN = 0.8
"""How often a kill waits until steps were made; else it may come while processes start."""


# ---- in the processes that are killed


def trained(piece):  # type: ignore[no-untyped-def]
    """A slice of training that tells of its steps."""
    from separatrix.training.engine import Trainer
    from separatrix.training.work import work

    advance = Trainer.advance
    if advance.__name__ != "telling":

        def telling(self: Trainer, steps: int) -> None:
            before = self.step
            begin = time.time()
            advance(self, steps)
            tell(self.pack.key, before, self.step, begin)

        Trainer.advance = telling
    return work(piece)


def pretended(piece):  # type: ignore[no-untyped-def]
    """The same, pretended: each step turns a digest over."""
    from support.pretended import pretend

    end = time.time() + piece.seconds
    begin = time.time()
    whole = pretend(replace(piece, seconds=0.0))
    tell(piece.pack.key, whole.step - 1, whole.step, begin)
    while whole.checkpoint is not None and (begin := time.time()) < end:
        step = pretend(replace(piece, checkpoint=whole.checkpoint, seconds=0.0))
        tell(piece.pack.key, step.step - 1, step.step, begin)
        whole = replace(
            step,
            metrics=whole.metrics + step.metrics,
            finished=whole.finished + step.finished,
        )
    return whole


def tell(pack: str, before: int, after: int, begin: float) -> None:
    """One line, in one write, so that lines of several processes do not mix."""
    descriptor = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{begin} {time.time()} {pack} {before} {after}\n".encode())
    os.close(descriptor)


def sweep(path: Path, arguments: argparse.Namespace) -> None:
    """Does what is missing, as `separatrix sweep` does."""
    from separatrix.training.packs import remaining
    from separatrix.training.sweeps.engines.pool import LocalEngine
    from separatrix.training.sweeps.schedule import run_sweep
    from separatrix.training.sweeps.store import Store

    work = pretended if arguments.pretended else trained
    # workers import it by its name
    sys.path.insert(0, str(Path(__file__).parent))
    import kills

    work = getattr(kills, work.__name__)
    with Store.open(path) as store, LocalEngine(arguments.processes, work=work) as engine:
        rows = store.rows("kills")
        ended = [row.key for row in rows if row.status in ("done", "diverged", "failed")]
        runs = [row.run for row in rows]
        packs = remaining(runs, ended, store.packs([run.key for run in runs]), most=2)
        seconds = arguments.slice_seconds
        run_sweep(store, packs, engine, owner=f"process {os.getpid()}", slice_seconds=seconds)


# ---- in the process that kills


@dataclass
class Kill:
    """What was killed, when, and the steps that had to be made again."""

    number: int
    victim: str
    at: float
    done: int
    lost: list[tuple[int, float]] = field(default_factory=list)
    """Steps of a pack, and the seconds since its checkpoint."""


@dataclass(frozen=True)
class Steps:
    """A few steps of a pack: when, and from which to which."""

    begin: float
    end: float
    before: int
    after: int


def specified(arguments: argparse.Namespace) -> list:
    from separatrix.models.stored.run import Run

    return [
        Run(
            architecture="full @ heads=1, head_dim=16",
            task="eva:n=8",
            seed=seed,
            steps=arguments.steps,
            batch=16,
            learning_rate=rate,
            width=16,
            hidden=16,
            tested=256,
            stop_at=2.0,
        ).canonical()
        for rate in (3e-3, 1e-2)
        for seed in range(arguments.runs // 2)
    ]


def start(path: Path, log: Path) -> subprocess.Popen[bytes]:
    options = [option for option in sys.argv[1:] if option != "--sweep"]
    return subprocess.Popen(
        [sys.executable, __file__, *options, "--sweep", str(path)],
        env={**os.environ, LOG: str(log)},
        start_new_session=True,
    )


def children(process: int) -> list[int]:
    """The processes that this one has started (Linux)."""
    try:
        return [
            int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()
        ]
    except OSError:
        return []


def kill(scheduler: subprocess.Popen[bytes], victim: str, luck: random.Random) -> None:
    workers = children(scheduler.pid)
    luck.shuffle(workers)
    doomed = {
        "scheduler": [scheduler.pid],
        "worker": workers[:1],
        "worker and scheduler": [*workers[:1], scheduler.pid],
    }[victim]
    for process in doomed:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def ended(path: Path) -> dict[str, tuple]:
    """What ended runs have, by key: it may never change."""
    from separatrix.training.sweeps.store import Store

    with Store.read(path) as store:
        return {
            row.key: (row.status, row.result, row.completions, store.metrics(row.key))
            for row in store.rows("kills")
            if row.status not in ("waiting", "running")
        }


def disturbed(path: Path, log: Path, arguments: argparse.Namespace) -> list[Kill]:
    """Runs the sweep to its end in spite of the kills. Raises AssertionError for a run that had
    ended and changed.
    """
    luck = random.Random(arguments.seed)
    found: dict[str, tuple] = {}
    kills: list[Kill] = []
    running = [start(path, log) for _ in range(arguments.schedulers)]
    try:
        while len(kills) < arguments.kills:
            if luck.random() < SEEN:
                wait_for_steps(log, running)
            time.sleep(luck.uniform(*arguments.between))
            place = luck.randrange(len(running))
            if all(process.poll() == 0 for process in running):
                break
            victim = luck.choice(["scheduler", "worker", "worker and scheduler"])
            at = time.time()
            kill(running[place], victim, luck)
            if victim != "worker":
                running[place].wait()
                running[place] = start(path, log)
            now = ended(path)
            assert all(now[key] == value for key, value in found.items()), "an ended run changed"
            found = now
            kills.append(Kill(len(kills) + 1, victim, at, len(found)))
        for process in running:
            assert process.wait() == 0, f"a scheduler ended with {process.returncode}"
    finally:
        for process in running:
            process.kill()
    return kills


def wait_for_steps(log: Path, running: Sequence[subprocess.Popen[bytes]]) -> None:
    """Until some steps more were made, or all is done."""
    size = length(log)
    while length(log) == size and any(process.poll() is None for process in running):
        time.sleep(0.05)


def length(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def blame(kills: Sequence[Kill], log: Path) -> None:
    """Finds the steps that were made again, and the kill before each."""
    made: dict[str, list[Steps]] = {}
    for line in log.read_text().splitlines():
        words = line.split()
        steps = Steps(float(words[0]), float(words[1]), int(words[3]), int(words[4]))
        others = made.setdefault(words[2], [])
        again = [one for one in others if one.after > steps.before]
        if again:
            guilty = max((one for one in kills if one.at <= steps.end), key=lambda one: one.at)
            lost = again[-1].after - steps.before
            guilty.lost.append((lost, again[-1].end - again[0].begin))
        made[words[2]] = [*others[: len(others) - len(again)], steps]


def lines(kills: Sequence[Kill], runs: int) -> Iterator[str]:
    begin = kills[0].at if kills else 0.0
    for one in kills:
        lost = ", ".join(f"{steps} ({seconds:.2f} s)" for steps, seconds in one.lost) or "none"
        yield (
            f"kill {one.number:3} at {one.at - begin:6.1f} s: {one.victim:20} "
            f" {one.done:4} of {runs} runs ended   steps lost: {lost}"
        )


def compare(one: Path, other: Path) -> list[str]:
    """What differs between two stores, but for times."""
    from separatrix.training.sweeps.store import Store

    problems = []
    with Store.read(one) as calm, Store.read(other) as wild:
        for row, twin in zip(calm.rows("kills"), wild.rows("kills"), strict=True):
            if twin.completions != 1:
                problems.append(f"{row.key[:12]}: ended {twin.completions} times")
            if row.outcome is None or twin.outcome is None:
                problems.append(f"{row.key[:12]}: {row.status}, {twin.status} {twin.error}")
                continue
            if replace(row.outcome, seconds=0.0) != replace(twin.outcome, seconds=0.0):
                problems.append(f"{row.key[:12]}: {row.outcome} became {twin.outcome}")
            if calm.metrics(row.key) != wild.metrics(row.key):
                problems.append(f"{row.key[:12]}: other metrics")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--schedulers", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--pretended", action="store_true")
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--slice-seconds", type=float, default=1.0)
    parser.add_argument("--between", type=float, nargs=2, default=(0.0, 2.0))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sweep", type=Path)
    arguments = parser.parse_args()
    if arguments.pretended:
        sys.path.insert(0, str(ROOT / "tests"))
    if arguments.sweep is not None:
        sweep(arguments.sweep, arguments)
        return 0
    from separatrix.training.sweeps.store import Store

    runs = specified(arguments)
    with tempfile.TemporaryDirectory() as folder:
        stores = [Path(folder, name) for name in ("calm.db", "wild.db")]
        for path in stores:
            with Store.create(path) as store:
                store.add("kills", runs)
        begin = time.monotonic()
        assert start(stores[0], Path(folder, "calm.log")).wait() == 0
        calm = time.monotonic() - begin
        log = Path(folder, "wild.log")
        kills = disturbed(stores[1], log, arguments)
        blame(kills, log)
        print("\n".join(lines(kills, len(runs))))
        problems = compare(*stores)
    lost = [one for kill in kills for one in kill.lost]
    limit = arguments.slice_seconds + LAST_STEPS
    if late := [seconds for _, seconds in lost if not seconds <= limit]:
        problems.append(f"lost more than the {limit} s of a slice: {late}")
    print(
        f"{len(kills)} kills, {len(runs)} runs of {arguments.steps} steps, undisturbed"
        f" {calm:.0f} s: {sum(steps for steps, _ in lost)} steps of packs made again in"
        f" {len(lost)} places, at most {max((seconds for _, seconds in lost), default=0.0):.2f} s"
        f" since a checkpoint, slices of {arguments.slice_seconds} s; "
        + ("every run ended once, equal to the undisturbed sweep" if not problems else "WRONG")
    )
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
