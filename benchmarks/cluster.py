"""Sweeps on a Ray cluster: what is measured on two nodes of this machine, and what that says of
1, 8 and 64 machines.

Measured: the bytes of slices and updates of real models; slices per second of the engine with 1, 2
and 4 workers; the scheduler's and the store's time for an update and for a run; model-steps per
second of 1 and 2 workers on Ray and in local processes, in alternating rounds. Modelled: the
table of machines, from those numbers and a machine's cores alone.

    python benchmarks/cluster.py [--cores 16] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import ceil
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import pretended
from support.engines import InPlace
from support.ray_cluster import Node, by_processor_time, until

from separatrix.models.stored.run import Run
from separatrix.training.packs import Pack, Slice, Update, packed
from separatrix.training.sweeps.engines.base import Engine, Work
from separatrix.training.sweeps.engines.pool import LocalEngine
from separatrix.training.sweeps.engines.ray import RayEngine
from separatrix.training.sweeps.schedule import FIRST_SLICE, run_sweep, slice_length
from separatrix.training.sweeps.store import Store

MQAR = "mqar:vocab_size=256,input_seq_len=64,num_kv_pairs=8"
STEPS = 600
"""Until 99 % of MQAR with 8 pairs, with Muon (docs/benchmarks.md)."""
RUNS = 10_000
MACHINES = (1, 8, 64)
SLICE = 20.0
"""Most seconds of a slice of `separatrix sweep`, unless there are very many workers."""


@dataclass(frozen=True)
class Parts:
    """What was measured."""

    wire: int
    """Bytes of a slice and its update."""
    update: float
    """Seconds of the scheduler's process for an update: both ways, and the store."""
    run: float
    """Seconds of it for a run, from its claim to its end."""
    start: float
    """Seconds until a worker has trained its first step."""
    rate: float
    """Steps of one worker per second of its processor time."""


def runs(many: int, *, stack: str = "full*2", width: int = 64) -> list[Run]:
    return [
        Run(
            architecture=stack,
            task=MQAR,
            seed=seed,
            batch=64,
            width=width,
            hidden=4 * width,
            steps=100_000,
            stop_at=1.0,
        ).canonical()
        for seed in range(many)
    ]


def trained(pack: Pack) -> tuple[Slice, Update]:
    """A slice in the middle of a real training, and its update."""
    from separatrix.training.work import work

    first = work(Slice(pack=pack, checkpoint=None, seconds=0.1))
    piece = Slice(pack=pack, checkpoint=first.checkpoint, seconds=2.0)
    return piece, work(piece)


def measured_bytes() -> tuple[Slice, Update]:
    """Prints what travels; returns a slice and update of one model of width 64."""
    print("\nBytes of a slice to a worker and of its update back (measured, pickled):\n")
    print("| pack | slice, to the same worker | slice, to another | update |")
    print("| --- | --- | --- | --- |")
    kept = None
    for title, pack in (
        ("one model, full*2, width 64", Pack(tuple(runs(1)))),
        ("one model, gdn*2, width 64", Pack(tuple(runs(1, stack="gdn*2")))),
        ("four models, full*2, width 32", Pack(tuple(runs(4, width=32)))),
    ):
        piece, update = trained(pack)
        kept = kept or (piece, update)
        same = replace(piece, checkpoint=None)
        sizes = [len(pickle.dumps(one, protocol=5)) for one in (same, piece, update)]
        print(f"| {title} | {sizes[0]:,} | {sizes[1]:,} | {sizes[2]:,} |", flush=True)
    assert kept is not None
    return kept


@contextmanager
def nodes() -> Iterator[str]:
    """A cluster of two nodes with two workers each; its address."""
    head = Node(cpus=2)
    more = None
    try:
        more = Node(head.address(), cpus=2)
        yield head.address()
    finally:
        for node in (more, head):
            if node is not None:
                node.die()


def engine(address: str, work: Work | None = None) -> RayEngine:
    made = RayEngine(address, work=work)
    until(lambda: made.workers == 4)
    return made


