"""Tokens per second of samplers and oracles, one core; median of several rounds."""

from __future__ import annotations

import statistics
import time

import numpy as np

from separatrix.tasks import parse_task

ROUNDS = 7
TASKS = (
    "eva:n=256,V=256",
    "eva:n=4096,V=4096",
    "seqcomp:L=2,n=256",
    "seqcomp:L=3,n=4096",
    "twosum:n=256,M=1024",
    "twosum:n=4096,M=16384",
    "twosum:n=256,M=1024,form=decision",
)


def main() -> None:
    for text in TASKS:
        task, rng = parse_task(text), np.random.default_rng(0)
        batch = max(1, 2_000_000 // task.length)
        sampled, answered = [], []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            tokens = task.sample(batch, rng).tokens
            middle = time.perf_counter()
            task.answer(tokens)
            sampled.append(tokens.size / (middle - start))
            answered.append(tokens.size / (time.perf_counter() - middle))
        print(
            f"{text:36} sample {statistics.median(sampled) / 1e6:7.1f} M tokens/s   oracle {statistics.median(answered) / 1e6:7.1f} M tokens/s"
        )


if __name__ == "__main__":
    main()
