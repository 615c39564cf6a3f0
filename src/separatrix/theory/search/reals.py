"""Logarithms and exponentials that are the same on every machine.

Only + - x / of floats in one fixed order, and exact scaling by powers of two: what a system's own
library computes differs in last digits. Sums are written as loops: `sum` of floats is not the same
in every Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, frexp, inf, ldexp

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