def round_trips(address: str, piece: Slice) -> float:
    """Prints slices per second; returns seconds for one with its bytes, of 4 workers at once."""
    print("\nSlices per second of the engine with work that takes no time (measured):\n")
    print("| workers | without a checkpoint | that give one of one model of width 64 back |")
    print("| --- | --- | --- |")
    rates = [0.0, 0.0]
    with engine(address, pretended.bouncing) as cluster:
        for workers in (1, 2, 4):
            rates = [
                bounced(cluster, replace(piece, checkpoint=data), workers, seconds=2.0)
                for data in (None, piece.checkpoint)
            ]
            print(f"| {workers} | {rates[0]:,.0f} | {rates[1]:,.0f} |", flush=True)
    return 1 / rates[1]


def bounced(cluster: Engine, piece: Slice, workers: int, seconds: float) -> float:
    """Slices per second with as many of them at once."""
    # each has a pack of its own, so that all workers take part
    pieces = [replace(piece, pack=Pack((run,))) for run in runs(workers)]
    going = {cluster.submit(one): one for one in pieces}
    begin = time.perf_counter()
    back = 0
    while (spent := time.perf_counter() - begin) < seconds:
        for ticket, _ in cluster.wait(1.0):
            back += 1
            one = going.pop(ticket)
            going[cluster.submit(one)] = one
    while going:
        for ticket, _ in cluster.wait(1.0):
            going.pop(ticket)
    return back / spent


def driver(address: str, piece: Slice, update: Update, bounce: float, folder: Path) -> Parts:
    """Prints what the scheduler's process spends."""
    pack = piece.pack
    with Store.create(folder / "tell.db") as store:
        store.add("sweep", pack.runs)
        store.take_up(list(pack.keys), "me")
        times = []
        for _ in range(40):
            begin = time.perf_counter()
            store.tell(pack, update, "me")
            times.append(time.perf_counter() - begin)
    told = statistics.median(times)
    per_run = {}
    many = pretended.runs(200)
    for name, made in (
        ("in one process", InPlace(pretended.at_once, workers=4)),
        ("on Ray, 4 workers", engine(address, pretended.at_once)),
    ):
        with Store.create(folder / f"{name[:6]}.db") as store, made:
            store.add("sweep", many)
            begin = time.perf_counter()
            run_sweep(store, packed(many, 1), made, owner="me")
            per_run[name] = (time.perf_counter() - begin) / len(many)
    print("\nTime of the scheduler's process (measured, work that takes no time):\n")
    print("| what | ms |\n| --- | --- |")
    print(f"| an update with its checkpoint, written to the store | {1000 * told:.1f} |")
    print(f"| its slice to a worker and back, of 4 at once | {1000 * bounce:.1f} |")
    for name, value in per_run.items():
        print(f"| a whole run of one slice, {name} | {1000 * value:.1f} |", flush=True)
    # a worker goes on from the checkpoint that it has
    sent = (replace(piece, checkpoint=None), update)
    wire = sum(len(pickle.dumps(one, protocol=5)) for one in sent)
    return Parts(wire, told + bounce, max(per_run.values()), 0.0, 0.0)


