"""An interval machine: what any correct program of an arithmetic may compute, as centres and radii.

An `Enclosure` holds, for every number of an array, a centre and a radius, and the arithmetic that
it is computed in. Each operation returns an enclosure of everything that its counterpart in that
arithmetic can give for inputs within the enclosures, whatever the order of sums and with fused
products or without:

    fl(x op y) = (x op y)(1 + d) + e,  |d| <= u,  |e| <= the smallest normal number

where e covers results flushed to zero. In half formats sums have float32's u, and a result is then
rounded once more, to the format in which it is stored. A result that the format holds exactly is
not rounded. An operation whose terms could add up to more than half of the largest number raises
CheckFailed: nothing overflows in what is proved. The machine's own arithmetic is float64; radii are
enlarged by its rounding.

Shapes: n rows, w inputs, o outputs, d dimensions, m keys.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.proofs.arithmetic import FP32, Arithmetic

Array = NDArray[np.float64]
_Sizes = TypeVar("_Sizes", float, Array)
_OURS = 1 + 2.0**-40
"""Enlarges a radius by more than the few roundings of float64 in which it was computed."""
_ZERO_BIT = 1 << 20
RESIDUAL = "the residual stream"


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Numbers, each within its radius of its centre. A point has radius 0 and is exact."""

    mid: Array
    rad: Array
    arithmetic: Arithmetic = FP32

    @classmethod
    def point(cls, numbers: Array, arithmetic: Arithmetic = FP32) -> Enclosure:
        return cls(numbers, np.broadcast_to(0.0, numbers.shape), arithmetic)

    @classmethod
    def between(cls, low: Array, high: Array, arithmetic: Arithmetic = FP32) -> Enclosure:
        """Everything from `low` to `high`."""
        mid = low + (high - low) / 2
        reach = np.maximum(high - mid, mid - low) * (1 + 2.0**-50)
        return cls(np.where(low == high, low, mid), np.where(low == high, 0.0, reach), arithmetic)

    def like(self, mid: Array, rad: Array) -> Enclosure:
        """Other numbers, in the same arithmetic."""
        return Enclosure(mid, rad, self.arithmetic)

    def __neg__(self) -> Enclosure:
        return self.like(-self.mid, self.rad)

    def spanning(self, low: Array, high: Array) -> Enclosure:
        """Everything from `low` to `high`, in the same arithmetic."""
        return Enclosure.between(low, high, self.arithmetic)

    @property
    def low(self) -> Array:
        return self._ends(self.mid, -1.0)

    @property
    def high(self) -> Array:
        return self._ends(self.mid, 1.0)

    @property
    def size(self) -> Array:
        """At or above the absolute value."""
        return self._ends(np.abs(self.mid), 1.0)

    @property
    def least(self) -> Array:
        """At or below the absolute value."""
        nearest = np.minimum(np.abs(self.low), np.abs(self.high))
        return np.where((self.low <= 0) & (self.high >= 0), 0.0, nearest)

    def _ends(self, mid: Array, side: float) -> Array:
        """The radii added to centres, or taken from them, which may be rounded, moved outward;
        points stay.
        """
        if not self.spread.any():
            return mid
        ends = mid + side * self.rad
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
        return self.spanning(*self._extremes)

    @cached_property
    def _extremes(self) -> tuple[Array, Array]:
        """The least and the greatest of each column."""
        low = self.mid.min(0, keepdims=True)
        high = self.mid.max(0, keepdims=True)
        if len(self.spread) == 1:
            # the ends of the extremes are the extremes of the ends
            radii = self.spread
            return self.like(low, radii).low, self.like(high, radii).high
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
        """Some columns, in ascending order."""
        some = np.flatnonzero(some) if some.dtype == np.bool_ else some
        first = int(some[0]) if len(some) else 0
        # those that stand side by side are not copied
        beside = len(some) > 0 and int(some[-1]) - first == len(some) - 1
        picked = slice(first, first + len(some)) if beside else some
        mid = self.mid[:, picked]
        return self.like(mid, np.broadcast_to(self.spread[:, picked], mid.shape))

    def rows(self, places: NDArray[np.int64] | slice) -> Enclosure:
        mid = self.mid[places]
        if self.rad.strides[0] == 0:
            return self.like(mid, np.broadcast_to(self.rad[:1], mid.shape))
        return self.like(mid, self.rad[places])

    def only(self, columns: NDArray[np.bool_]) -> Enclosure:
        """The same in these columns, exactly 0 in the others."""
        if not self.used[~columns].any():
            return self
        rad = np.where(columns, self.spread, 0.0)
        return self.like(np.where(columns, self.mid, 0.0), np.broadcast_to(rad, self.mid.shape))

    def within(self, row: Enclosure) -> Enclosure:
        """The rows within another row, or row by row within others, as well. Raises CheckFailed
        where nothing is.
        """
        low = np.maximum(self.low, row.low)
        high = np.minimum(self.high, row.high)
        if (low > high).any():
            raise CheckFailed("no token can hold what is proved of it")
        return self.spanning(low, high)

    def or_zero(self) -> Enclosure:
        """The same, or 0."""
        return self.spanning(np.minimum(self.low, 0.0), np.maximum(self.high, 0.0))

    def repeated(self, count: int) -> Enclosure:
        """A row as often as asked for."""
        shape = (count, self.mid.shape[1])
        return self.like(np.broadcast_to(self.mid, shape), np.broadcast_to(self.rad, shape))

    def wider(self, by: Array) -> Enclosure:
        return self.like(self.mid, (self.rad + by) * _OURS)

    def summed(self) -> Enclosure:
        """The same numbers where they are added up: in the arithmetic of sums."""
        return Enclosure(self.mid, self.rad, self.arithmetic.inner)

    def stored_in(self, arithmetic: Arithmetic) -> Enclosure:
        """What is left of results of sums once they are stored. Raises CheckFailed where the format
        may not hold them.
        """
        limited(self.size, "what is stored", arithmetic)
        return Enclosure(self.mid, self.rad, arithmetic).stored()

    def stored(self) -> Enclosure:
        """The same once every number is rounded to the format that it is stored in, if that is
        narrower than the format of sums.
        """
        return self.nearest() if self.arithmetic.narrowed else self

    def nearest(self) -> Enclosure:
        """The same once every number is rounded. Rounding keeps the order of numbers."""
        arithmetic = self.arithmetic
        tiny = arithmetic.tiny
        # one step further out, ties may go either way
        low = arithmetic.leading(np.nextafter(self.low, -np.inf))
        high = arithmetic.leading(np.nextafter(self.high, np.inf))
        low = np.where(np.abs(self.low) < tiny, np.where(self.low < 0, -tiny, 0.0), low)
        high = np.where(np.abs(self.high) < tiny, np.where(self.high > 0, tiny, 0.0), high)
        return self.spanning(low, high)


