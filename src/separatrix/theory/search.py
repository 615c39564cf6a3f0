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
    born = np.clip(np.round(start), bottom, top)
    points, values = _fittest(born, value(born))
    for generation in range(generations):
        width = max(0.87**generation, 2e-4)
        parents = points[:, rng.integers(0, points.shape[1], children)]
        common = rng.normal(0, width, children) * (rng.random(parents.shape) < 0.5)
        own = rng.normal(0, width, parents.shape) * (rng.random(parents.shape) < 0.25)
        units = rng.integers(-2, 3, parents.shape) * (rng.random(parents.shape) < 0.5)
        born = np.clip(np.round(parents * np.exp(common + own)) + units, bottom, top)
        points, values = _fittest(np.concatenate([points, born], axis=1), np.concatenate([values, value(born)]))
    return points[:, np.isfinite(values)]


def _fittest(points: Floats, values: Floats, survivors: int = 40) -> tuple[Floats, Floats]:
    """The different points with the smallest values, best first."""
    some = np.argpartition(values, min(10 * survivors, len(values) - 1))[: 10 * survivors]
    points, kept = np.unique(points[:, some], axis=1, return_index=True)
    values = values[some][kept]
    best = np.argsort(values, kind="stable")[:survivors]
    return points[:, best], values[best]


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
