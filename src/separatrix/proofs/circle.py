"""Cosines and sines of rotary embeddings as programs compute them (mixers/ops/maps.py), in float32,
also where queries and keys are in half formats, or in float64.

    frequency   the float32 next to the rotation's own
    angle       place times frequency, one product, rounded to float32
    cos, sin    of that angle, within 8 u: libraries promise one or two units in the last place,
                range reduction included

The angle is thus one known number a = j f + d, with j f and d exact in float64: j and f have 24
bits each. e^(i j f) comes from balls (numbers/turns.py), e^(i d) from its series. In float64, d
is not known: it counts as an error.

How far M points are from the M-th roots of unity, and what that leaves of scores of two of them:
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
from flint import arb
from numpy.typing import NDArray

from separatrix.core.errors import SizeError
from separatrix.core.numbers.formats import DIGITS
from separatrix.core.numbers.rotary import Rotation
from separatrix.core.numbers.turns import product, turns
from separatrix.proofs.arithmetic import FP32, NAMED, Arithmetic
from separatrix.proofs.balls import cos_bounds
from separatrix.proofs.machine import Array

_LOST = 2.0**-40
"""Far more than all float64 errors below together."""
UNITS = 8
"""Unit roundoffs that a library's cosine or sine may be off by."""
MOST_PLACES = 1 << 22
SINGLE = DIGITS["fp32"]


def trig_off(arithmetic: Arithmetic, largest: int) -> float:
    """How far a cosine or sine of a place up to `largest`, computed beside numbers of an
    arithmetic, may be from those that `turned` returns. Raises SizeError for formats of which
    nobody knows how they turn.
    """
    if arithmetic.name not in NAMED:
        raise SizeError(f"{arithmetic.name}: nothing is assumed of its sines and cosines")
    # no angle is larger than its place
    lost = largest * 2.0**-53 if double(arithmetic) else 0.0
    return UNITS * float(arithmetic.summed) + lost + _LOST


def double(arithmetic: Arithmetic) -> bool:
    """Whether angles are computed in float64."""
    return arithmetic.summed_digits > SINGLE


def turned(
    rotation: Rotation, places: NDArray[np.int64], arithmetic: Arithmetic = FP32
) -> tuple[Array, Array]:
    """Cosines and sines (places, pairs) of the angles that programs have. Raises SizeError for
    places whose angles are not looked at.
    """
    first, last = int(places.min()), int(places.max())
    if first < 0 or last >= MOST_PLACES:
        raise SizeError(f"a rotation at place {last:,}; proofs look at {MOST_PLACES:,} places")
    return _turned(rotation, first, last - first + 1, places.tobytes(), double(arithmetic))


@lru_cache(maxsize=8)
def _turned(
    rotation: Rotation, first: int, count: int, places: bytes, wide: bool
) -> tuple[Array, Array]:
    asked = np.frombuffer(places, np.int64)
    frequency = np.array(rotation.frequencies) if wide else single_frequencies(rotation)
    exact: Array = asked.astype(np.float64)[:, None] * frequency
    angle = exact if wide else single_angles(rotation, asked)
    # e^(i j f): two rows of tables multiplied
    balls = [arb(f) for f in frequency.tolist()]
    block, within = np.divmod(asked - first, _BLOCK)
    rest = turns(balls, range(first, first + min(count, _BLOCK)))
    starts = turns(balls, range(0, int(block.max()) * _BLOCK + 1, _BLOCK))
    unit = product(product(starts[block], rest[within]), small(angle - exact))
    return unit.real.copy(), unit.imag.copy()


@lru_cache(maxsize=64)
def turns_between(
    rotation: Rotation, most: int, arithmetic: Arithmetic = FP32
) -> tuple[list[tuple[Array, Array]], NDArray[np.bool_]]:
    """Cosines and sines (pairs) of the least angle between tokens of a prompt whose last place is
    `most`, of one in the middle and of the largest, as programs compute angles, within 2^-45; and
    which pairs turn by less than a straight angle.
    """
    wide = double(arithmetic)
    frequency = np.array(rotation.frequencies) if wide else single_frequencies(rotation)
    # angles of two places are rounded, each by 2^-24 of the larger one at most
    off = most * 2.0**-23
    found: list[tuple[Array, Array]] = []
    for places in (-off, most / 2, most + off):
        angles = [arb(f) * places for f in frequency.tolist()]
        found.append(
            (
                np.array([float(angle.cos()) for angle in angles]),
                np.array([float(angle.sin()) for angle in angles]),
            )
        )
    return found, frequency * (most + 2 * off) < 3.14


def single_frequencies(rotation: Rotation) -> Array:
    """The frequencies that float32 has, exactly."""
    return np.array(rotation.frequencies).astype(np.float32).astype(np.float64)


def single_angles(rotation: Rotation, places: NDArray[np.int64]) -> Array:
    """The angles (places, pairs) that float32 has, exactly."""
    # a float64 holds the product of two numbers of 24 bits: rounded once
    product = places[:, None] * single_frequencies(rotation)
    return product.astype(np.float32).astype(np.float64)


def small(angle: Array) -> NDArray[np.complex128]:
    """e^(i angle) of angles up to 1/4, within 2^-46, by its series."""
    assert float(np.abs(angle).max(initial=0.0)) <= 0.25
    square = angle * angle
    cos = np.ones_like(angle)
    sin = np.ones_like(angle)
    # Horner's scheme: the next terms, x^16 / 16! and x^17 / 17!, are below 2^-70
    for power in range(14, 0, -2):
        cos = 1.0 - square / (power * (power - 1)) * cos
        sin = 1.0 - square / (power * (power + 1)) * sin
    return cos + 1j * (angle * sin)


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
