"""Every mixer, forward and backward in float32 on two threads: the parallel form against the
recurrence, growth with t, and peak memory.

    python benchmarks/mechanisms.py [--only NAME ...] [--quick]

`--part training` times whole training steps beside full attention's, on one thread; `--part ratio`
each mixer by itself, forward and backward, and a step, beside full attention in turn.

Prints Markdown. Times are the best of runs that alternate between the two things compared, so that
other work on the machine slows down both; on a busy machine OMP_WAIT_POLICY=passive helps, where
threads would wait for each other by spinning. Memory is the peak of a process of its own, less what
it held before. Every mixer has 4 heads of 64 numbers, or 256 channels.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from separatrix.mixers import MIXERS, OTHER_FORMS, Mixer, mixer
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.ops.softmax import causal_softmax
from separatrix.models.model import Model, ModelConfig
from separatrix.stacks.mechanisms import MECHANISMS, mechanism

THREADS = 2
HEADS = 4
DIM = 64
WIDTH = 256
NARROW = 64
BATCH = 64
TOKENS = 2048
SHORT = 8192
LONG = 16384
SIZES: dict[str, Any] = {
    "heads": HEADS,
    "head_dim": DIM,
    "state": DIM,
    "width": WIDTH,
    "conv": 0,
    "size": 512,
    "block": 64,
    "topk": 8,
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in MIXERS} | {
    f"{name} {size}={value}": (name, {size: value}) for name, size, value in OTHER_FORMS
}
OWN: dict[str, dict[str, Any]] = {
    "rwkv": {"width": None},
    "shortconv": {"conv": 4},
    "indexed": {"block": 1, "topk": 512},
    "dsa": {"topk": 512},
    "mamba": {"state": 16},
}
"""Sizes of one mechanism that differ from SIZES: RWKV's width is that of its heads, a convolution
of 0 tokens is none, an indexer picks tokens, and a channel of Mamba has 16 numbers, as released.
"""

FASTER = 20.0
GROWTH = {
    "recurrent": 2.2,
    "convolution": 2.2,
    "windowed": 2.2,
    "loglinear": 2.5,
    "sparse": 2.5,
    "moba": 2.5,
}
"""Largest time at LONG over that at SHORT, by name or else by group; the others are quadratic by
definition.
"""
LINEAR = 2.4
"""Largest memory at LONG over that at SHORT that is not called more than linear; log-linear
attention has a level more.
"""
SLOWER = 1.05
"""Largest time of full attention over that of the fused kernel."""

Run = Callable[[], object]


def built(case: str) -> Mixer:
    name, sizes = CASES[case]
    known = {
        field: value
        for field, value in (SIZES | OWN.get(name, {})).items()
        if field in MECHANISMS[name].__dataclass_fields__
    }
    made = mixer(mechanism(name, **known | sizes), width=WIDTH)
    made.reset(torch.Generator().manual_seed(0))
    return made


def inputs(tokens: int) -> Tensor:
    return torch.randn(
        1, tokens, WIDTH, generator=torch.Generator().manual_seed(1)
    ).requires_grad_()


def both_passes(compute: Callable[[], Tensor]) -> Run:
    """Forward and backward; a weight per output, so that no gradient is a constant."""
    weight: list[Tensor] = []

    def run() -> None:
        y = compute()
        if not weight:
            weight.append(torch.randn(y.shape, generator=torch.Generator().manual_seed(2)))
        y.backward(weight[0])

    return run


def on_one_thread(run: Run) -> Run:
    def alone() -> None:
        torch.set_num_threads(1)
        run()
        torch.set_num_threads(THREADS)

    return alone


def loop(m: Mixer, x: Tensor) -> Tensor:
    state = m.init_state(len(x))
    outputs = []
    for t, token in enumerate(x.unbind(1)):
        y, state = m.step(token, state, t)
        outputs.append(y)
    return torch.stack(outputs, 1)


def seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def alternated(
    one: Run, other: Run, *, repeat: tuple[int, int], least: int, budget: float = 0
) -> tuple[list[float], list[float]]:
    """Times of both in turn, so many runs of each at a time, for at least so many rounds and about
    `budget` seconds.
    """
    first = []
    second = []
    start = time.perf_counter()
    rounds = 0
    while rounds < least or time.perf_counter() - start < budget:
        first += [seconds(one) for _ in range(repeat[0])]
        second += [seconds(other) for _ in range(repeat[1])]
        rounds += 1
    return first, second


def mark(value: float, limit: float, *, at_least: bool = False) -> str:
    return "yes" if (value >= limit if at_least else value <= limit) else "**no**"


def training(cases: Sequence[str], *, tokens: int, rounds: int) -> None:
    """Steps of models of two layers, one head as wide as the model, which answer at 8 places."""
    print(
        f"\n### Training steps beside full attention's, {tokens} tokens, width {NARROW}, 2 layers,"
        f" 1 head, batch {BATCH}, one thread, oneDNN\n"
    )
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("medium")
    runs = {case: training_step(case, tokens) for case in dict.fromkeys(["full", *cases])}
    times: dict[str, list[float]] = {case: [] for case in runs}
    for _ in range(rounds):
        for case, run in runs.items():
            run()
            # time of this process: others may be on the machine
            start = time.process_time()
            run()
            times[case].append(time.process_time() - start)
    torch.set_float32_matmul_precision("highest")
    torch.set_num_threads(THREADS)
    full = min(times["full"])
    table(
        ("mechanism", "step, ms", "steps/s, of full attention's"),
        [(case, f"{1e3 * min(t):.0f}", f"{full / min(t):.2f}") for case, t in times.items()],
    )


def training_step(case: str, tokens: int) -> Run:
    name, sizes = CASES[case]
    own = {"heads": 1, "head_dim": NARROW, "state": NARROW, "width": NARROW, "groups": 1}
    known = {
        field: value
        for field, value in (SIZES | own | OWN.get(name, {}) | {"size": 64, "block": 16}).items()
        if field in MECHANISMS[name].__dataclass_fields__
    }
    settings = ", ".join(f"{k}={v}" for k, v in (known | sizes).items() if v is not None)
    config = ModelConfig(
        architecture=f"{name}({settings})*2",
        vocabulary=256,
        length=tokens,
        answers=256,
        width=NARROW,
        hidden=2 * NARROW,
        norm=True,
        bos=True,
    )
    generator = torch.Generator().manual_seed(0)
    model = Model(config).reset(generator)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    prompts = torch.randint(256, (BATCH, tokens), generator=generator)
    places = torch.randint(tokens, (BATCH, 8), generator=generator)
    answers = torch.randint(256, (BATCH * 8,), generator=generator)

    def run() -> None:
        optimiser.zero_grad()
        F.cross_entropy(model.at(prompts, places).flatten(0, 1), answers).backward()
        optimiser.step()

    return run


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print("| " + " | ".join(header) + " |\n|" + " --- |" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def against_full(cases: Sequence[str], *, tokens: Sequence[int], kept: int, rounds: int) -> None:
    """Processor time of forward and backward, and of one step, over full attention's."""
    print(
        "\n### Forward and backward against full attention's, and a step, one thread, processor"
        " time\n"
    )
    torch.set_num_threads(1)
    passes: dict[tuple[str, int], list[float]] = {}
    steps: dict[str, list[float]] = {case: [] for case in dict.fromkeys(["full", *cases])}
    for t in tokens:
        runs = {case: both_passes(partial(built(case), inputs(t))) for case in steps}
        in_turn(runs, [passes.setdefault((case, t), []) for case in runs], rounds)
    # a step takes a thousandth of the time
    in_turn({case: one_step(case, kept) for case in steps}, list(steps.values()), 20 * rounds)
    torch.set_num_threads(THREADS)
    rows = []
    for case, times in steps.items():
        row = [case]
        for t in tokens:
            best = min(passes[case, t])
            row += [f"{1e3 * best:.1f}", f"{best / min(passes['full', t]):.2f}"]
        rows.append((*row, f"{1e3 * min(times):.2f}"))
    both = [name for t in tokens for name in (f"{t:,}, ms", "of full's")]
    table(("mechanism", *both, f"step with {kept:,} tokens kept, ms"), rows)


