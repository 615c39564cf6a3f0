"""Vectors scaled to length 1, as delta rules do with keys and queries."""

from __future__ import annotations

import numpy as np

from separatrix.mixers.base.recurrent import SHORTEST_LENGTH
from separatrix.proofs.machine import Enclosure, limited, roundings, slack


def unit(x: Enclosure, what: str) -> Enclosure:
    """Each row divided by its length, or by SHORTEST_LENGTH where it is shorter than that."""
    arithmetic = x.arithmetic
    u = float(arithmetic.summed)
    low = np.where((x.low <= 0) & (x.high >= 0), 0.0, np.minimum(np.abs(x.low), np.abs(x.high)))
    high = x.size
    dims = x.mid.shape[1]
    # each square may be a number and their sum none: the length is infinite, the quotient 0
    limited((high * high).sum(1) * (1 + slack(dims)), f"{what}: its squares", arithmetic)
    count = dims + 4
    off = float(roundings(count, arithmetic)) + slack(count)
    flushed = 4 * count * arithmetic.summed_tiny
    # squares that are flushed to zero make a length too short
    shortest = np.sqrt(np.maximum((low * low).sum(1) * (1 - off) - flushed, 0.0)) * (1 - off)
    longest = np.sqrt((high * high).sum(1) * (1 + off) + flushed) * (1 + off)
    least = SHORTEST_LENGTH * (1 - u)
    most = SHORTEST_LENGTH * (1 + u)
    below = np.maximum(shortest, least)[:, None]
    over = np.maximum(longest, most)[:, None]
    mid = x.mid / ((below + over) / 2)
    ends = [x.low / below, x.low / over, x.high / below, x.high / over]
    reach = np.max([np.abs(end - mid) for end in ends], axis=0)
    size = np.abs(mid) + reach
    rad = (reach + (2 * u + slack(4)) * size + arithmetic.summed_tiny) * (1 + 2.0**-40)
    # no number of a vector of length 1 is larger than 1, but for roundings: squares that are
    # flushed to zero belong to vectors shorter than SHORTEST_LENGTH
    most_ = 1 + 4 * off
    hull = x.spanning(np.maximum(mid - rad, -most_), np.minimum(mid + rad, most_))
    inside = size + rad <= 1.0
    zero = x.size == 0
    return x.like(
        np.where(zero, 0.0, np.where(inside, mid, hull.mid)),
        np.where(zero, 0.0, np.where(inside, rad, hull.rad * (1 + 2.0**-40))),
    )
