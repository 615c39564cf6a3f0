"""What rows of a table say, in words: an accuracy with its interval and seeds, and how far a use of
it lies beyond what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from separatrix.numbers.amounts import format_count
from separatrix.practice.capacity import Held
from separatrix.practice.table import Row

FEWEST_SEEDS = 3
"""Nothing is said of fewer."""
_MOST_DIGITS = 6
_FAR = 10**7
"""From here on a distance is written with a suffix: "1.2 G"."""


def enough(row: Row) -> bool:
    """Whether a row has as many seeds as a sentence about it takes."""
    return len(row.trials) >= FEWEST_SEEDS


def interval(row: Row) -> tuple[Fraction, Fraction]:
    """The interval of the median seed; of an even number of seeds, of the two in the middle
    together.
    """
    trials = sorted(row.trials, key=lambda trial: trial.accuracy)
    last = len(trials) // 2
    first = last - (len(trials) + 1) % 2
    return trials[first].interval[0], trials[last].interval[1]


def accuracy(row: Row) -> str:
    """The median accuracy of its seeds and the interval of that seed: "0.98 [0.97, 0.99]"."""
    low, high = interval(row)
    said = decimal(row.median)
    return f"{said} [{decimal(low, ROUND_FLOOR)}, {decimal(high, ROUND_CEILING)}]"


def seeds(row: Row) -> str:
    """How many of its seeds solved the task: "2 of 3 seeds solved"."""
    return f"{row.solved} of {len(row.trials)} seeds solved"


def guessing(row: Row) -> str:
    """The accuracy of guessing alone, where only some of the places were counted, and a shortcut's
    share of these is not known.
    """
    return f"chance {decimal(row.chance)}"


def chance(row: Row) -> str:
    """The accuracy of guessing, and of the best known shortcut that does better: "chance 0.06", or
    "chance 0.08, a shortcut 0.59".
    """
    said = guessing(row)
    level = max((row.task.level(name) for name in row.task.shortcuts), default=row.chance)
    return f"{said}, a shortcut {decimal(level)}" if level > row.chance else said


def decimal(value: Fraction, way: str = ROUND_HALF_EVEN) -> str:
    """Two decimals; more where it would else look like 0 or 1 and is neither."""
    for digits in range(2, _MOST_DIGITS + 1):
        exact = Decimal(value.numerator) / Decimal(value.denominator)
        shown = exact.quantize(Decimal(1).scaleb(-digits), way)
        # an end of an interval may be 0 or 1: it is rounded outward
        if way != ROUND_HALF_EVEN or value in (0, 1) or 0 < shown < 1:
            return str(shown)
    return "almost 1" if 2 * value > 1 else "almost 0"


def bits(found: Held) -> str:
    """Bits per number, at least, with their interval, rounded outward: "1.1 [1.0, 1.4]"."""

    def shown(value: Fraction, way: str) -> str:
        exact = Decimal(value.numerator) / Decimal(value.denominator)
        return str(exact.quantize(Decimal("0.1") if value >= 1 else Decimal("0.01"), way))

    low = shown(found.low, ROUND_FLOOR)
    return f"{shown(found.best, ROUND_FLOOR)} [{low}, {shown(found.high, ROUND_CEILING)}]"


def beyond(distances: Mapping[str, Fraction]) -> str:
    """How far something lies beyond what was measured, in each respect in which it does:
    "4,096 x in tokens, 6 x in layers"; "" where it lies within.
    """
    return ", ".join(f"{times(far)} in {what}" for what, far in distances.items() if far > 1)


def times(factor: Fraction) -> str:
    """A factor for people: "1.5 x", "700,000 x"."""
    if factor < 10:
        return f"{float(factor):.2g} x"
    return f"{format_count(about(int(factor)), shorten_from=_FAR)} x"


def about(count: int) -> int:
    """A count with two digits that count, rounded down: 98,321 is about 98,000."""
    return count // _scale(count) * _scale(count)


def about_at_most(count: int) -> int:
    """The same rounded up: 98,321 is at most about 99,000."""
    return -(-count // _scale(count)) * _scale(count)


def _scale(count: int) -> int:
    return 10 ** max(0, len(str(count)) - 2)