def rates(address: str, rounds: int) -> tuple[float, float]:
    """Prints model-steps per second; returns those of a worker by its processor time, and the
    seconds until the first step.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    begin = time.perf_counter()
    with (
        engine(address, by_processor_time) as cluster,
        LocalEngine(2, work=by_processor_time) as local,
    ):
        first = Stepping(cluster, 1)
        first.rate(0.1)
        start = time.perf_counter() - begin
        kinds = {
            "1 local process": Stepping(local, 1),
            "1 worker on Ray": first,
            "2 local processes": Stepping(local, 2),
            "2 workers on Ray": Stepping(cluster, 2),
        }
        for kind in kinds.values():
            kind.rate(0.1)
        for _ in range(rounds):
            for name, kind in kinds.items():
                found.setdefault(name, []).append(kind.rate(2.0))
    print(f"\nModel-steps, width 64, MQAR T=64, batch 64 (measured, medians of {rounds}):\n")
    print("| where | a second | a second of processor time |\n| --- | --- | --- |")
    for name, values in found.items():
        wall, processor = (statistics.median(column) for column in zip(*values, strict=True))
        print(f"| {name} | {wall:.1f} | {processor:.1f} |")
    print(f"\nFrom connecting to the first step trained: {start:.1f} s (measured)", flush=True)
    return statistics.median(value for _, value in found["2 workers on Ray"]), start


class Stepping:
    """Some packs of one model each that go on from round to round."""

    def __init__(self, made: Engine, workers: int) -> None:
        self._engine = made
        self._pieces = [
            Slice(pack=Pack((run,)), checkpoint=None, seconds=0.1) for run in runs(workers)
        ]
        self._steps = [0] * workers

    def rate(self, seconds: float) -> tuple[float, float]:
        """Steps of all packs together in slices of this length: a second, and a second of the
        workers' processor time.
        """
        pieces = [replace(piece, seconds=seconds) for piece in self._pieces]
        begin = time.perf_counter()
        going = {self._engine.submit(piece): number for number, piece in enumerate(pieces)}
        steps = 0
        processor = 0.0
        while going:
            for ticket, update in self._engine.wait(1.0):
                assert isinstance(update, Update), update
                number = going.pop(ticket)
                steps += update.step - self._steps[number]
                processor += update.seconds
                self._steps[number] = update.step
                self._pieces[number] = replace(pieces[number], checkpoint=update.checkpoint)
        return steps / (time.perf_counter() - begin), steps / processor


def machines(parts: Parts, cores: int) -> None:
    """Prints what the parts say of more machines."""
    seconds = STEPS / parts.rate
    print(
        f"\nA sweep of {RUNS:,} runs of {STEPS} steps (modelled: {seconds:.0f} s of one core each;"
        f" machines of {cores} cores like these):\n"
    )
    print(
        "| machines | workers | slices of a run | wall time | efficiency | scheduler busy |"
        " its network | lost with a machine |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    for number in MACHINES:
        workers = number * cores
        lengths = slices(seconds, workers)
        serial = RUNS * (parts.run + (len(lengths) - 1) * parts.update)
        # whole rounds of the workers: the last one is waited for
        compute = ceil(RUNS / workers) * seconds
        wall = parts.start + max(compute, serial)
        ideal = RUNS * seconds / workers
        lost = cores * statistics.mean(lengths) / 2
        print(
            f"| {number} | {workers:,} | {len(lengths)} | {duration(wall)} | {ideal / wall:.0%} |"
            f" {serial / wall:.1%} | {RUNS * len(lengths) * parts.wire / wall / 1e6:.2f} MB/s |"
            f" {lost:.0f} core-seconds, {lost / (RUNS * seconds):.1e} of the sweep |"
        )


def slices(seconds: float, workers: int) -> list[float]:
    """The lengths of the slices of a run that takes so long."""
    lengths: list[float] = []
    wanted = FIRST_SLICE
    while sum(lengths) < seconds:
        left = seconds - sum(lengths)
        lengths.append(min(left, slice_length(wanted, workers)))
        wanted = min(2 * wanted, SLICE)
    return lengths


def duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{seconds / 60:.1f} min"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Sweeps on a Ray cluster, measured and modelled.")
    parser.add_argument("--cores", type=int, default=16, help="cores of a machine in the table")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    if find_spec("ray") is None:
        print("needs the extra 'cluster': pip install 'separatrix[cluster]'")
        return
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    piece, update = measured_bytes()
    with nodes() as address, tempfile.TemporaryDirectory() as folder:
        bounce = round_trips(address, piece)
        parts = driver(address, piece, update, bounce, Path(folder))
        rate, start = rates(address, options.rounds)
    machines(replace(parts, rate=rate, start=start), options.cores)


if __name__ == "__main__":
    main()
