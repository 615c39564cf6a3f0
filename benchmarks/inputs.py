"""Constructions of one layer on inputs drawn against them: 100,000 at n = 4,096 and 200 at
n = 1,048,576, in float32 on one thread. Half are random, half adversarial: ties, extremes, repeated
values, one token among equal ones. A Markdown table; exit code 1 where an answer is wrong.

    python benchmarks/inputs.py [TASK=NUMBER ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from separatrix.constructions import construct
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.derivations import DERIVATIONS, Derivation
from separatrix.proofs.derivations.parts.derivation import adversarial, prompts_of
from separatrix.tasks import Task, parse_task
from separatrix.tasks.base.task import Tokens

CASES = {
    "eva:n=4096,V=16": 100_000,
    "eva:n=1048576,V=16": 200,
    "index:n=4096,V=16": 100_000,
    "index:n=1048576,V=16": 200,
    "twosum:n=4096,M=1024": 100_000,
    "twosum:n=1048576,M=64": 200,
}
SEED = 1
NUMBERS = 1 << 22


def batches(
    derivation: Derivation[Any],
    task: Task,
    number: int,
    rng: np.random.Generator,
) -> Iterator[Tokens]:
    """So many inputs in all, half of them adversarial, in batches of at most NUMBERS tokens (one
    input at least).
    """
    size = max(2, NUMBERS // task.length)
    for start in range(0, number, size):
        count = min(size, number - start)
        some = count // 2
        hard = adversarial(derivation, task, count - some, rng)
        yield np.concatenate([prompts_of(task).sample(some, rng).tokens, hard]) if some else hard


def checked(text: str, number: int) -> tuple[str, int, int, float, float]:
    """The construction's name, inputs run, wrong answers, and processor seconds of the building
    with its proof and of the inputs.
    """
    task = parse_task(text)
    begun = time.process_time()
    built = construct(task)
    derivation = DERIVATIONS[built.record.name]
    derivation.derive(task, built.model, FP32)
    between = time.process_time()
    wrong = run = 0
    for tokens in batches(derivation, task, number, np.random.default_rng(SEED)):
        with torch.inference_mode():
            logits = built.model(torch.from_numpy(tokens))
        right = logits.argmax(-1).numpy() == task.answer(tokens)
        wrong += int((~right | ~logits.isfinite().all(-1).numpy()).sum())
        run += len(tokens)
    return built.record.name, run, wrong, between - begun, time.process_time() - between


def main() -> int:
    torch.set_num_threads(1)
    asked = {text.rpartition("=")[0]: int(text.rpartition("=")[2]) for text in sys.argv[1:]}
    print("| construction | task | inputs | wrong | s to build and prove | s of inputs |")
    print("| --- | --- | --- | --- | --- | --- |")
    failed = 0
    for text, number in (asked or CASES).items():
        name, run, wrong, building, running = checked(text, number)
        failed += wrong
        print(
            f"| {name} | {text} | {run:,} | {wrong} | {building:.1f} | {running:.1f} |", flush=True
        )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
