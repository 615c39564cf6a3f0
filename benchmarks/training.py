"""The training engine: steps beside Zoology's loop, models at 99 % per hour, what packs gain,
recurrences beside attention, and the share of the matmul peak that is used.

    python benchmarks/training.py steps --zoology PATH    both in alternating rounds of one run
    python benchmarks/training.py solve --zoology PATH    models at 99 % accuracy per hour (15 min)
    python benchmarks/training.py packs                   model-steps/s against models in a pack
    python benchmarks/training.py mixers                  recurrences beside full attention, T = 256
    python benchmarks/training.py peak                    FLOPs over the peak of a matmul
    python benchmarks/training.py cuda --zoology PATH     64 models together on a CUDA device

MQAR, two layers, one head as wide as the model, an MLP of four times the width, batch 64, float32;
`steps` and `solve` in two processes of one thread, medians of the rounds. Seconds are those of the
processor, which on an idle machine are the clock's; on CUDA they are the clock's. Zoology's
checkout and what it needs (pydantic, pandas, tqdm) are the caller's; zoology_loop.py says which
commit.
"""

from __future__ import annotations

import argparse
import multiprocessing
import queue
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode
from zoology_loop import Zoology, import_zoology

from separatrix.models.model import Model
from separatrix.models.stored.accuracy import prompt_stream
from separatrix.tasks import parse_task
from separatrix.tasks.base.task import NO_ANSWER
from separatrix.training.engine import Trainer
from separatrix.training.packs import Pack
from separatrix.training.probe import quick_cpu
from separatrix.training.run import Run

PROCESSES = 2
NEVER = 2.0
"""An accuracy at which no training ends."""
WIDTH = 64
BATCH = 64
VOCABULARY = 256
PAIRS = 8
Row = list[str]


def vocabulary_for(tokens: int) -> int:
    """Zoology's generator asks for more ids than tokens."""
    return max(VOCABULARY, tokens + 2)


def mqar(tokens: int, *, vocabulary: int = 0, pairs: int = PAIRS) -> str:
    ids = vocabulary or vocabulary_for(tokens)
    return f"mqar:vocab_size={ids},input_seq_len={tokens},num_kv_pairs={pairs}"


def run(tokens: int, *, kind: str = "full", width: int = WIDTH, task: str = "", **more: Any) -> Run:
    settings = {"steps": 100_000, "stop_at": NEVER, "seed": 0} | more
    return Run(
        architecture=f"{kind}*2 @ heads=1, head_dim={width}",
        task=task or mqar(tokens),
        batch=BATCH,
        width=width,
        hidden=4 * width,
        **settings,
    )


def steps_per_second(trainer: Trainer, seconds: float) -> float:
    """Optimiser steps per second of processor time, of all models of a pack together in one step.
    On an idle machine that is the clock's.
    """
    done = trainer.step
    start = time.process_time()
    while time.process_time() - start < seconds:
        trainer.advance(5)
    return (trainer.step - done) / (time.process_time() - start)


def settled(made: Run | Pack) -> Trainer:
    """A trainer that has done its first steps."""
    pack = Pack(runs=(made,)) if isinstance(made, Run) else made
    trainer = Trainer(pack)
    trainer.advance(5)
    return trainer


# steps --------------------------------------------------------------------------------------------


def _beside_zoology(
    checkout: Path, tokens: int, rounds: int, seconds: float, barrier: Barrier, results: Any
) -> None:
    torch.set_num_threads(1)
    import_zoology(checkout)
    theirs = Zoology(
        tokens=tokens,
        pairs=PAIRS,
        vocabulary=vocabulary_for(tokens),
        width=WIDTH,
        batch=BATCH,
        batches=max(4, round(seconds * 1280 / tokens)),
    )
    ours = settled(run(tokens))
    theirs.epoch_seconds()
    found: dict[str, list[float]] = {"zoology": [], "zoology, oneDNN": [], "ours": []}
    for _ in range(rounds):
        for precision, name in (("highest", "zoology"), ("medium", "zoology, oneDNN")):
            barrier.wait()
            before = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision(precision)
            found[name].append(len(theirs.train) / theirs.epoch_seconds())
            torch.set_float32_matmul_precision(before)
        barrier.wait()
        found["ours"].append(steps_per_second(ours, seconds))
    results.put(found)


def steps(checkout: Path, rounds: int, seconds: float) -> None:
    print("| T | Zoology | Zoology, oneDNN | ours | over Zoology | over Zoology, oneDNN |")
    print("| --- | --- | --- | --- | --- | --- |")
    for tokens in (64, 256):
        found = side_by_side(_beside_zoology, checkout, tokens, rounds, seconds)
        # both processes together, round by round
        sums = {
            name: [sum(each) for each in zip(*(one[name] for one in found), strict=True)]
            for name in found[0]
        }
        ratios = (
            statistics.median(a / b for a, b in zip(sums["ours"], sums[other], strict=True))
            for other in ("zoology", "zoology, oneDNN")
        )
        speeds = (f"{statistics.median(each):.1f}" for each in sums.values())
        cells = " | ".join([*speeds, *(f"{ratio:.2f}x" for ratio in ratios)])
        print(f"| {tokens} | {cells} |", flush=True)


