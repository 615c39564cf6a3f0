"""What a pack's training is expected to cost, for the order of a sweep and the time left."""

from __future__ import annotations

from functools import lru_cache

from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.tasks.labels import most_asked
from separatrix.training.packs import Pack

BACKWARD = 3
"""A step computes forward and backward, and backward costs twice as much."""
PER_STEP = 2e8
"""Operations in the time that a step takes on a CPU whatever its size (about a millisecond)."""
MATRICES = 4
"""Matrices of width times inner width in a mixer."""


def cost(pack: Pack) -> float:
    """Floating-point operations of all its steps, estimated from the sizes: early stops unknown."""
    run = pack.runs[0]
    step = operations(run.architecture, run.task, run.length, run.width, run.hidden)
    return run.steps * (PER_STEP + len(pack.runs) * run.batch * BACKWARD * step)


@lru_cache(maxsize=4096)
def operations(architecture: str, task: str, length: int, width: int, hidden: int) -> float:
    """Of the forward pass on one prompt of `length` tokens, its last layer counted in full."""
    total = 0.0
    for layer, times in Architecture.parse(architecture).counted():
        matrices = 2 * width * hidden + sum(MATRICES * width * part.inner_width for part in layer)
        # a token in the middle costs what they cost on average
        mixing = sum(part.flops(length // 2 + 1) for part in layer if part.mixes_tokens)
        total += times * length * (2 * matrices + mixing)
    asking = parse_task(task)
    return total + 2 * width * most_asked(asking) * asking.answers
