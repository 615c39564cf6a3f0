"""The first different ones of independent draws with replacement: draws one after the other
without replacement.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import fsum, sqrt

from separatrix.core.numbers.lazy import Floats, NDArray, np
from separatrix.tasks.base.task import Tokens

_SPARE = 4
"""Standard deviations by which the number of different ids is expected to lie above what is
needed.
"""


def first_different(
    number: int,
    ids: int,
    draws: int,
    draw: Callable[[tuple[int, int]], NDArray[np.integer]],
    *,
    held: Tokens,
) -> Tokens:
    """Shape (batch, number): of each row of draws the first ids that are new, and none of `held`
    (batch, any).

    `draw(shape)` gives independent ids of [ids]. There are `draws` of them for each row, and more
    where that proves too few for one.
    """
    batch = len(held)
    rows = ids * np.arange(batch)[:, None]
    drawn = draw((batch, draws))
    met = np.empty(batch * ids, np.int32)
    # draws run from right to left, so that the last one written to a slot is the first of its id
    while True:
        slot = (drawn + rows).reshape(-1)
        order = np.arange(drawn.size, dtype=np.int32)
        met[slot] = order
        # after the draws, so that no draw of what is held counts as new
        met[held + rows] = -1
        new = np.flatnonzero(np.take(met, slot, mode="wrap") == order)
        ends = np.searchsorted(new, np.arange(batch + 1) * drawn.shape[1])
        if (np.diff(ends) >= number).all():
            return drawn.reshape(-1)[new[ends[1:, None] - np.arange(1, number + 1)]].astype(
                np.int64, copy=False
            )
        # to the left of those there are: further draws come after them
        drawn = np.concatenate((draw((batch, draws)), drawn), axis=1)


def enough(weights: Floats, number: int, most: int, *, alike: int = 1) -> int | None:
    """Draws that show `number` different ids nearly always, `alike` ids of each weight; None
    where that takes more than `most`.
    """

    def suffice(draws: int) -> bool:
        """An id of weight w is met with probability p = 1 - (1 - w)^draws. The number of ids that
        are met has a variance of at most the sum of p (1 - p).
        """
        missed = _power(1 - weights, draws)
        met = alike * fsum((1 - missed).tolist())
        spread = sqrt(alike * fsum((missed * (1 - missed)).tolist()))
        return met - _SPARE * spread >= number

    low = number
    high = most
    if high < low or not suffice(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffice(middle) else (middle + 1, high)
    return low


def _power(base: Floats, exponent: int) -> Floats:
    """By products alone, which every processor rounds alike."""
    power = np.ones_like(base)
    while exponent:
        if exponent % 2:
            power = power * base
        base = base * base
        exponent //= 2
    return power


@lru_cache(maxsize=64)
def enough_of_uniform(number: int, ids: int, besides: int) -> int | None:
    """The same for ids that are alike, of which `besides` do not count; at most four times as
    many draws as ids needed.
    """
    return enough(np.array([1 / ids]), number, 4 * number + 64, alike=ids - besides)
