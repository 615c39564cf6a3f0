"""A search over all pairs of integers r <= m by grids: geometric at first, then finer and finer
around their best cells.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from separatrix.theory.search.integers import Floats

LARGEST = 1e12
"""The largest m."""
_WORST = 1e30
"""Pairs of a larger value are given up on."""
_REFINED = 6
_REFINEMENTS = 14

Cell = tuple[float, float, float]
"""Value, m, r."""


def best_pairs(value: Callable[[Floats], Floats]) -> Floats:
    """Pairs (m, r) as columns, 2 <= m, 1 <= r <= m, best first; the same every time.

    `value` takes pairs as columns and may answer infinity.
    """
    m = np.unique(np.round(np.geomspace(2, LARGEST, 240)))[:, None]
    # r close to 0 and r close to m: both ends are spaced geometrically
    shares = np.unique(
        np.concatenate([np.geomspace(1e-9, 1, 120), 1 - np.geomspace(1e-6, 0.5, 30)])
    )
    cells = _best(value, m, np.clip(np.round(m * shares), 1, m))
    width = 1.13
    for _ in range(_REFINEMENTS):
        finer: list[Cell] = []
        for _, m_here, r_here in cells[:_REFINED]:
            near_m = _around(m_here, width)
            # r close to m is of interest wherever m is
            near_r = np.concatenate([_around(r_here, width), near_m])
            finer += _best(value, near_m[:, None], np.minimum(near_r, near_m[:, None]))
        cells = sorted(set(cells[:_REFINED] + finer))
        width = 1 + (width - 1) * 0.5
    return np.array([(m_here, r_here) for _, m_here, r_here in cells[:_REFINED]]).reshape(-1, 2).T


def _around(centre: float, width: float) -> Floats:
    """Integers within a factor of `width` and 3 more: all of them, or 60 spread evenly."""
    low = max(1.0, float(np.floor(centre / width)) - 3)
    high = float(np.ceil(centre * width)) + 3
    if high - low > 60:
        return np.unique(np.round(np.linspace(low, high, 60)))
    return np.arange(low, high + 1)


def _best(value: Callable[[Floats], Floats], m: Floats, r: Floats) -> list[Cell]:
    """The best cells of a grid, best first."""
    pairs = np.stack([grid.ravel() for grid in np.broadcast_arrays(m, r)])
    values = value(pairs)
    order = np.argsort(values)[:24]
    return [
        (float(values[i]), float(pairs[0, i]), float(pairs[1, i]))
        for i in order
        if values[i] < _WORST
    ]