def limited(size: Array, what: str, arithmetic: Arithmetic = FP32, *, summed: bool = False) -> None:
    """Raises CheckFailed when a number that is stored, or one inside a sum, may be larger than half
    of what the format holds, or is not a number.
    """
    most = arithmetic.summed_large if summed else arithmetic.large
    if size.size and not bool((size <= most).all()):
        raise CheckFailed(f"{what}: a number may overflow {arithmetic.name}")


def stacked(*parts: Enclosure) -> Enclosure:
    """The rows of all of them, one table after the other."""
    if len(parts) == 1:
        return parts[0]
    return parts[0].like(
        np.concatenate([part.mid for part in parts]), np.concatenate([part.rad for part in parts])
    )


def hull(*parts: Enclosure) -> Enclosure:
    """One row that encloses all rows of several tables."""
    return stacked(*(part.hull() for part in parts)).hull()


def shared(x: Enclosure, y: Enclosure) -> Arithmetic:
    """The arithmetic of both."""
    if x.arithmetic != y.arithmetic:
        raise CheckFailed(
            f"numbers of {x.arithmetic.name} meet numbers of {y.arithmetic.name}: nothing is proved"
        )
    return x.arithmetic


def slack(terms: int) -> float:
    """Relative rounding of a float64 sum of that many products, in any order."""
    return (terms + 8) * 2.0**-52


