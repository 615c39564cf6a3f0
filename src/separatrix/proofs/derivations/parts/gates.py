"""Gates, activations and feature maps of recurrent layers, number by number, as computed.

Each is rounded by at most 80 u of its size, which covers exp within 64 u and the operations around
it, or by 8 u where it is a logarithm near 0. Arguments beyond +-500 are taken as +-500: what is
beyond differs from that by less than any rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.base.mixer import EPSILON
from separatrix.mixers.base.recurrent import SHORTEST_LENGTH
from separatrix.proofs.balls import exp_bounds, sigmoid_bounds, softplus_bounds
from separatrix.proofs.machine import Array, Enclosure, limited, relu, roundings, slack, times

_MOST = 2.0**60
"""The most that an argument may be; beyond, its exponential would be of no use."""
_LAST = 500.0
_ROOT_UNITS = 8
_LOWEST = -0.27847
"""Below every value of silu, which is smallest between -1.279 and -1.278."""

Bounds = Callable[[float, float], tuple[float, float]]


def sigmoid(x: Enclosure, what: str) -> Enclosure:
    low, high = _ends(x, sigmoid_bounds, what)
    return _rounded(x, low, np.minimum(high, 1.0))


def softplus(x: Enclosure, what: str) -> Enclosure:
    """ln(1 + e^x): at least 0, and off by at most 8 u of its size or 1."""
    low, high = _ends(x, softplus_bounds, what)
    # beyond the last argument it is the argument itself, up to less than any rounding
    high = np.maximum(high, x.high + 2.0**-40)
    low = np.where(x.low > _LAST, x.low, low)
    off = 8 * float(x.arithmetic.summed) * np.maximum(1.0, high)
    return x.spanning(np.maximum(low - off, 0.0), high + off)


def log_sigmoid(x: Enclosure, what: str) -> Enclosure:
    """-ln(1 + e^-x)."""
    return -softplus(-x, what)


def exponential(x: Enclosure, what: str) -> Enclosure:
    if float(x.high.max(initial=0.0)) > 64:
        raise CheckFailed(f"{what}: e^{float(x.high.max()):g} is of no use")
    low, high = _ends(x, exp_bounds, what)
    return _rounded(x, low, high)


def silu(x: Enclosure, what: str) -> Enclosure:
    """x sigmoid(x); 0 stays 0."""
    # at each end a number times a factor within bounds
    first = _product(x.low, *_ends(Enclosure.point(x.low), sigmoid_bounds, what))
    last = _product(x.high, *_ends(Enclosure.point(x.high), sigmoid_bounds, what))
    low = np.minimum(first[0], last[0])
    high = np.maximum(first[1], last[1])
    turns = (x.low < -1.278) & (x.high > -1.279)
    low = np.where(turns, np.minimum(low, _LOWEST), low)
    found = _rounded(x, low, high)
    zero = x.size == 0
    return x.like(np.where(zero, 0.0, found.mid), np.where(zero, 0.0, found.rad))


def _product(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    ends = np.stack([x * low, x * high])
    return np.nextafter(ends.min(0), -np.inf), np.nextafter(ends.max(0), np.inf)


def _ends(x: Enclosure, bounds: Bounds, what: str) -> tuple[Array, Array]:
    """At or below, and at or above, what a function that rises gives."""
    if float(x.size.max(initial=0.0)) > _MOST:
        raise CheckFailed(f"{what}: its argument may be {float(x.size.max()):g}")
    return each(x.low, bounds, 0), each(x.high, bounds, 1)


def each(x: Array, bounds: Bounds, end: int) -> Array:
    """One end of the bounds at each number, taken as +-500 beyond that; equal numbers are asked for
    once.
    """
    clipped = np.clip(x, -_LAST, _LAST)
    found, inverse = np.unique(clipped, return_inverse=True)
    values = np.array([bounds(number, number)[end] for number in found.tolist()])
    return values[inverse].reshape(x.shape)


def _rounded(x: Enclosure, low: Array, high: Array) -> Enclosure:
    arithmetic = x.arithmetic
    off = 80 * float(arithmetic.summed) * np.maximum(np.abs(low), np.abs(high))
    off = off + arithmetic.summed_tiny
    return x.spanning(low - off, high + off)


def unit(x: Enclosure, what: str) -> Enclosure:
    """Each row divided by its length, or by SHORTEST_LENGTH where it is shorter than that."""
    arithmetic = x.arithmetic
    u = float(arithmetic.summed)
    dims = x.mid.shape[1]
    # each square may be a number and their sum none: the length is infinite, the quotient 0
    squares = (x.size * x.size).sum(1, keepdims=True)
    limited(squares * (1 + slack(dims)), f"{what}: its squares", arithmetic)
    count = dims + 4
    off = float(roundings(count, arithmetic)) + slack(count)
    flushed = 4 * count * arithmetic.summed_tiny
    # squares that are flushed to zero make a length too short
    least = (x.least * x.least).sum(1, keepdims=True)
    shortest = np.sqrt(np.maximum(least * (1 - off) - flushed, 0.0)) * (1 - off)
    longest = np.sqrt(squares * (1 + off) + flushed) * (1 + off)
    below = np.maximum(shortest, SHORTEST_LENGTH * (1 - u))
    over = np.maximum(longest, SHORTEST_LENGTH * (1 + u))
    ends = np.stack([x.low / below, x.low / over, x.high / below, x.high / over])
    found = x.spanning(ends.min(0), ends.max(0))
    found = found.wider((2 * u + slack(4)) * found.size + arithmetic.summed_tiny)
    # no number of a vector of length 1 is larger than 1, but for roundings: squares that are
    # flushed to zero belong to vectors shorter than SHORTEST_LENGTH
    largest = np.where(x.size == 0, 0.0, 1 + 4 * off)
    return found.within(x.spanning(-largest, largest))


def normed(x: Enclosure, epsilon: float, what: str) -> Enclosure:
    """Each row divided by the root of the mean of its squares, with epsilon under the root."""
    factor = reciprocal_root(squares(x), x.mid.shape[1], what, epsilon)
    return times(no_longer(x, factor, x.mid.shape[1]), factor, what)


def features(name: str, x: Enclosure) -> Enclosure:
    """phi(x) as computed."""
    if name == "identity":
        return x
    if name == "relu":
        return relu(x)
    if name == "taylor":
        return _taylor(x)
    return _elu(x)


def _taylor(x: Enclosure) -> Enclosure:
    """(1, x, x (x) x / sqrt 2), or the products that a kernel forms of them."""
    rows, dims = x.mid.shape
    ends = [
        (a[:, :, None] * b[:, None, :]).reshape(rows, dims * dims) * 0.5**0.5
        for a in (x.low, x.high)
        for b in (x.low, x.high)
    ]
    squares = x.spanning(np.min(ends, 0), np.max(ends, 0))
    # the root of 1/2 and the two products
    off = 8 * float(x.arithmetic.summed) * squares.size + x.arithmetic.summed_tiny
    rad = np.where(squares.size == 0, 0.0, (squares.rad + off) * (1 + 2.0**-40))
    ones = np.ones((rows, 1))
    return x.like(
        np.concatenate([ones, x.mid, squares.mid], 1),
        np.concatenate([0 * ones, x.rad, rad], 1),
    )


def _elu(x: Enclosure) -> Enclosure:
    """elu(x) + 1."""
    # elu, and the rounding of the sum
    off = (x.arithmetic.gate_units + 2) * float(x.arithmetic.summed)
    below, over = (each(np.minimum(y, 0), exp_bounds, end) for end, y in enumerate((x.low, x.high)))
    # e^x falls to nothing: what is below -500 is bounded by that of -500
    below = np.where(x.low < -500, 0.0, below)
    low = np.where(x.low >= 0, (x.low + 1) * (1 - off), below - off)
    high = np.where(x.high >= 0, (x.high + 1) * (1 + off), over + off)
    return x.spanning(np.maximum(low, 0.0), high)


def squares(x: Enclosure) -> Enclosure:
    """The sum of the squares of each row."""
    low, high, off = x.least, x.size, slack(x.mid.shape[1])
    return x.spanning(
        (low * low).sum(1, keepdims=True) * (1 - off),
        (high * high).sum(1, keepdims=True) * (1 + off),
    )


def no_longer(x: Enclosure, factor: Enclosure, count: int) -> Enclosure:
    """Numbers whose products with the factor enclose those of x: none is larger than sqrt(count),
    since each number is itself among the squares that scale it.
    """
    # far more than what roundings of the mean and its root add
    if float(roundings(count + 16, x.arithmetic)) > 2.0**-8:
        return x
    most = np.sqrt(count) * 1.01 / factor.size
    cut = x.size > most
    inside = x.spanning(np.clip(x.low, -most, most), np.clip(x.high, -most, most))
    return x.like(np.where(cut, inside.mid, x.mid), np.where(cut, inside.rad, x.rad))


def reciprocal_root(total: Enclosure, count: int, what: str, epsilon: float = EPSILON) -> Enclosure:
    """1 / sqrt(total / count + epsilon), as computed inside sums from `count` squares."""
    arithmetic = total.arithmetic
    limited(total.size, f"{what}: its squares", arithmetic, summed=True)
    off = float(roundings(count + 8, arithmetic)) + slack(count + 8)
    flushed = 4 * (count + 8) * arithmetic.summed_tiny
    least = np.maximum(total.low * (1 - off) / count - flushed, 0.0) + epsilon * (1 - off)
    most = total.high * (1 + off) / count + flushed + epsilon * (1 + off)
    root = _ROOT_UNITS * float(arithmetic.summed) + 2.0**-40
    return total.spanning((1 - root) / np.sqrt(most), (1 + root) / np.sqrt(least))
