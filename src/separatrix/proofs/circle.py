"""How far M points are from the M-th roots of unity, and what that leaves of scores of two of them:
bounds in O(M), without a table of pairs.

    e^(2 pi i x/M) = e^(2 pi i a/M) e^(2 pi i b/M),   x = a + b,  0 <= b < 2^12 <= a or a = 0

Both factors come from balls, each part as a sum of two float64 (106 digits). Of their product every
leading product and sum is split exactly [Dekker 1971]; what is rounded is below 2^-50, seven
operations of it, and what is left out is below 2^-107: all together less than 2^-100.

With q_x within e of the conjugate of a root, and k_y within d of one, <q_x, k_y> is within e + d +
e d of cos(2 pi (x + y)/M): 1 where x + y = 0 mod M, at most cos(2 pi/M) elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from separatrix.proofs.balls import cos_bounds

Array = NDArray[np.float64]
_BLOCK = 1 << 12
_SPLIT = 2.0**27 + 1
_OFF = 2.0**-94
"""More than all that is rounded and left out, of both parts of a point."""
_OURS = 1 + 2.0**-48
"""Enlarges a distance by more than the few roundings in which it is computed."""


@dataclass(frozen=True)
class Parts:
    """Cosines and sines, or one of each, as sums of a float64 and one that is less than its last
    digit.
    """

    cos: Array
    cos_rest: Array
    sin: Array
    sin_rest: Array

    def times(self, by: Parts) -> Parts:
        """The products with others."""
        sine, minus = (self.sin, self.sin_rest), (-self.sin, -self.sin_rest)
        cosine = (self.cos, self.cos_rest)
        cos = _two_products(cosine, (by.cos, by.cos_rest), minus, (by.sin, by.sin_rest))
        sin = _two_products(cosine, (by.sin, by.sin_rest), sine, (by.cos, by.cos_rest))
        return Parts(*cos, *sin)


@dataclass(frozen=True)
class Pairs:
    """Bounds of the scores of all pairs, where both circles have radius 1."""

    lowest_match: Fraction
    highest_match: Fraction
    highest_rest: Fraction
    products: Fraction
    """At or above the absolute values of both products together."""


def roots(modulus: int) -> Iterator[tuple[slice, Parts]]:
    """e^(2 pi i x/M) for all x, block by block, each part within 2^-96."""
    first, later = _anchors(modulus)
    for number, start in enumerate(range(0, modulus, _BLOCK)):
        count = min(_BLOCK, modulus - start)
        own = Parts(*(part[number] for part in later))
        yield slice(start, start + count), own.times(Parts(*(part[:count] for part in first)))


def on_grid(modulus: int, grid: int) -> NDArray[np.int64]:
    """All roots (M, 2) in units of 1 / grid, a power of two, rounded to nearest."""
    points = np.empty((modulus, 2), np.int64)
    for rows, root in roots(modulus):
        for axis, (leading, rest) in enumerate(
            ((root.cos, root.cos_rest), (root.sin, root.sin_rest))
        ):
            nearest = np.rint(leading * grid)
            # the leading part may be a tie that the rest decides
            points[rows, axis] = nearest + np.rint((leading * grid - nearest) + rest * grid)
    return points


def farthest(points: Array, *, scale: float = 1.0, turn: float = 1.0) -> Fraction:
    """At or above the largest distance of points (M, 2), multiplied by 1 / scale, a power of two,
    from their roots; from the conjugates with `turn` -1.
    """
    modulus = len(points)
    most = -1.0
    for rows, root in roots(modulus):
        with np.errstate(over="ignore", invalid="ignore"):
            some = points[rows] / scale
            cos = some[:, 0] - root.cos - root.cos_rest
            sin = some[:, 1] * turn - root.sin - root.sin_rest
            squares = cos * cos + sin * sin
        # a NaN stays one
        most = float(np.maximum(most, squares.max()))
    if not most <= 1:
        return Fraction(2)
    return Fraction(float(np.sqrt(most))) * Fraction(_OURS) + Fraction(_OFF)


def pairs(queries: Fraction, keys: Fraction, modulus: int) -> Pairs:
    """Of queries and keys no further from their roots, or conjugates, than that."""
    off = queries + keys + queries * keys
    _, neighbours = cos_bounds(Fraction(1, modulus))
    return Pairs(
        lowest_match=1 - off,
        highest_match=1 + off,
        highest_rest=neighbours + off,
        # |a c| + |b d| is at most the product of the lengths
        products=(1 + queries) * (1 + keys),
    )


def _two_products(
    a: tuple[Array, Array], x: tuple[Array, Array], b: tuple[Array, Array], y: tuple[Array, Array]
) -> tuple[Array, Array]:
    """a x + b y, all of them sums of two float64."""
    left, left_rest = _product(a[0], x[0])
    right, right_rest = _product(b[0], y[0])
    total, lost = two_sum(left, right)
    crossed = (a[0] * x[1] + a[1] * x[0]) + (b[0] * y[1] + b[1] * y[0])
    return two_sum(total, lost + ((left_rest + right_rest) + crossed))


def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """x + y rounded, and what the rounding took, exactly."""
    total = x + y
    own = total - x
    return total, (x - (total - own)) + (y - own)


def _product(x: Array, y: Array) -> tuple[Array, Array]:
    """x y rounded, and what the rounding took, exactly."""
    product = x * y
    longer = _SPLIT * x
    high = longer - (longer - x)
    low = x - high
    longest = _SPLIT * y
    top = longest - (longest - y)
    rest = y - top
    return product, ((high * top - product) + high * rest + low * top) + low * rest


@lru_cache(maxsize=2)
def _anchors(modulus: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The parts of the first block, and of the first number of every block."""
    first = _from_balls(range(min(_BLOCK, modulus)), modulus)
    later = _from_balls(range(0, modulus, _BLOCK), modulus)
    return first, later


def _from_balls(places: range, modulus: int) -> tuple[Array, ...]:
    turns = [Fraction(x, modulus) for x in places]
    cosines = [_in_two(t) for t in turns]
    # sin of an angle is the cos of a quarter turn less
    sines = [_in_two(t - Fraction(1, 4)) for t in turns]
    return (*np.array(cosines).T, *np.array(sines).T)


def _in_two(turns: Fraction) -> tuple[float, float]:
    """cos(2 pi turns) as a float64 and the rest of it, within 2^-106."""
    low, high = cos_bounds(turns)
    assert high - low < Fraction(1, 1 << 110)
    leading = float(low)
    return leading, float(low - Fraction(leading))
