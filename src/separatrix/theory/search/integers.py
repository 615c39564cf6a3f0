"""Integers near the root of a smooth function, by Newton's method and by bisection."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, inf, isfinite

from separatrix.theory.search.reals import LN2, exp, ln, log2

LARGEST = 1e150
"""Integers beyond this are given up on."""


def least_factor(base: float, r: float, cost: float, owed: float) -> float:
    """The smallest integer x >= 1 with x (r log2(x base) - cost) > owed; infinite beyond `LARGEST`.

    With x = y 2^turn, at which r log2(x base) equals cost, it reads y ln y > z: Newton's method on
    that convex function, from 1 + z, is at the root to the last digits after five steps. r > 0,
    owed >= 0.
    """
    turn = cost / r - log2(base)
    # 2^490 is not far below `LARGEST`: nothing beyond it is sought, and nothing overflows
    if not turn < 490:
        return inf
    unit = exp(turn * LN2)
    z = owed * LN2 / (r * unit) if unit else inf
    if not isfinite(z):
        return inf
    # 1 + z is right of the root, so Newton's steps on a convex function never overshoot;
    # y - (y ln y - z) / (1 + ln y), as one fraction
    y = 1 + z
    for _ in range(5):
        y = (y + z) / (1 + ln(y))
    x = y * unit
    if not x < LARGEST:
        return inf
    x = max(float(floor(x + 0.5)), 1.0)
    return x if x * (r * log2(x * base) - cost) > owed else x + 1


def settle(estimate: float, holds: Callable[[int], bool]) -> int | None:
    """A smallest integer near a float estimate at which an exact predicate holds (it fails one
    below); None if none is near.
    """
    if not isfinite(estimate):
        return None
    value = max(1, int(estimate))
    step = 1
    while not holds(value):
        value = value + step
        step = step * 2
        # so far above a float estimate nothing is near it
        if step > max(1 << 12, int(estimate) >> 20):
            return None
    step = 1
    while value > step and holds(value - step):
        value = value - step
        step = step * 2
    low = max(0, value - step)  # fails here, or is 0
    while value - low > 1:
        middle = (low + value) // 2
        low, value = (low, middle) if holds(middle) else (middle, value)
    return value
