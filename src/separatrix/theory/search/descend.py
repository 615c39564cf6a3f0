"""The last step of the searches behind Theorems IV and V: from a good integer point downhill,
coarse lattice first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, product

import numpy as np

from separatrix.theory.search.integers import Floats

_REACH = 3
_MOVES = 30


def descend(
    value: Callable[[Floats], Floats], start: Floats, low: Sequence[float], high: Sequence[float]
) -> Floats:
    """An integer point (d,) of a box with `value` at most that of `start`; the same every time.

    `value` takes points as columns (d, count) and may answer infinity. Up to three coordinates move
    at once, by multiples of a stride that starts at an eighth of each coordinate and shrinks to 1;
    the best point of the lattice is the next centre.
    """
    bottom = np.array(low, float)[:, None]
    top = np.array(high, float)[:, None]
    steps = _lattice(len(start))
    centre = start.astype(float)
    least = float(value(start.astype(float)[:, None])[0])
    share = 1 / 8
    while True:
        stride = np.maximum(np.round(centre * share), 1)
        for _ in range(_MOVES):
            points = np.clip(centre[:, None] + steps * stride[:, None], bottom, top)
            values = value(points)
            lowest = int(np.argmin(values))
            if not values[lowest] < least:
                break
            centre = points[:, lowest]
            least = float(values[lowest])
        # a smaller share is lost in the last digits of a float
        if np.all(stride == 1) or share < 1e-15:
            return centre
        share /= 3


@cache
def _lattice(coordinates: int) -> Floats:
    """Steps (d, count) that change up to three coordinates by -3..3 each."""
    steps: set[tuple[int, ...]] = set()
    for chosen in combinations(range(coordinates), min(3, coordinates)):
        for moves in product(range(-_REACH, _REACH + 1), repeat=len(chosen)):
            step = [0] * coordinates
            for coordinate, move in zip(chosen, moves, strict=True):
                step[coordinate] = move
            steps.add(tuple(step))
    return np.array(sorted(steps), float).T
