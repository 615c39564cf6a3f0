"""Whole numbers near a relaxed optimum: the smallest coordinates first, since they cost most."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, floor, log

import numpy as np

from separatrix.theory.search.integers import Floats
from separatrix.theory.search.smooth import Open, Place

Best = Callable[[Floats, Open], Place]
"""The best place near a point, moving only some coordinates."""
MATTERS = log(3000)
"""Larger coordinates are rounded without a loss worth a search."""


def whole_places(best: Best, relaxed: Place, integral: Open, beam: int) -> list[Place]:
    """Places near a relaxed one whose small coordinates are logarithms of integers, best first.

    One coordinate after the other is set to both integers beside it, the others are optimised
    again, and the `beam` best places go on.
    """
    # pairs of a place and the coordinates that still move
    front = [(relaxed, np.ones(len(integral), bool))]
    done: list[Place] = []
    while front:
        grown: list[tuple[Place, Open]] = []
        for place, moving in front:
            small = np.flatnonzero(moving & integral & (place.point < MATTERS))
            if not len(small):
                done.append(place)
                continue
            axis = small[np.argmin(place.point[small])]
            left = moving.copy()
            left[axis] = False
            value = exp(place.point[axis])
            for integer in sorted({max(1, floor(value)), max(1, ceil(value))}):
                point = place.point.copy()
                point[axis] = log(integer)
                grown.append((best(point, left), left))
        allowed = [(place, moving) for place, moving in grown if place.allowed]
        front = sorted(allowed, key=lambda pair: (pair[0].cost, -pair[0].slack))[:beam]
    return sorted(done, key=lambda place: (place.cost, -place.slack))
