"""Logarithms and exponentials that are the same on every machine, and what is solved with them: the
integers near roots of smooth functions, and how many bins are surely hit.

Only + - x / of floats in one fixed order, and exact scaling by powers of two: what a system's own
library computes differs in last digits. Sums are written as loops: `sum` of floats is not the same
in every Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, frexp, inf, isfinite, ldexp, sqrt

from flint import arf

Real = arf
"""A float whose exponent has no bounds: + - x / of it are rounded correctly."""

LN2 = 0.6931471805599453
_LN2_HIGH = 0.6931471803691238
"""Its first 33 bits: a product with a small integer is exact."""
_LN2_LOW = 1.9082149292705877e-10
_LARGEST = 709.0
_SMALLEST = -745.0
_TERMS = 30
_CELLS = 64


def _series(s: float) -> float:
    """2 artanh s = ln((1 + s) / (1 - s)), |s| <= 1/3, term by term."""
    square = s * s
    total = 0.0
    for odd in range(2 * _TERMS + 1, 0, -2):
        total = total * square + 1 / odd
    return 2 * s * total


_CENTRES = tuple((2 * cell + 1) / (4 * _CELLS) + 0.5 for cell in range(_CELLS))
"""Centres of the cells that [1/2, 1) is cut into."""
_LOGARITHMS = tuple(_series((centre - 1) / (centre + 1)) for centre in _CENTRES)


def ln(x: float | Real) -> float:
    """The natural logarithm of a float, an integer of any size or a Real; -inf of 0 and below."""
    if not isinstance(x, float):
        man, shift = _parts(x)
        return shift * LN2 + ln(man)
    if not 0 < x < inf:
        return x if x > 0 else -inf
    if x == 1.0:
        return 0.0
    part, twos = frexp(x)
    cell = int((part - 0.5) * (2 * _CELLS))
    centre = _CENTRES[cell]
    s = (part - centre) / (part + centre)
    z = s * s
    rest = 2 * s * (1 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7))))
    return twos * _LN2_HIGH + (_LOGARITHMS[cell] + (twos * _LN2_LOW + rest))


def _parts(x: int | Real) -> tuple[float, int]:
    """A float and a shift: x = float 2^shift, but for digits that floats do not hold."""
    if isinstance(x, int):
        shift = max(0, x.bit_length() - 64)
        return float(x >> shift), shift
    near = float(x)
    # beyond floats it is the largest of them, or 0
    if x == 0 or 1e-300 < abs(near) < 1e300:
        return near, 0
    man, power = x.man_exp()
    return float(int(man)), int(power)


def log2(x: float | Real) -> float:
    """The logarithm to base 2."""
    return ln(x) / LN2


def log1p(x: float) -> float:
    """ln(1 + x), x > -1."""
    if not -0.25 < x < 0.25:
        return ln(1 + x)
    s = x / (2 + x)
    z = s * s
    # 2 artanh s by its series, from the last term that floats notice
    far = 1 / 11 + z * (1 / 13 + z * (1 / 15 + z / 17))
    return 2 * s * (1 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * far)))))


def exp(x: float) -> float:
    """e^x; 0 and infinity where floats end."""
    if not _SMALLEST < x < _LARGEST:
        return inf if x > 0 else 0.0
    cells = floor(x / LN2 * _CELLS + 0.5)
    # cells are exact in the first product
    r = (x - cells * (_LN2_HIGH / _CELLS)) - cells * (_LN2_LOW / _CELLS)
    grown = r * (1 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120)))))
    power = _POWERS[cells % _CELLS]
    return ldexp(power + power * grown, cells // _CELLS)


def expm1(x: float) -> float:
    """e^x - 1."""
    if not -0.02 < x < 0.02:
        return _grown(x) if -0.35 < x < 0.35 else exp(x) - 1
    far = 1 / 24 + x * (1 / 120 + x * (1 / 720 + x / 5040))
    return x * (1 + x * (1 / 2 + x * (1 / 6 + x * far)))


def _grown(x: float) -> float:
    """e^x - 1 by its series, |x| <= 0.7."""
    total = 0.0
    for term in range(19, 1, -1):
        total = (total + 1) * x / term
    return x * (1 + total)


_POWERS = tuple(1 + _grown(cell * (LN2 / _CELLS)) for cell in range(_CELLS))
"""2^(cell / 64)."""


def real(x: float) -> Real:
    """e^x as a Real."""
    twos = floor(x / LN2)
    return arf(exp((x - twos * _LN2_HIGH) - twos * _LN2_LOW)) * arf((1, twos))


def whole(x: Real) -> int:
    """A Real of at least 0, rounded down to an integer."""
    man, power = x.man_exp()
    return int(man) << int(power) if power >= 0 else int(man) >> -int(power)


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