def side_by_side(target: Callable[..., None], *arguments: Any) -> list[Any]:
    """What two processes of one thread give, which wait for each other before every part."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    results = context.Queue()
    workers = [
        context.Process(target=target, args=(*arguments, barrier, results), daemon=True)
        for _ in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    found: list[Any] = []
    while len(found) < PROCESSES:
        try:
            found.append(results.get(timeout=1))
        except queue.Empty:
            # one that failed has said why; the other would wait for it
            if any(worker.exitcode for worker in workers):
                sys.exit(1)
    return found


# solve --------------------------------------------------------------------------------------------

EVERY = 50
MOST = 4_000
AT = 0.99
ZOOLOGY_RATES = (1e-4, 4.64e-4, 2.15e-3, 1e-2)
"""The grid of its experiments."""
OUR_RATES = (1e-3, 3e-3, 1e-2)


def _their_model(checkout: Path, rate: float, seed: int) -> tuple[int | None, float]:
    torch.set_num_threads(1)
    import_zoology(checkout)
    theirs = Zoology(
        tokens=64,
        pairs=PAIRS,
        vocabulary=VOCABULARY,
        width=WIDTH,
        batch=BATCH,
        batches=1_563,
        learning_rate=rate,
        seed=seed,
    )
    return theirs.solve(every=EVERY, at=AT, most=MOST)


def _our_model(checkout: Path, rate: float, seed: int) -> tuple[int | None, float]:
    torch.set_num_threads(1)
    one = run(64, steps=1_000, seed=seed, learning_rate=rate)
    trainer = Trainer(Pack(runs=(one,)))
    spent = 0.0
    while trainer.active:
        start = time.process_time()
        trainer.advance(EVERY)
        spent += time.process_time() - start
        if _accuracy(trainer.model(one.key), one) >= AT:
            return trainer.step, spent
    return None, spent


@torch.no_grad()
def _accuracy(model: Model, one: Run) -> float:
    """Share of answers that are right, over 512 fresh prompts, as of Zoology's models."""
    batch = parse_task(one.task).sample(512, prompt_stream(one.seed))
    targets = torch.from_numpy(batch.targets)
    due = targets != NO_ANSWER
    right = model.every(torch.from_numpy(batch.tokens)).argmax(-1) == targets
    return float(right[due].float().mean())


def solve(checkout: Path, seeds: int) -> None:
    """Each side at its best rate, chosen on one seed that is not counted after."""
    with multiprocessing.get_context("spawn").Pool(PROCESSES, maxtasksperchild=1) as pool:
        print("| loop | rate | seeds at 99 % | steps (median) | s each | models per hour |")
        print("| --- | --- | --- | --- | --- | --- |")
        hourly: list[float] = []
        for name, model, rates in (
            ("Zoology", _their_model, ZOOLOGY_RATES),
            ("ours", _our_model, OUR_RATES),
        ):
            first = pool.starmap(model, [(checkout, rate, 100) for rate in rates], chunksize=1)
            solved = {
                rate: spent
                for rate, (at, spent) in zip(rates, first, strict=True)
                if at is not None
            }
            for rate, (at, spent) in zip(rates, first, strict=True):
                once = f"{at is not None:d} of 1"
                print(f"| {name}, choosing | {rate:g} | {once} | {at} | {spent:.1f} | |")
            best = min(solved, key=solved.__getitem__)
            found = pool.starmap(
                model, [(checkout, best, seed) for seed in range(seeds)], chunksize=1
            )
            reached = [at for at, _ in found if at is not None]
            spent = sum(seconds for _, seconds in found)
            hourly.append(PROCESSES * 3600 * len(reached) / spent)
            print(
                f"| {name} | {best:g} | {len(reached)} of {seeds}"
                f" | {statistics.median(reached):.0f} | {spent / seeds:.1f} | {hourly[-1]:.0f} |",
                flush=True,
            )
    print(f"\n{hourly[1] / hourly[0]:.1f} times as many models per hour")


# packs, mixers, peak ------------------------------------------------------------------------------


def packs(rounds: int, seconds: float) -> None:
    torch.set_num_threads(1)
    print("| width | T | models in a pack | model-steps/s | against one at a time |")
    print("| --- | --- | --- | --- | --- |")
    for width, tokens, pairs, vocabulary in ((32, 16, 4, 32), (64, 64, 8, 256)):
        task = mqar(tokens, vocabulary=vocabulary, pairs=pairs)
        made = {
            members: settled(
                Pack(
                    runs=tuple(
                        run(tokens, width=width, task=task, seed=seed) for seed in range(members)
                    )
                )
            )
            for members in (1, 2, 4, 8, 16)
        }
        speeds: dict[int, list[float]] = {members: [] for members in made}
        for _ in range(rounds):
            for members, trainer in made.items():
                speeds[members].append(members * steps_per_second(trainer, seconds))
        for members, each in speeds.items():
            ratio = statistics.median(a / b for a, b in zip(each, speeds[1], strict=True))
            speed = statistics.median(each)
            print(f"| {width} | {tokens} | {members} | {speed:.0f} | {ratio:.2f}x |", flush=True)


