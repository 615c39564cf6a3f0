"""The training engine: steps beside Zoology's loop, models at 99 % per hour, what packs gain,
recurrences beside attention, and the share of the matmul peak that is used.

    python benchmarks/training.py steps --zoology PATH    steps/s, each loop in its own process
    python benchmarks/training.py study                   what the study trains, alone and in packs
    python benchmarks/training.py solve --zoology PATH    models at 99 % accuracy per hour
    python benchmarks/training.py packs                   model-steps/s against models in a pack
    python benchmarks/training.py mixers                  recurrences beside full attention, T = 256
    python benchmarks/training.py peak                    FLOPs over the peak of a matmul
    python benchmarks/training.py cuda --zoology PATH     64 models together on a CUDA device

MQAR, two layers, one head as wide as the model, an MLP of four times the width, batch 64, float32,
one thread, medians of rounds that alternate. Seconds are those of the processor, which on an idle
machine are the clock's; on CUDA they are the clock's. Zoology's
checkout and what it needs (pydantic, pandas, tqdm) are the caller's; zoology_loop.py says which
commit.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode
from zoology_loop import Zoology, import_zoology

from separatrix.models.model import Model
from separatrix.models.stored.accuracy import prompt_stream
from separatrix.models.stored.run import Run
from separatrix.tasks import parse_task
from separatrix.tasks.base.task import NO_ANSWER
from separatrix.training.engine import Trainer
from separatrix.training.packs import Pack
from separatrix.training.probe import quick_cpu

NEVER = 2.0
"""An accuracy at which no training ends."""
WIDTH = 64
BATCH = 64
VOCABULARY = 256
PAIRS = 8


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

LOOPS = ("Zoology", "Zoology, oneDNN", "ours, AdamW", "ours, Muon")


def _loop(checkout: Path, name: str, tokens: int, seconds: float, asked: Connection) -> None:
    """Steps per second of a loop as it is shipped, in its own process, whenever it is asked."""
    torch.set_num_threads(1)
    if name.startswith("Zoology"):
        import_zoology(checkout)
        if name.endswith("oneDNN"):
            torch.set_float32_matmul_precision("medium")
        theirs = Zoology(
            tokens=tokens,
            pairs=PAIRS,
            vocabulary=vocabulary_for(tokens),
            width=WIDTH,
            batch=BATCH,
            batches=max(4, round(seconds * 1280 / tokens)),
        )
        measure = lambda: len(theirs.train) / theirs.epoch_seconds()  # noqa: E731
    else:
        ours = settled(run(tokens, optimiser=name.rpartition(" ")[2].lower()))
        measure = lambda: steps_per_second(ours, seconds)  # noqa: E731
    # what a first round loads and keeps is not counted
    measure()
    asked.send("ready")
    while asked.recv():
        asked.send(measure())


def steps(checkout: Path, rounds: int, seconds: float) -> None:
    context = multiprocessing.get_context("spawn")
    print(f"| T | {' | '.join(LOOPS)} | AdamW over Zoology, with oneDNN | Muon |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for tokens in (64, 256):
        loops: dict[str, Connection] = {}
        for name in LOOPS:
            loops[name], end = context.Pipe()
            context.Process(
                target=_loop, args=(checkout, name, tokens, seconds, end), daemon=True
            ).start()
            loops[name].recv()
        found: dict[str, list[float]] = {name: [] for name in loops}
        # in turns: no two of them at once
        for _ in range(rounds):
            for name, loop in loops.items():
                loop.send(True)
                found[name].append(loop.recv())
        for loop in loops.values():
            loop.send(False)
        speeds = [f"{statistics.median(each):.1f}" for each in found.values()]
        ratios = [
            ", ".join(f"{statistics.median(_ratios(found[o], found[z])):.2f}x" for z in LOOPS[:2])
            for o in LOOPS[2:]
        ]
        print(f"| {tokens} | {' | '.join([*speeds, *ratios])} |", flush=True)


def _ratios(some: list[float], others: list[float]) -> list[float]:
    return [a / b for a, b in zip(some, others, strict=True)]


# study --------------------------------------------------------------------------------------------


def study(rounds: int) -> None:
    """Milliseconds of a core for a step of one model, as the study trains them: MLPs of twice the
    width, batch 64, MQAR with 4 pairs.
    """
    torch.set_num_threads(1)
    print("| stack | d | T | in packs of 8 | alone |")
    print("| --- | --- | --- | --- | --- |")
    for layers, width, tokens in ((2, 32, 32), (8, 32, 32), (8, 32, 64), (8, 64, 64)):
        for kind, conv in (("full", 0), ("full", 4), ("gdn", 0), ("gdn", 4)):
            said = f"heads=1, head_dim={width}" + f", conv={conv}" * (conv > 0)
            one = Run(
                architecture=f"{kind}*{layers} @ {said}",
                task=mqar(tokens, vocabulary=2 * tokens, pairs=4),
                seed=0,
                batch=BATCH,
                width=width,
                hidden=2 * width,
                steps=100_000,
                stop_at=NEVER,
            )
            cells = []
            for members in (8, 1):
                made = settled(Pack(tuple(replace(one, seed=seed) for seed in range(members))))
                spent = []
                for _ in range(rounds):
                    start = time.process_time()
                    made.advance(4)
                    spent.append((time.process_time() - start) / 4 / members)
                cells.append(f"{1e3 * statistics.median(spent):.1f}")
            stack = f"{kind}*{layers}" + ", conv=4" * (conv > 0)
            print(f"| {stack} | {width} | {tokens} | {' | '.join(cells)} |", flush=True)


# solve --------------------------------------------------------------------------------------------

EVERY = 50
AT = 0.99
ZOOLOGY_RATES = (1e-4, 4.64e-4, 2.15e-3, 1e-2)
"""The grid of its experiments."""


class Tried(NamedTuple):
    """One training: the step of the first look at which it had solved, None where none had, its
    steps, and seconds of the processor for them and for drawing their prompts.
    """

    at: int | None
    steps: int
    spent: float
    drawing: float


def _their_model(checkout: Path, sizes: dict[str, int], most: int, rate: float, seed: int) -> Tried:
    torch.set_num_threads(1)
    import_zoology(checkout)
    start = time.process_time()
    theirs = Zoology(
        tokens=64,
        vocabulary=sizes["vocabulary"],
        pairs=sizes["pairs"],
        width=WIDTH,
        batch=BATCH,
        batches=1_563,
        learning_rate=rate,
        seed=seed,
    )
    made = (time.process_time() - start) / 1_563
    at, spent = theirs.solve(every=EVERY, at=AT, most=most)
    return Tried(at, at or most, spent, made * (at or most))


def _our_model(optimiser: str, sizes: dict[str, int], most: int, rate: float, seed: int) -> Tried:
    torch.set_num_threads(1)
    task = mqar(64, **sizes)
    one = run(64, task=task, steps=most, seed=seed, learning_rate=rate, optimiser=optimiser)
    trainer = Trainer(Pack(runs=(one,)))
    start = time.process_time()
    parse_task(task).sample(BATCH * 100, np.random.default_rng(seed))
    drawing = (time.process_time() - start) / 100
    spent = 0.0
    while trainer.active:
        start = time.process_time()
        trainer.advance(EVERY)
        spent += time.process_time() - start
        if _accuracy(trainer.model(one.key), one) >= AT:
            return Tried(trainer.step, trainer.step, spent, drawing * trainer.step)
    return Tried(None, most, spent, drawing * most)


@torch.no_grad()
def _accuracy(model: Model, one: Run) -> float:
    """Share of answers that are right, over 512 fresh prompts, as of Zoology's models."""
    batch = parse_task(one.task).sample(512, prompt_stream(one.seed))
    targets = torch.from_numpy(batch.targets)
    due = targets != NO_ANSWER
    right = model.every(torch.from_numpy(batch.tokens)).argmax(-1) == targets
    return float(right[due].float().mean())