def in_turn(runs: dict[str, Run], times: Sequence[list[float]], rounds: int) -> None:
    """Adds so many processor times of each run, one after the other."""
    for run in runs.values():
        run()
    for _ in range(rounds):
        for run, found in zip(runs.values(), times, strict=True):
            # of this process: others may be on the machine
            start = time.process_time()
            run()
            found.append(time.process_time() - start)


def one_step(case: str, t: int) -> Run:
    """A step after t tokens and those of the steps before it, without gradients."""
    m = built(case).requires_grad_(False)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, WIDTH, generator=generator)
    state = {
        name: torch.randn(y.shape, generator=generator).to(y.dtype)
        for name, y in empty_after(m, t).items()
    }
    stream = [(state, t)]

    def run() -> None:
        state, t = stream.pop()
        with torch.no_grad():
            stream.append((m.step(x, state, t)[1], t + 1))

    return run


def empty_after(m: Mixer, t: int) -> dict[str, Tensor]:
    """A state of the shapes that t tokens leave."""
    kept = m.init_state(1)
    return {name: kept[name].new_zeros(1, *shape) for name, shape in m.shapes(t).items()}


def against_the_loop(cases: Sequence[str], *, tokens: int, rounds: int) -> None:
    print(
        f"\n### Parallel form against the loop over `step`, {tokens:,} tokens (target: {FASTER:g}"
        " times as fast)\n"
    )
    print(
        "The loop's operations are too small for two threads; it runs on one, where it is faster.\n"
    )
    rows = []
    for case in cases:
        if built(case).mechanism.group not in ("recurrent", "convolution"):
            continue
        m = built(case)
        x = inputs(tokens)
        fast = both_passes(lambda m=m, x=x: m(x))
        slow = on_one_thread(both_passes(lambda m=m, x=x: loop(m, x)))
        fast()
        first, second = alternated(fast, slow, repeat=(25, 1), least=rounds)
        ratio = min(second) / min(first)
        rows.append(
            (
                case,
                f"{1e3 * min(first):.1f}",
                f"{1e3 * min(second):.0f}",
                f"{ratio:.1f}",
                mark(ratio, FASTER, at_least=True),
            )
        )
        progress(rows[-1])
    table(("mechanism", "parallel, ms", "loop, ms", "ratio", "met"), rows)


