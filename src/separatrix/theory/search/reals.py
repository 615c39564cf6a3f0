"""Logarithms and exponentials that are the same on every machine, and what is solved with them: the
integers near roots of smooth functions, and how many bins are surely hit.

They are midpoints of balls, which FLINT computes in integers: what a system's own library computes
differs in last digits. Sums are written as loops: `sum` of floats is not the same in every Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, inf, isfinite, sqrt

from flint import arb

LN2 = 0.6931471805599453
_LARGEST = 709.0
_SMALLEST = -745.0


def ln(x: float) -> float:
    """The natural logarithm of a float or of an integer of any size; -inf of 0 and below."""
    return float(arb(x).log()) if x > 0 else -inf


def log2(x: float) -> float:
    """The logarithm to base 2."""
    return ln(x) / LN2


def log1p(x: float) -> float:
    """ln(1 + x), x > -1."""
    return float(arb(x).log1p())


def exp(x: float) -> float:
    """e^x; 0 and infinity where floats end."""
    if not _SMALLEST < x < _LARGEST:
        return inf if x > 0 else 0.0
    return float(arb(x).exp())


def expm1(x: float) -> float:
    """e^x - 1."""
    return float(arb(x).expm1()) if -1 < x < 1 else exp(x) - 1


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """The sum of products, from the left."""
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total


GIVEN_UP = 1e150
"""Integers beyond this are given up on."""


def least_factor(base: float, r: float, cost: float, owed: float) -> float:
    """The smallest integer x >= 1 with x (r log2(x base) - cost) > owed; inf beyond `GIVEN_UP`.

    With x = y 2^turn, at which r log2(x base) equals cost, it reads y ln y > z: Newton's method on
    that convex function, from 1 + z, is at the root to the last digits after five steps. r > 0,
    owed >= 0.
    """
    turn = cost / r - log2(base)
    # 2^490 is not far below `GIVEN_UP`: nothing beyond it is sought, and nothing overflows
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
    if not x < GIVEN_UP:
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


_STEEPEST = 300.0
"""Logarithms beyond it are taken for it, so that nothing overflows."""
_TAU = 2 * 3.141592653589793
_STEPS = 60
_CLOSE = 1e-11
"""Newton's next step would be far smaller than this."""


def share_hit(bins: float, balls: float, groups: float, bits: float) -> float:
    """About (y-1)/balls for the largest y with lambda(bins, balls, y; groups) >= 2^bits, by
    Stirling's formula; everything as natural logarithms, `bits` too.

    It is smooth in all of them, also where y falls below 2.
    """
    each = max(balls - groups, 0.0)
    # groups ln((balls/groups)!) is that many nats more than its leading terms
    rest = (each + ln(_TAU)) / 2 + exp(-each) / 12
    owed = _added(bits + ln(LN2), groups + ln(rest))
    target = exp(min(max(owed - balls, -_STEEPEST), _STEEPEST))
    return _share(target, min(max(bins - balls, -_STEEPEST), _STEEPEST))


def _added(a: float, b: float) -> float:
    """ln(e^a + e^b)."""
    return max(a, b) + log1p(exp(min(a, b) - max(a, b)))


def _share(target: float, ratio: float) -> float:
    """(y-1)/balls at which lambda is `target` nats per ball; ratio = ln(bins / balls)."""
    # with the best u and z, lambda grows with u from 0 at u = balls/bins on
    low = -ratio
    high = min(max(low + 2 * target + 3, 1.2), 2 * _STEEPEST)
    # lambda starts like a square, and ends like a line
    ln_u = min(low + sqrt(2 * target) + target / 2, (low + high) / 2)
    rho = exp(ratio)
    for _ in range(_STEPS):
        gain, slope, _ = _gain(ln_u, ratio, rho)
        if abs(gain - target) <= 1e-15 * (abs(ln_u) + abs(ratio) + target):
            break
        if gain > target:
            high = ln_u
        else:
            low = ln_u
        # between its ends it is nearly a power of how far u is above its least: Newton's method
        # on both logarithms
        above = ln_u + ratio
        step = high
        if gain > 0 and slope > 0:
            step = above * exp(ln(target / gain) * gain / (slope * above)) - ratio
        if not low < step < high:
            step = (low + high) / 2
        moved = abs(step - ln_u)
        ln_u = step
        if moved <= _CLOSE * max(abs(ln_u), 1.0):
            break
    return _gain(ln_u, ratio, rho)[2]


def _gain(ln_u: float, ratio: float, rho: float) -> tuple[float, float, float]:
    """lambda per ball in nats at the best z, its derivative by ln u, and (y-1)/balls; rho = bins /
    balls and ratio its logarithm.
    """
    u = exp(ln_u)
    fallen = -expm1(-u)
    share = fallen / u
    # bins per bin that must be hit
    room = rho / share
    if not room > 1:
        return 0.0, 0.0, share
    minus_ln_z = ln(room - 1) + u + ln(fallen)
    gain = share * (room * log1p(-1 / room) - minus_ln_z) + ln_u + ratio + 1
    # the share falls by this with ln u; where u is tiny, by the first terms of its series
    fall = u / 2 - u * u / 3 if u < 1e-3 else share - (1 - fallen)
    return gain, minus_ln_z * fall, share