def roundings(count: NDArray[np.int64] | int, arithmetic: Arithmetic = FP32) -> Array:
    """The relative error of so many roundings in a row inside a sum, whether they multiply or
    divide: 1 / (1 - u) <= e^(u + u^2).
    """
    u = float(arithmetic.summed)
    with np.errstate(over="ignore"):
        return np.expm1(np.asarray(count, np.int64) * (u * (1 + u)) * _OURS) * _OURS


def summing(count: NDArray[np.int64] | int, size: Array, arithmetic: Arithmetic) -> Array:
    """How far sums of so many terms, of such a size together, may be off before they are stored."""
    return roundings(count, arithmetic) * size + 4 * count * arithmetic.summed_tiny


def flushed(keys: int, largest: _Sizes, arithmetic: Arithmetic) -> _Sizes:
    """How much an average over so many keys, of values of at most this size, loses of weights,
    products and sums that are flushed to zero, relative to a weight of 1.
    """
    return 16 * keys * arithmetic.summed_tiny * (1 + largest)


def one(arithmetic: Arithmetic) -> float:
    """The relative error of one operation whose result is stored."""
    stored = float(arithmetic.stored)
    return stored + 2 * float(arithmetic.summed) if arithmetic.narrowed else stored


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


def add(x: Enclosure, y: Enclosure, what: str, out: Array | None = None) -> Enclosure:
    """x + y, number by number; the centres written to `out`, which may be those of a side that is
    not needed any more.
    """
    arithmetic = shared(x, y)
    if not (x.tops + y.tops <= arithmetic.large).all():
        limited(x.size + y.size, what, arithmetic)
    extremes = tuple(a + b for a, b in zip(x._extremes, y._extremes, strict=True))
    # 0 leaves a number as it is
    both = np.flatnonzero(x.used & y.used)
    rounded = _sums(x.columns(both), y.columns(both)) if len(both) else None
    mid = np.add(x.mid, y.mid, out=out)
    rad = np.broadcast_to(x.spread + y.spread, mid.shape)
    if rounded is not None:
        rad = rad.copy()
        mid[:, both] = rounded.mid
        rad[:, both] = rounded.rad
        return x.like(mid, rad)
    found = x.like(mid, rad)
    # of each column one side is 0: its extremes need not be looked for again
    found.__dict__["_extremes"] = extremes
    return found


def add_once(x: Enclosure, y: Enclosure, what: str) -> Enclosure:
    """The same, told more closely: a sum of two numbers is the number of the format next to it, so
    that what is off by less than half of their distance is not off any more.
    """
    found = add(x, y, what)
    if found.arithmetic.narrowed:
        return found
    return found.within(x.spanning(x.low + y.low, x.high + y.high).nearest())


def _sums(x: Enclosure, y: Enclosure) -> Enclosure:
    """x + y where both may be other numbers than 0."""
    arithmetic = x.arithmetic
    mid = x.mid + y.mid
    spread = x.rad + y.rad
    # a float64 sum that the format holds is what the sum is rounded to
    exact = (x.size == 0) | (y.size == 0) | ((spread == 0) & arithmetic.held(mid))
    off = float(arithmetic.summed) + slack(1)
    rounded = (spread + off * (np.abs(mid) + spread) + arithmetic.summed_tiny) * _OURS
    found = x.like(mid, np.where(exact, spread, rounded))
    if not arithmetic.narrowed:
        return found
    kept = found.stored()
    return x.like(np.where(exact, mid, kept.mid), np.where(exact, spread, kept.rad))


def times(x: Enclosure, y: Enclosure, what: str) -> Enclosure:
    """x y, number by number."""
    arithmetic = shared(x, y)
    mid = x.mid * y.mid
    size = x.size * y.size
    limited(size, what, arithmetic)
    spread = np.abs(x.mid) * y.rad + x.rad * y.size
    rad = (spread + (one(arithmetic) + slack(1)) * size + arithmetic.tiny) * _OURS
    # times 1 nothing is rounded; points are no numbers that may be flushed
    same = ((x.mid == 1) & (x.rad == 0)) | ((y.mid == 1) & (y.rad == 0))
    rad = np.where(same, spread + arithmetic.tiny * (spread > 0), rad)
    return x.like(mid, np.where(size == 0, 0.0, rad))