def mixers(rounds: int, seconds: float) -> None:
    torch.set_num_threads(1)
    made = {kind: settled(run(256, kind=kind)) for kind in ("full", "gdn", "mamba2", "linear")}
    speeds: dict[str, list[float]] = {kind: [] for kind in made}
    for _ in range(rounds):
        for kind, trainer in made.items():
            speeds[kind].append(steps_per_second(trainer, seconds))
    print("| mechanism | steps/s at T = 256 | against full attention |")
    print("| --- | --- | --- |")
    for kind, each in speeds.items():
        ratio = statistics.median(a / b for a, b in zip(each, speeds["full"], strict=True))
        print(f"| {kind} | {statistics.median(each):.1f} | {ratio:.2f}x |", flush=True)


def peak(rounds: int, seconds: float) -> None:
    """FLOPs of a step, as counted by torch, over the peak of a matmul in the same setting."""
    torch.set_num_threads(1)
    print("| width | T | GFLOP per step | steps/s | GFLOP/s | matmul peak | share |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for width, tokens in ((64, 64), (128, 64), (128, 256), (256, 64)):
        trainer = settled(run(tokens, width=width))
        with FlopCounterMode(display=False) as counted:
            trainer.advance(1)
        flops = counted.get_total_flops()
        shares, speeds, peaks = [], [], []
        for _ in range(rounds):
            peaks.append(matmul_peak(seconds))
            speeds.append(steps_per_second(trainer, seconds))
            shares.append(flops * speeds[-1] / peaks[-1])
        speed = statistics.median(speeds)
        print(
            f"| {width} | {tokens} | {flops / 1e9:.2f} | {speed:.1f} | {flops * speed / 1e9:.0f}"
            f" | {statistics.median(peaks) / 1e9:.0f} | {100 * statistics.median(shares):.0f} % |",
            flush=True,
        )


def matmul_peak(seconds: float, size: int = 1024) -> float:
    """FLOP/s of a product of square matrices under the setting that the engine trains with."""
    with quick_cpu("cpu"):
        a = torch.randn(size, size)
        a @ a
        done = 0
        start = time.process_time()
        while time.process_time() - start < seconds / 2:
            a @ a
            done += 1
        return 2 * size**3 * done / (time.process_time() - start)


def cuda(checkout: Path, rounds: int, seconds: float) -> None:
    """Model-steps/s at T = 256 of 64 models together, of one alone, and of Zoology's loop."""
    import_zoology(checkout)
    members = 64
    together = Pack(runs=tuple(run(256, seed=seed) for seed in range(members)))
    theirs = Zoology(
        tokens=256,
        pairs=PAIRS,
        vocabulary=vocabulary_for(256),
        width=WIDTH,
        batch=BATCH,
        batches=100,
        device="cuda",
    )
    trainers = {
        "together": Trainer(together, device="cuda"),
        "alone": Trainer(Pack(runs=(run(256),)), device="cuda"),
    }

    def clocked(trainer: Trainer) -> float:
        done = trainer.step
        torch.cuda.synchronize()
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            trainer.advance(20)
            torch.cuda.synchronize()
        return len(trainer.pack.runs) * (trainer.step - done) / (time.perf_counter() - start)

    for trainer in trainers.values():
        trainer.advance(40)
    theirs.epoch_seconds()
    found: dict[str, list[float]] = {"zoology": [], "alone": [], "together": []}
    for _ in range(rounds):
        found["zoology"].append(len(theirs.train) / theirs.epoch_seconds())
        for name, trainer in trainers.items():
            found[name].append(clocked(trainer))
    print("| what | model-steps/s | 64 together against it |")
    print("| --- | --- | --- |")
    for name, each in found.items():
        ratio = statistics.median(a / b for a, b in zip(found["together"], each, strict=True))
        print(f"| {name} | {statistics.median(each):.0f} | {ratio:.1f}x |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("steps", "solve", "packs", "mixers", "peak", "cuda"))
    parser.add_argument("--zoology", type=Path, help="Path of a checkout of Zoology.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="Of each part of a round.")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    if given.part in ("steps", "solve", "cuda") and given.zoology is None:
        parser.error(f"{given.part} needs --zoology PATH")
    match given.part:
        case "steps":
            steps(given.zoology, given.rounds, given.seconds)
        case "solve":
            solve(given.zoology, given.seeds)
        case "packs":
            packs(given.rounds, given.seconds)
        case "mixers":
            mixers(given.rounds, given.seconds)
        case "peak":
            peak(given.rounds, given.seconds)
        case "cuda":
            cuda(given.zoology, given.rounds, given.seconds)


if __name__ == "__main__":
    main()