def growth(cases: Sequence[str], *, short: int, long: int, budget: float) -> None:
    print(f"\n### Growth from {short:,} to {long:,} tokens\n")
    rows = []
    for case in cases:
        m = built(case)
        limit = GROWTH.get(m.mechanism.name, GROWTH.get(m.mechanism.group))
        one, other = (both_passes(partial(m, inputs(t))) for t in (short, long))
        one()
        # two runs in a row: the first of a length asks the system for memory that the other length
        # did not need, or gave back
        first, second = alternated(
            one, other, repeat=(2, 2), least=1 if limit is None else 2, budget=budget
        )
        ratio = min(second) / min(first)
        target = (
            ("quadratic by definition", "") if limit is None else (f"{limit:g}", mark(ratio, limit))
        )
        rows.append(
            (case, f"{1e3 * min(first):.0f}", f"{1e3 * min(second):.0f}", f"{ratio:.2f}", *target)
        )
        progress(rows[-1])
    table(("mechanism", f"{short:,}, ms", f"{long:,}, ms", "ratio", "at most", "met"), rows)


def against_the_fused_kernel(*, tokens: int, budget: float) -> None:
    print(
        f"\n### Full attention against `F.scaled_dot_product_attention`, {tokens:,} tokens (target:"
        f" {SLOWER:g} times its time)\n"
    )
    q, k, v = (torch.randn(1, HEADS, tokens, DIM).requires_grad_() for _ in range(3))
    m = built("full")
    x = inputs(tokens)
    assert isinstance(m, SoftmaxMixer)
    pairs = {
        "core": (
            lambda: causal_softmax(q, k, v),
            lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0),
        ),
        "mixer": (lambda: m(x), lambda: bare(m, x)),
    }
    rows = []
    for name, (ours, theirs) in pairs.items():
        one = both_passes(ours)
        other = both_passes(theirs)
        one()
        other()
        first, second = alternated(one, other, repeat=(1, 1), least=5, budget=budget)
        # medians of single pairs: kernel and kernel take the same time, and the best of many
        # differs by luck
        ratio = median(a / b for a, b in zip(first, second, strict=True))
        rows.append(
            (
                name,
                f"{1e3 * min(first):.1f}",
                f"{1e3 * min(second):.1f}",
                f"{ratio:.3f}",
                mark(ratio, SLOWER),
            )
        )
        progress(rows[-1])
    table(("what", "ours, ms", "fused kernel, ms", "ratio, median of pairs", "met"), rows)


