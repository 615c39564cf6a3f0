"""A counted accuracy in words: the share, what was counted, its interval, and chance beside it."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from separatrix.numbers.wilson import wilson

_TENTH = Decimal("0.1")


def share(right: int, total: int) -> str:
    """A share in per cent, one decimal; 100 % and 0 % only where it is."""
    percent = Decimal(100) * right / total
    rounded = percent.quantize(_TENTH, ROUND_HALF_EVEN)
    if rounded == 100 and right < total:
        rounded = Decimal("99.9")
    if not rounded and right:
        rounded = _TENTH
    return f"{rounded} %"


def interval(right: int, total: int) -> str:
    """The 95 % Wilson interval in per cent, one decimal, rounded outward."""
    low, high = (Decimal(100) * Decimal(end) for end in wilson(right, total))
    return f"{low.quantize(_TENTH, ROUND_FLOOR)} to {high.quantize(_TENTH, ROUND_CEILING)} %"


def chance(value: Fraction) -> str:
    """The accuracy of guessing in per cent, one decimal."""
    return f"{float(100 * value):.1f} %"
