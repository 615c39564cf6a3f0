"""A float32 interval machine: what any correct float32 program may compute, as centres and radii.

An `Enclosure` holds, for every number of an array, a centre and a radius. Each operation returns an
enclosure of everything that its float32 counterpart can give for inputs within the enclosures,
whatever the order of sums and with fused products or without:

    fl(x op y) = (x op y)(1 + d) + e,  |d| <= u = 2^-24,  |e| <= 2^-126

where e covers results flushed to zero. A result that float32 holds exactly is not rounded. An
operation whose terms could add up to more than 2^126 raises CheckFailed: nothing overflows in what
is proved. The machine's own arithmetic is float64; radii are enlarged by its rounding.

Shapes: n rows, w inputs, o outputs, d dimensions, m keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from separatrix.errors import CheckFailed
from separatrix.proofs.float32 import U, gamma

Array = NDArray[np.float64]
LARGE = 2.0**126
"""Half of what float32 holds: the most that the terms of a sum may add up to."""
TINY = 2.0**-126
"""The smallest normal number of float32: smaller results may be flushed to zero."""
_OURS = 1 + 2.0**-40
"""Enlarges a radius by more than the few roundings of float64 in which it was computed."""
_ZERO_BIT = 1 << 20


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Numbers, each within its radius of its centre. A point has radius 0 and is exact."""

    mid: Array
    rad: Array

    @classmethod
    def point(cls, numbers: Array) -> Enclosure:
        return cls(numbers, np.broadcast_to(0.0, numbers.shape))

    @classmethod
    def between(cls, low: Array, high: Array) -> Enclosure:
        """Everything from `low` to `high`."""
        mid = low + (high - low) / 2
        reach = np.maximum(high - mid, mid - low) * (1 + 2.0**-50)
        return cls(np.where(low == high, low, mid), np.where(low == high, 0.0, reach))

    @property
    def low(self) -> Array:
        return self._ends(self.mid - self.rad, -1.0)

    @property
    def high(self) -> Array:
        return self._ends(self.mid + self.rad, 1.0)

    @property
    def size(self) -> Array:
        """At or above the absolute value."""
        return self._ends(np.abs(self.mid) + self.rad, 1.0)

    def _ends(self, ends: Array, side: float) -> Array:
        """Sums of a centre and a radius, which were rounded, moved outward; points stay."""
        if not self.spread.any():
            return ends
        # two units in the last place at most, one at least; what is subnormal was not rounded
        outward = ends * np.where(ends > 0, 1 + side * 2.0**-52, 1 - side * 2.0**-52)
        return np.where(self.rad == 0, ends, outward)

    @property
    def spread(self) -> Array:
        """The radii, one row where all rows are that row in memory, too."""
        return self.rad[:1] if self.rad.strides[0] == 0 else self.rad

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which columns are not exactly 0 in every row."""
        low, high = self._extremes
        return (low != 0)[0] | (high != 0)[0]

    def hull(self) -> Enclosure:
        """One row that encloses every row."""
        return Enclosure.between(*self._extremes)

    @cached_property
    def _extremes(self) -> tuple[Array, Array]:
        """The least and the greatest of each column."""
        low = self.mid.min(0, keepdims=True)
        high = self.mid.max(0, keepdims=True)
        wide = np.flatnonzero(self.spread.any(0))
        if len(wide):
            some = self.columns(wide)
            low[0, wide] = some.low.min(0)
            high[0, wide] = some.high.max(0)
        return low, high

    @property
    def tops(self) -> Array:
        """The largest absolute value of each column: one row."""
        low, high = self._extremes
        return np.maximum(-low, high)

    def columns(self, some: NDArray[np.int64] | NDArray[np.bool_]) -> Enclosure:
        mid = self.mid[:, some]
        return Enclosure(mid, np.broadcast_to(self.spread[:, some], mid.shape))

    def rows(self, places: NDArray[np.int64] | slice) -> Enclosure:
        return Enclosure(self.mid[places], self.rad[places])

    def only(self, columns: NDArray[np.bool_]) -> Enclosure:
        """The same in these columns, exactly 0 in the others."""
        if not self.used[~columns].any():
            return self
        rad = np.where(columns, self.spread, 0.0)
        return Enclosure(np.where(columns, self.mid, 0.0), np.broadcast_to(rad, self.mid.shape))

    def wider(self, by: Array) -> Enclosure:
        return Enclosure(self.mid, (self.rad + by) * _OURS)


def limited(size: Array, what: str) -> None:
    """Raises CheckFailed when a number may be larger than LARGE, or is not a number."""
    if size.size and not bool((size <= LARGE).all()):
        raise CheckFailed(f"{what}: a number may overflow float32")


def slack(terms: int) -> float:
    """Relative rounding of a float64 sum of that many products, in any order."""
    return (terms + 8) * 2.0**-52


def roundings(count: NDArray[np.int64] | int) -> Array:
    """gamma(count) for each count, rounded up. Raises SizeError as `gamma` does."""
    counts = np.asarray(count, np.int64)
    if counts.size:
        gamma(int(counts.max()))
    u = float(U)
    return counts * u / (1 - counts * u) * _OURS


def above(x: Fraction) -> float:
    """A float64 at or above x."""
    return float(np.nextafter(float(x), np.inf)) if x else 0.0


def lowest_bits(numbers: Array) -> NDArray[np.int64]:
    """For each number the largest e such that it is a multiple of 2^e; very large for 0."""
    mantissa, exponent = np.frexp(np.abs(numbers))
    # 53 bits make an integer of the mantissa, whose lowest bit that is set is x & -x
    whole = (mantissa * 2.0**53).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(numbers == 0.0, _ZERO_BIT, exponent - 53 + trailing).astype(np.int64)


def add(x: Enclosure, y: Enclosure, what: str) -> Enclosure:
    """x + y, number by number."""
    if not (x.tops + y.tops <= LARGE).all():
        limited(x.size + y.size, what)
    mid = x.mid + y.mid
    rad = np.broadcast_to(x.spread + y.spread, mid.shape)
    # 0 leaves a number as it is
    both = np.flatnonzero(x.used & y.used)
    if len(both):
        rad = rad.copy()
        rad[:, both] = _sums(x.columns(both), y.columns(both))
    return Enclosure(mid, rad)


def _sums(x: Enclosure, y: Enclosure) -> Array:
    """The radii of x + y."""
    mid = x.mid + y.mid
    spread = x.rad + y.rad
    # a float64 sum that float32 holds is what float32 rounds to
    exact = (x.size == 0) | (y.size == 0) | ((spread == 0) & (single(mid) == mid))
    rounded = (spread + (float(U) + slack(1)) * (np.abs(mid) + spread) + TINY) * _OURS
    return np.where(exact, spread, rounded)


def times(x: Enclosure, y: Enclosure, what: str) -> Enclosure:
    """x y, number by number."""
    mid = x.mid * y.mid
    size = x.size * y.size
    limited(size, what)
    spread = np.abs(x.mid) * y.rad + x.rad * y.size
    rad = (spread + (float(U) + slack(1)) * size + TINY) * _OURS
    return Enclosure(mid, np.where(size == 0, 0.0, rad))


def single(numbers: Array) -> Array:
    """Rounded to normal numbers of float32; smaller ones give NaN, which equals nothing."""
    with np.errstate(over="ignore"):
        rounded = numbers.astype(np.float32).astype(np.float64)
    return np.where((np.abs(numbers) >= TINY) | (numbers == 0.0), rounded, np.nan)


def linear(
    x: Enclosure,
    weight: Array,
    bias: Array | None = None,
    *,
    what: str,
    beside: Enclosure | None = None,
) -> Enclosure:
    """W x + b for each row of x.

    `beside`: x is only one part of the rows that are really multiplied, and the other part, in
    columns where x is 0, is given here. Its terms count among the roundings; the two results add
    up.
    """
    inputs = len(weight[0])
    read = np.flatnonzero(weight.any(0))
    if len(read) < inputs:
        # columns that are not read cost time alone
        x = x.columns(read)
        weight = weight[:, read]
        beside = None if beside is None else beside.columns(read)
    own = (weight != 0.0) & x.used
    count = own.sum(1)
    lone = np.ones(len(weight), np.bool_)
    if beside is not None:
        other = (weight != 0.0) & beside.used & ~x.used
        lone = ~other.any(1)
        count = count + other.sum(1)
    if bias is not None:
        count = count + (bias != 0.0)
    heights = np.abs(weight).T
    size = x.size @ heights
    if bias is not None:
        size = size + np.abs(bias)
    size = size * (1 + slack(inputs))
    limited(size, what)
    mid = x.mid @ weight.T
    if bias is not None:
        mid = mid + bias
    rounding = (roundings(count) + slack(inputs)) * size + 4 * count * TINY
    rad = (x.spread @ heights + rounding) * _OURS
    exact = lone & _exact(x, weight, bias, own, size)
    return Enclosure(mid, np.where(exact | (size == 0), 0.0, rad))


def _exact(
    x: Enclosure, weight: Array, bias: Array | None, own: NDArray[np.bool_], size: Array
) -> NDArray[np.bool_]:
    """For which outputs no product and no partial sum, in whatever order, can be rounded."""
    points = ~(own & x.spread.any(0)).any(1)
    bits = _lowest_of_columns(x.mid)
    lowest = np.where(own, lowest_bits(weight) + bits, _ZERO_BIT).min(1, initial=_ZERO_BIT)
    if bias is not None:
        lowest = np.minimum(lowest, lowest_bits(bias))
    # every partial sum is a multiple of 2^lowest: float32 holds it if the quotient has 24 bits,
    # and does not flush it if 2^lowest is a normal number
    room = np.ldexp(1.0, np.clip(24 + lowest, -1000, 1000).astype(np.int64))
    # sizes are rounded up a little: multiples of 2^lowest that are this close to 2^(24+lowest) are
    # no larger than it
    return points & (size.max(0, initial=0.0) <= room * _OURS) & (lowest >= -126)


def _lowest_of_columns(x: Array) -> NDArray[np.int64]:
    """The least of `lowest_bits` in each column; of one with a single size beside 0 at once."""
    sizes = np.abs(x)
    top = sizes.max(0, initial=0.0)
    found = lowest_bits(top)
    many = np.flatnonzero(~((sizes == top) | (sizes == 0.0)).all(0))
    found[many] = lowest_bits(x[:, many]).min(0, initial=_ZERO_BIT)
    return found


def whole(left: Array, right: Array) -> bool:
    """Whether float64 computes left @ right without any rounding, with room for one number more."""
    lowest = int(lowest_bits(left).min(initial=0)) + int(lowest_bits(right).min(initial=0))
    largest = float(np.abs(left).max(initial=0.0)) * float(np.abs(right).max(initial=0.0))
    return largest * left.shape[1] <= 2.0 ** min(1000, 50 + lowest)


def relu(x: Enclosure) -> Enclosure:
    hull = Enclosure.between(np.maximum(x.low, 0.0), np.maximum(x.high, 0.0))
    keep = x.low >= 0
    return Enclosure(np.where(keep, x.mid, hull.mid), np.where(keep, x.rad, hull.rad))


def mlp(
    x: Enclosure,
    weights: tuple[Array, Array, Array, Array],
    *,
    what: str,
) -> tuple[Enclosure, float]:
    """W_2 relu(W_1 x + b_1) + b_2 for each row, and how far every coordinate of a centre may move
    before a hidden unit switches.

    Where no hidden unit can switch the map is affine: its slopes are multiplied out before the
    radii of x are put in, so that what cancels is seen to cancel.
    """
    up, up_bias, down, down_bias = weights
    inputs = up.shape[1]
    hidden = linear(x, up, up_bias, what=what)
    plain = linear(relu(hidden), down, down_bias, what=what)
    # in real arithmetic, at the centre, and how far it moves
    centre = x.mid @ up.T + up_bias
    heights = np.abs(up)
    size = (x.size @ heights.T + np.abs(up_bias)) * (1 + slack(inputs))
    move = x.rad @ heights.T * _OURS + slack(inputs) * size
    still = x.rad @ heights.T == 0
    definite = (still | (np.abs(centre) > move)).all(1)
    sums = heights.sum(1)
    reads = sums > 0
    room = 0.0
    if reads.any() and len(centre):
        room = float((np.abs(centre[:, reads]) / sums[reads]).min())
        # the bias is one input more, of 1
        ones = np.ones((len(x.mid), 1))
        read = (up != 0.0).any(0)
        table = np.concatenate([up[:, read], up_bias[:, None]], 1)
        given = np.concatenate([x.mid[:, read], ones], 1)
        if not (whole(given, table.T) and whole(table, table.T * 0 + 1)):
            room *= 1 - 2.0**-40

    moved = np.zeros_like(plain.mid)
    used = np.flatnonzero((up != 0.0).any(0) & x.used)
    written = np.flatnonzero((down != 0.0).any(1))
    if len(used) and len(written):
        lower = down[written]
        upper = up[:, used]
        blur = slack(len(up)) * (np.abs(lower) @ np.abs(upper))
        rows = max(1, (1 << 22) // max(1, lower.size + len(used) * len(written)))
        for start in range(0, len(centre), rows):
            on = centre[start : start + rows] > 0
            slopes = np.abs((lower[None] * on[:, None, :]) @ upper) + blur
            reach = (slopes @ x.rad[start : start + rows, used, None])[..., 0]
            moved[start : start + rows, written] = reach
    count = ((up != 0.0) & x.used).sum(1) + (up_bias != 0.0)
    off = roundings(count) * size + 4 * count * TINY
    open_ = np.maximum(centre, 0.0)
    width = np.abs(down).T
    total = (open_ + move + off) @ width + np.abs(down_bias)
    last = (down != 0.0).sum(1) + (down_bias != 0.0)
    # our own centre is rounded, too, by no more than the slack of what it is made of
    ours = slack(inputs) * (size @ width) + slack(len(up)) * total
    rad = moved + off @ width + roundings(last) * total + 4 * last * TINY + ours
    rad = np.where(total == 0, 0.0, rad * _OURS)
    mid = open_ @ down.T + down_bias
    better = definite[:, None] & (rad < plain.rad)
    return Enclosure(np.where(better, mid, plain.mid), np.where(better, rad, plain.rad)), room


class Scores:
    """Products <x, key> of rows with keys (m, d): centres, and one radius for all keys of a row."""

    def __init__(self, keys: Enclosure, used: NDArray[np.bool_], what: str) -> None:
        """`used`: the dimensions in which some row is not 0."""
        self.keys = keys
        self.what = what
        self.terms = int((used & keys.used).sum())
        self._largest = keys.size.max(0)
        self._widest = keys.rad.max(0)

    def centres(self, x: Enclosure) -> Array:
        return x.mid @ self.keys.mid.T

    def errors(self, x: Enclosure) -> Array:
        """How far a computed score may be from its centre, for each row (n). For rows that are
        sums of two parts the two errors add up.
        """
        size = x.size @ self._largest * (1 + slack(len(self._largest)))
        limited(size, self.what)
        spread = x.rad @ self._largest + x.size @ self._widest
        rounding = (float(roundings(self.terms)) + slack(len(self._largest))) * size
        return (spread + rounding + 4 * self.terms * TINY) * _OURS
