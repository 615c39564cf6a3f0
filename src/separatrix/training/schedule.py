"""How the learning rate goes over a training: a warm-up, then a way down, or none."""

from __future__ import annotations

import math

END = 0.1
"""What is left of the rate at the end, of cosine and linear schedules."""


def rate(schedule: str, step: int, steps: int, warmup: int = 0) -> float:
    """Learning rate over its peak at `step`, which counts from 0: a linear warm-up over so many
    steps (0: the first 5 %, 10 at least), then the schedule.
    """
    warm = warmup or max(10, steps // 20)
    if step < warm:
        return (step + 1) / warm
    done = min(1.0, (step - warm) / max(1, steps - warm))
    match schedule:
        case "cosine":
            return END + (1 - END) * (1 + math.cos(math.pi * done)) / 2
        case "linear":
            return 1 - (1 - END) * done
        case _:
            return 1.0