def bare(m: SoftmaxMixer, x: Tensor) -> Tensor:
    """Full attention written with torch alone, on the same weights."""
    q, k, v = (f(x).view(1, -1, HEADS, DIM).transpose(1, 2) for f in (m.q, m.k, m.v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
    return m.o(y.transpose(1, 2).reshape(1, -1, HEADS * DIM))


def memory(cases: Sequence[str], *, short: int, long: int) -> None:
    print(
        f"\n### Peak memory of forward and backward at {short:,} and {long:,} tokens, weights and"
        " inputs not counted\n"
    )
    rows = []
    for case in cases:
        first, second = (peak_of_another_process(case, t) for t in (short, long))
        quadratic = built(case).mechanism.group not in GROWTH and CASES[case][0] not in GROWTH
        found = "" if second <= LINEAR * first else "by definition" if quadratic else "**yes**"
        rows.append(
            (
                case,
                f"{first:.0f}",
                f"{second:.0f}",
                f"{second * 1024 / long:.1f}",
                f"{second / first:.2f}",
                found,
            )
        )
        progress(rows[-1])
    table(
        (
            "mechanism",
            f"{short:,}, MiB",
            f"{long:,}, MiB",
            "KiB per token",
            "ratio",
            "more than linear",
        ),
        rows,
    )


def peak_of_another_process(case: str, tokens: int) -> float:
    command = [sys.executable, __file__, "--peak", case, str(tokens)]
    # glibc gives every tensor back when it is freed, so that the peak is of what is alive
    exact = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    return float(
        subprocess.run(
            command, check=True, capture_output=True, text=True, env=os.environ | exact
        ).stdout
    )


def peak(case: str, tokens: int) -> float:
    """MiB that one forward and backward adds to what this process holds."""
    m = built(case)
    x = inputs(tokens)
    both_passes(lambda: m(x[:, :256]))()  # what PyTorch sets up once
    m.zero_grad()
    x.grad = None
    before = kibibytes("VmRSS")
    both_passes(lambda: m(x))()
    return (kibibytes("VmHWM") - before) / 1024


def kibibytes(field: str) -> int:
    """Memory of this process, now (VmRSS) or at most (VmHWM); where the system does not say,
    getrusage's largest, which may be the parent's.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(
        int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(field)
    )


def progress(row: Sequence[str]) -> None:
    print("  ".join(row), file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=CASES, metavar="NAME", help=f"some of: {', '.join(CASES)}"
    )
    parser.add_argument(
        "--part",
        nargs="+",
        choices=("loop", "growth", "fused", "memory", "training", "ratio"),
        help="some of the tables",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a quarter of the tokens, fewer runs; a check of the script, not of targets",
    )
    parser.add_argument(
        "--peak",
        nargs=2,
        metavar=("NAME", "TOKENS"),
        help="only print the MiB of one mechanism at one length",
    )
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    if options.peak:
        print(peak(options.peak[0], int(options.peak[1])))
        return
    cases = options.only or list(CASES)
    scale = 4 if options.quick else 1
    parts = options.part or ("loop", "growth", "fused", "memory")
    short = SHORT // scale
    long = LONG // scale
    print(
        f"{processor()}, {THREADS} threads, PyTorch {torch.__version__}, float32,"
        f" {datetime.datetime.now(datetime.UTC).date()}"
    )
    if "loop" in parts:
        against_the_loop(cases, tokens=TOKENS // scale, rounds=1 if options.quick else 2)
    if "growth" in parts:
        growth(cases, short=short, long=long, budget=6 / scale)
    if "fused" in parts and "full" in cases:
        against_the_fused_kernel(tokens=TOKENS // scale, budget=10 / scale)
    if "training" in parts:
        training(cases, tokens=256 // scale, rounds=2 if options.quick else 3)
    if "ratio" in parts:
        against_full(cases, tokens=(512, 2048), kept=4096, rounds=3 if options.quick else 6)
    if "memory" in parts:
        memory(cases, short=short, long=long)


def processor() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [
            line.split(":", 1)[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        if info.exists()
        else []
    )
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
