"""What stands in the cells of tables of runs: shares, intervals, times."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction

from separatrix.core.numbers.amounts import format_share
from separatrix.core.numbers.wilson import wilson_of_answers
from separatrix.core.progress import clock

NONE = "-"


def accuracy(right: int | None, due: int | None) -> str:
    """What was not tested has none."""
    return format_share(right, due) if right is not None and due else NONE


def guessed(chance: Fraction) -> str:
    """What guessing gives, to the nearest tenth: rounded down it would flatter models."""
    return f"{100 * float(chance):.1f} %"


def ends(low: str, high: str) -> tuple[str, str]:
    """The ends of an interval of shares, in percent with one decimal, rounded outward."""
    tenth = Decimal("0.1")
    lower = (100 * Decimal(low)).quantize(tenth, ROUND_FLOOR)
    upper = (100 * Decimal(high)).quantize(tenth, ROUND_CEILING)
    return str(lower), str(upper)


def interval(right: int, due: int, prompts: int) -> str:
    """The 95 % Wilson interval of answers in so many prompts: "47.8 to 52.2 %"."""
    return f"{' to '.join(ends(*wilson_of_answers(right, due, prompts)))} %"


def share(right: int, due: int, prompts: int) -> str:
    """Right answers of those due in so many prompts of one model, with their interval."""
    over = f"95 % interval over its test prompts {interval(right, due, prompts)}"
    return f"{accuracy(right, due)} ({right:,} of {due:,}; {over})"


def duration(seconds: float) -> str:
    """ "0.4 s", "59 s", "3:12" (minutes), "2:03:12" (hours)."""
    if seconds < 60:
        return f"{seconds:.{int(seconds < 10)}f} s"
    return clock(seconds)


def moment(seconds: float | None) -> str:
    """Seconds since 1970 as a date and a time of the day, UTC."""
    if seconds is None:
        return NONE
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
