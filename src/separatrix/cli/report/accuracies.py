"""What stands beside a counted accuracy, in words: its interval, and chance."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction

from separatrix.core.numbers.wilson import wilson_of_answers

_TENTH = Decimal("0.1")


def interval(right: int, due: int, prompts: int) -> str:
    """The 95 % Wilson interval of answers in so many prompts, in per cent, one decimal, rounded
    outward.
    """
    low, high = (Decimal(100) * Decimal(end) for end in wilson_of_answers(right, due, prompts))
    return f"{low.quantize(_TENTH, ROUND_FLOOR)} to {high.quantize(_TENTH, ROUND_CEILING)} %"


def chance(value: Fraction) -> str:
    """The accuracy of guessing in per cent, one decimal."""
    return f"{float(100 * value):.1f} %"