def solve(checkout: Path, seeds: int, vocabulary: int, pairs: int, most: int) -> None:
    """Zoology at the best of four rates, chosen on one seed that is not counted after; ours at that
    rate with AdamW, and with Muon at its default. Seed by seed, so that what else runs meets all.
    """
    sizes = {"vocabulary": vocabulary, "pairs": pairs}
    theirs = partial(_their_model, checkout, sizes)
    ours = partial(_our_model, sizes=sizes, most=most)
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        best, soonest = ZOOLOGY_RATES[2], most
        for rate in sorted(ZOOLOGY_RATES, reverse=True):  # none that is later than the best counts
            one = pool.apply(theirs, (soonest, rate, 100))
            print(f"choosing: Zoology at {rate:g}: step {one.at}, {one.spent:.0f} s", flush=True)
            if one.at is not None and one.at < soonest:
                best, soonest = rate, one.at
        loops = {
            "Zoology": (partial(theirs, most), best),
            "ours, AdamW": (partial(ours, "adamw"), best),
            "ours, Muon": (partial(ours, "muon"), Run.learning_rate),
        }
        tried: dict[str, list[Tried]] = {name: [] for name in loops}
        for seed in range(seeds):
            for name, (model, rate) in loops.items():
                one = pool.apply(model, (), {"rate": rate, "seed": seed})
                print(f"seed {seed}: {name}: step {one.at}, {one.spent:.0f} s", flush=True)
                tried[name].append(one)
    print("| loop | rate | seeds at 99 % | steps | s each | of these data | ms/step | per hour |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, found in tried.items():
        reached = [one.at for one in found if one.at is not None]
        spent, drawing, done = (
            sum(getattr(one, field) for one in found) for field in ("spent", "drawing", "steps")
        )
        print(
            f"| {name} | {loops[name][1]:g} | {len(reached)} of {seeds}"
            f" | {statistics.median(reached) if reached else 0:.0f} | {spent / seeds:.1f}"
            f" | {drawing / seeds:.2f} | {1e3 * spent / done:.1f}"
            f" | {3600 * len(reached) / spent:.0f} |"
        )


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
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "part", choices=("steps", "study", "solve", "packs", "mixers", "peak", "cuda")
    )
    parser.add_argument("--zoology", type=Path, help="Path of a checkout of Zoology.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="Of each part of a round.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="Of solve, and its ids:")
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY)
    parser.add_argument("--most", type=int, default=4_000, help="Steps of a training of solve.")
    given = parser.parse_args()
    if given.part in ("steps", "solve", "cuda") and given.zoology is None:
        parser.error(f"{given.part} needs --zoology PATH")
    match given.part:
        case "steps":
            steps(given.zoology, given.rounds, given.seconds)
        case "solve":
            solve(given.zoology, given.seeds, given.vocabulary, given.pairs, given.most)
        case "study":
            study(given.rounds)
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
