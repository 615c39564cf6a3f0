"""The searches behind Theorems IV and V: floats and NumPy propose parameters, exact arithmetic (elsewhere) decides about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LN2 = np.log(2)
LARGEST = 1e150
"""Integers beyond this are given up on."""


def least_factor(base: Floats, r: Floats, cost: Floats, owed: Floats) -> Floats:
    """The smallest integer x >= 1 with x (r log2(x base) - cost) > owed, elementwise; infinite beyond `LARGEST`.

    With x = y 2^turn, at which r log2(x base) equals cost, it reads y ln y > z: Newton's method on that convex function, from 1 + z, is
    at the root to the last digits after five steps. r > 0, owed >= 0.
    """
    base, r, cost, owed = np.broadcast_arrays(base, r, cost, owed)
    turn = cost / r - np.log2(base)
    fits = turn < 490
    unit = np.exp2(np.where(fits, turn, 0))
    z = owed * LN2 / (r * unit)
    y = 1 + z
    for _ in range(5):
        y = (y + z) / (1 + np.log(y))
    x = np.maximum(np.round(y * unit), 1)
    least = np.where(x * (r * np.log2(x * base) - cost) > owed, x, x + 1)
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
    rng, (scaled, units) = np.random.default_rng(1), _noise(len(start))
    bottom, top = np.array(low, float)[:, None], np.array(high, float)[:, None]
    born = np.clip(np.round(start), bottom, top)
    points, values = _fittest(born, value(born))
    for generation in range(generations):
        width = max(0.87**generation, 2e-4)
        parents = points[:, rng.integers(0, points.shape[1], children)]
        first, other = rng.integers(0, _POOL - children, 2)
        factors = np.exp(width * scaled[:, first : first + children])
        born = np.clip(np.round(parents * factors) + units[:, other : other + children], bottom, top)
        points, values = _fittest(np.concatenate([points, born], axis=1), np.concatenate([values, value(born)]))
    return points[:, np.isfinite(values)]


_POOL = 1 << 15


@cache
def _noise(coordinates: int) -> tuple[Floats, Floats]:
    """Normal logarithms of factors (a quarter of the coordinates has one of its own, half of the points a common one) and units of -2..2 for half
    of the coordinates, (coordinates, _POOL) each: drawn once, since drawing takes longer than judging."""
    rng, shape = np.random.default_rng(1), (coordinates, _POOL)
    scaled = rng.normal(size=shape) * (rng.random(shape) < 0.25) + rng.normal(size=_POOL) * (rng.random(shape) < 0.5)
    return scaled, (rng.integers(-2, 3, shape) * (rng.random(shape) < 0.5)).astype(float)


def _fittest(points: Floats, values: Floats, survivors: int = 40) -> tuple[Floats, Floats]:
    """The points with the smallest values, best first; of equal ones with no other between them, one."""
    some = np.argpartition(values, min(10 * survivors, len(values) - 1))[: 10 * survivors]
    some = some[np.argsort(values[some], kind="stable")]
    chosen = points[:, some]
    new = np.append(True, (chosen[:, 1:] != chosen[:, :-1]).any(0))
    return chosen[:, new][:, :survivors], values[some][new][:survivors]


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
