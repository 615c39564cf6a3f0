"""The searches behind Theorems IV and V: floats and NumPy propose parameters, exact arithmetic (elsewhere) decides about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LARGEST = 1e150
"""Integers beyond this are given up on."""


def least_factor(base: Floats, r: Floats, cost: Floats, owed: Floats) -> Floats:
    """The smallest integer x >= 1 with x (r log2(x base) - cost) > owed, elementwise; infinite beyond `LARGEST`.

    The left side is convex where it is positive, so Newton's method descends to the root from any point above it. r > 0, owed >= 0.
    """
    base, r, cost, owed = np.broadcast_arrays(base, r, cost, owed)
    turn = cost / r - np.log2(base)  # r log2(x base) exceeds cost for x > 2^turn
    fits = turn < 490
    x = np.where(fits, np.maximum(np.exp2(np.where(fits, turn, 0) + 1), owed / r) + 2, 4.0)
    for _ in range(100):
        slope = r * np.log2(x * base) - cost
        lower = np.maximum(x - (x * slope - owed) / (slope + r / np.log(2)), 1)
        settled = np.abs(lower - x) <= 1e-13 * x + 1e-3
        x = lower
        if np.all(settled | ~fits):
            break
    x = np.maximum(np.floor(x), 1)
    least = x + 2
    for shift in (1, 0, -1):
        near = np.maximum(x + shift, 1)
        least = np.where(near * (r * np.log2(near * base) - cost) > owed, near, least)
    return np.where(fits & (least < LARGEST), least, np.inf)


def spread(low: float | Floats, high: float | Floats, count: int, rng: np.random.Generator) -> Floats:
    """`count` numbers, log-uniform between positive bounds."""
    return np.exp(rng.uniform(np.log(low), np.log(high), count))


def evolve(
    value: Callable[[Floats], Floats],
    start: Floats,
    low: Sequence[float],
    high: Sequence[float],
    *,
    children: int = 12_000,
    generations: int = 70,
) -> Floats:
    """Integer points (d, up to 40) of a box with the smallest `value` found, best first; the same every time.

    `value` takes points as columns (d, count) and may answer infinity. Each generation scales random coordinates of the survivors by random
    factors, partly a common one, and adds a random unit or two.
    """
    rng = np.random.default_rng(1)
    bottom, top = np.array(low, float)[:, None], np.array(high, float)[:, None]
    points = np.clip(np.round(start), bottom, top)
    values, width = value(points), 1.0
    for generation in range(generations):
        best = np.argsort(values, kind="stable")[:40]
        points, values = points[:, best], values[best]
        parents = points[:, rng.integers(0, points.shape[1], children)]
        common = rng.normal(0, width, children) * (rng.random(parents.shape) < 0.5)
        own = rng.normal(0, width, parents.shape) * (rng.random(parents.shape) < 0.25)
        units = rng.integers(-2, 3, parents.shape) * (rng.random(parents.shape) < 0.5)
        born = np.clip(np.round(parents * np.exp(common + own)) + units, bottom, top)
        points, kept = np.unique(np.concatenate([points, born], axis=1), axis=1, return_index=True)
        values = np.concatenate([values, value(born)])[kept]
        width = max(0.87 ** (generation + 1), 2e-4)
    best = np.argsort(values, kind="stable")[:40]
    return points[:, best[np.isfinite(values[best])]]


def settle(estimate: float, holds: Callable[[int], bool]) -> int | None:
    """A smallest integer near a float estimate at which an exact predicate holds (it fails one below); None if none is near."""
    value, step = max(1, int(estimate)), 1
    while not holds(value):
        value, step = value + step, step * 2
        if step > max(1 << 12, int(estimate) >> 20):
            return None
    step = 1
    while value > step and holds(value - step):
        value, step = value - step, step * 2
    low = max(0, value - step)  # fails here, or is 0
    while value - low > 1:
        middle = (low + value) // 2
        low, value = (low, middle) if holds(middle) else (middle, value)
    return value
