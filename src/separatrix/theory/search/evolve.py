"""An evolutionary search over integer points of a box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from separatrix.theory.search.integers import Floats


def spread(
    low: float | Floats, high: float | Floats, count: int, rng: np.random.Generator
) -> Floats:
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
    """Integer points (d, up to 40) of a box with the smallest `value` found, best first; the same
    every time.

    `value` takes points as columns (d, count) and may answer infinity. Each generation scales
    random coordinates of the survivors by random factors, partly a common one, and adds a random
    unit or two.
    """
    rng, (scaled, units) = np.random.default_rng(1), _noise(len(start))
    bottom = np.array(low, float)[:, None]
    top = np.array(high, float)[:, None]
    born = np.clip(np.round(start), bottom, top)
    points, values = _fittest(born, value(born))
    for generation in range(generations):
        # steps narrow, but never so far that large coordinates stand still
        width = max(0.87**generation, 2e-4)
        parents = points[:, rng.integers(0, points.shape[1], children)]
        # random windows of noise drawn once, which cost next to nothing
        first, other = rng.integers(0, _POOL - children, 2)
        factors = np.exp(width * scaled[:, first : first + children])
        born = np.clip(
            np.round(parents * factors) + units[:, other : other + children], bottom, top
        )
        points, values = _fittest(
            np.concatenate([points, born], axis=1), np.concatenate([values, value(born)])
        )
    return points[:, np.isfinite(values)]


_POOL = 1 << 15


@cache
def _noise(coordinates: int) -> tuple[Floats, Floats]:
    """Normal logarithms of factors (a quarter of the coordinates has one of its own, half of the
    points a common one) and units of -2..2 for half of the coordinates, (coordinates, _POOL) each:
    drawn once, since drawing takes longer than judging.
    """
    rng = np.random.default_rng(1)
    shape = (coordinates, _POOL)
    scaled = rng.normal(size=shape) * (rng.random(shape) < 0.25) + rng.normal(size=_POOL) * (
        rng.random(shape) < 0.5
    )
    return scaled, (rng.integers(-2, 3, shape) * (rng.random(shape) < 0.5)).astype(float)


def _fittest(points: Floats, values: Floats, survivors: int = 40) -> tuple[Floats, Floats]:
    """The points with the smallest values, best first; of equal ones with no other between them,
    one.
    """
    # ten times as many as survive, since copies of a point are dropped below
    some = np.argpartition(values, min(10 * survivors, len(values) - 1))[: 10 * survivors]
    some = some[np.argsort(values[some], kind="stable")]
    chosen = points[:, some]
    new = np.append(True, (chosen[:, 1:] != chosen[:, :-1]).any(0))
    return chosen[:, new][:, :survivors], values[some][new][:survivors]