def linear(
    x: Enclosure,
    weight: Array,
    bias: Array | None = None,
    *,
    what: str,
) -> Enclosure:
    """W x + b for each row of x."""
    arithmetic = x.arithmetic
    inputs = len(weight[0])
    read = np.flatnonzero(weight.any(0))
    if len(read) < inputs:
        # columns that are not read cost time alone
        x = x.columns(read)
        weight = weight[:, read]
    own = (weight != 0.0) & x.used
    count = own.sum(1)
    if bias is not None:
        count = count + (bias != 0.0)
    heights = np.abs(weight).T
    height = 0.0 if bias is None else np.abs(bias)
    # the largest numbers of all columns together
    most = (x.tops[0] @ heights + height) * (1 + slack(inputs))
    if not (most <= arithmetic.large).all():
        limited((x.size @ heights + height) * (1 + slack(inputs)), what, arithmetic)
    points = ~(own & x.spread.any(0)).any(1)
    lowest = _lowest(x, weight, bias, own)

    def unrounded(largest: Array, kept: Arithmetic) -> NDArray[np.bool_]:
        return points & _fits(largest, lowest, kept)

    mid = x.mid @ weight.T
    if bias is not None:
        mid = mid + bias
    if unrounded(most, arithmetic).all():
        return x.like(mid, np.broadcast_to(0.0, mid.shape))
    size = (x.size @ heights + height) * (1 + slack(inputs))
    tiny = arithmetic.summed_tiny
    rounding = (roundings(count, arithmetic) + slack(inputs)) * size + 4 * count * tiny
    rad = (x.spread @ heights + rounding) * _OURS
    largest = size.max(0, initial=0.0)
    exact = unrounded(largest, arithmetic.inner)
    found = x.like(mid, np.where(exact | (size == 0), 0.0, rad))
    if not arithmetic.narrowed:
        return found
    # what the format holds as it is once it is stored
    held = exact & unrounded(largest, arithmetic)
    again = np.zeros(found.mid.shape[1])
    if bias is not None:
        # it may be added to a product that was stored
        again = np.where(held | (bias == 0.0), 0.0, 1.0)
    off = (float(arithmetic.stored) * size + arithmetic.tiny) * again
    kept = found.wider(off).stored()
    still = held | (size == 0)
    return found.like(np.where(still, found.mid, kept.mid), np.where(still, found.rad, kept.rad))


