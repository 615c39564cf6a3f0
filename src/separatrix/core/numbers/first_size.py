"""The smallest size at which a monotone predicate holds."""

from __future__ import annotations

from collections.abc import Callable


def first_size(
    holds: Callable[[int], bool], start: int, *, limit: int, near: int | None = None
) -> int | None:
    """The smallest n in [start, limit] at which a monotone predicate holds; None if there is none.

    `near` is a guess that spares calls where it is good and changes nothing else; without one the
    predicate is asked at `limit` first.
    """
    if start > limit or (near is None and not holds(limit)):
        return None
    # it fails at low and holds at high, or they are out of range
    low = start - 1
    high = limit + 1
    value = max(start, min(near or start, limit))
    step = 1
    while low < value < high:
        # steps away from a good guess double until the answer lies between low and high
        if holds(value):
            high = value
            value = value - step if near is not None else low
        else:
            low = value
            value = min(value + step, limit)
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return None if high > limit else high