def _lowest(
    x: Enclosure, weight: Array, bias: Array | None, own: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """For each output an e such that all its terms, at centres, are multiples of 2^e."""
    bits = _lowest_of_columns(x.mid)
    lowest = np.where(own, lowest_bits(weight) + bits, _ZERO_BIT).min(1, initial=_ZERO_BIT)
    return lowest if bias is None else np.minimum(lowest, lowest_bits(bias))


def _fits(size: Array, lowest: NDArray[np.int64], arithmetic: Arithmetic) -> NDArray[np.bool_]:
    """Whether an arithmetic stores all multiples of 2^lowest up to a size: then no product and no
    partial sum, in whatever order, is rounded, nor flushed to zero.
    """
    room = np.ldexp(1.0, np.clip(arithmetic.digits + lowest, -1000, 1000).astype(np.int64))
    # sizes are rounded up a little: of few digits, multiples of 2^lowest that are this close to
    # 2^(digits + lowest) are no larger than it
    if arithmetic.digits < 39:
        room = room * _OURS
    return (size <= room) & (lowest >= arithmetic.smallest)


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
    hull = x.spanning(np.maximum(x.low, 0.0), np.maximum(x.high, 0.0))
    keep = x.low >= 0
    return x.like(np.where(keep, x.mid, hull.mid), np.where(keep, x.rad, hull.rad))


def mlp(x: Enclosure, weights: tuple[Array, Array, Array, Array], *, what: str) -> Enclosure:
    """W_2 relu(W_1 x + b_1) + b_2 for each row.

    Where no hidden unit of an output can switch the map is affine: its slopes are multiplied out
    before the radii of x are put in, so that what cancels is seen to cancel.
    """
    up, up_bias, down, down_bias = weights
    arithmetic = x.arithmetic
    inputs = up.shape[1]
    hidden = linear(x, up, up_bias, what=what)
    plain = linear(relu(hidden), down, down_bias, what=what)
    # in real arithmetic, at the centre, and how far it moves
    centre = x.mid @ up.T + up_bias
    heights = np.abs(up)
    size = (x.size @ heights.T + np.abs(up_bias)) * (1 + slack(inputs))
    move = x.rad @ heights.T * _OURS + slack(inputs) * size
    still = x.rad @ heights.T == 0
    # an output is affine where every hidden unit that it is made of stays open or closed
    wavering = ~(still | (np.abs(centre) > move))
    definite = ~(wavering.astype(np.float64) @ (down != 0.0).T > 0)
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
    off = mapping(count, size, arithmetic)
    # what is closed, as computed too, gives exactly 0
    closed = centre + move + off < 0
    move = np.where(closed, 0.0, move)
    off = np.where(closed, 0.0, off)
    open_ = np.maximum(centre, 0.0)
    width = np.abs(down).T
    total = (open_ + move + off) @ width + np.abs(down_bias)
    last = (down != 0.0).sum(1) + (down_bias != 0.0)
    # our own centre is rounded, too, by no more than the slack of what it is made of
    ours = slack(inputs) * (size @ width) + slack(len(up)) * total
    rad = moved + off @ width + mapping(last, total, arithmetic) + ours
    rad = np.where(total == 0, 0.0, rad * _OURS)
    mid = open_ @ down.T + down_bias
    better = definite & (rad < plain.rad)
    return x.like(np.where(better, mid, plain.mid), np.where(better, rad, plain.rad))


def mapping(count: NDArray[np.int64], size: Array, arithmetic: Arithmetic) -> Array:
    """How far a map's result may be off by its own roundings, where its terms, so many for each
    output, add up to a size.
    """
    off = summing(count, size, arithmetic)
    if arithmetic.narrowed:
        # of the product, and with the bias once more
        off = off + 2 * (float(arithmetic.stored) * (size + off) + arithmetic.tiny)
    return off


class Scores:
    """Products <x, key> of rows with keys (m, d): centres, and one radius for all keys of a row."""

    def __init__(self, keys: Enclosure, used: NDArray[np.bool_], what: str) -> None:
        """`used`: the dimensions in which some row is not 0."""
        self.keys = keys.summed()
        self.what = what
        self.terms = int((used & keys.used).sum())
        self._largest = keys.size.max(0)
        self._widest = keys.rad.max(0)
        self.rounded = True

    def of(self, *parts: Enclosure) -> Scores:
        """The same for queries that are sums of rows of these, one of each: without an error where
        no product and no partial sum can be rounded, in whatever order.
        """
        if self._lowest is None or any(part.spread.any() for part in parts):
            return self
        sums = [part.size @ self._largest for part in parts]
        size = sum(float(each.max(initial=0.0)) for each in sums) * (1 + slack(self.terms))
        bits = np.minimum.reduce([_lowest_of_columns(part.mid) for part in parts])
        lowest = (bits + self._lowest).min(initial=_ZERO_BIT)
        if bool(_fits(np.array([size]), np.array([lowest]), self.keys.arithmetic).all()):
            found = copy(self)
            found.rounded = False
            return found
        return self

    @cached_property
    def _lowest(self) -> NDArray[np.int64] | None:
        """Of the keys; None where they are no points."""
        return None if self.keys.spread.any() else _lowest_of_columns(self.keys.mid)

    def centres(self, x: Enclosure) -> Array:
        return x.mid @ self.keys.mid.T

    def errors(self, x: Enclosure, own: Enclosure | None = None) -> Array:
        """How far a computed score may be from its centre, for each row (n): with any key, or with
        that in its own row. For rows that are sums of two parts the two errors add up.
        """
        largest, widest = (self._largest, self._widest) if own is None else (own.size, own.rad)

        def total(left: Array, right: Array) -> Array:
            return left @ right if own is None else (left * right).sum(1)

        size = total(x.size, largest) * (1 + slack(len(self._largest)))
        arithmetic = shared(x.summed(), self.keys)
        limited(size, self.what, arithmetic)
        if not self.rounded:
            return np.zeros(len(size))
        spread = total(x.rad, largest) + total(x.size, widest)
        off = float(roundings(self.terms, arithmetic)) + slack(len(self._largest))
        return (spread + off * size + 4 * self.terms * arithmetic.summed_tiny) * _OURS
