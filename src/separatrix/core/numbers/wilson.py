"""Confidence intervals for measured accuracies, in exact rationals up to the last rounding."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from separatrix.core.errors import SizeError

Z95 = Decimal("1.959963984540054")
"""The 97.5 % point of the normal distribution."""


def wilson(correct: int | Fraction, total: int) -> tuple[str, str]:
    """The 95 % Wilson score interval for `correct` of `total`, six decimals rounded outward. Raises
    SizeError unless 0 <= correct <= total, total >= 1.

    Where each of `total` independent prompts is right by a share, `correct` is the sum of these. A
    mean of shares varies at most as a coin with that mean does, so the interval is too wide rather
    than too narrow.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference,
    1927.
    """
    if total < 1 or not 0 <= correct <= total:
        raise SizeError(f"{correct} right of {total}: need total >= 1 and 0 <= correct <= total")
    with localcontext() as context:
        context.prec = 40
        n = Decimal(total)
        share = Decimal(correct.numerator) / correct.denominator / total
        z2 = Z95 * Z95
        centre = (share + z2 / (2 * n)) / (1 + z2 / n)
        half = (share * (1 - share) / n + z2 / (4 * n * n)).sqrt() * Z95 / (1 + z2 / n)
        # 40 digits inside: only these two roundings count, and both go outward
        six = Decimal("0.000001")
        low = max(Decimal(0), centre - half).quantize(six, ROUND_FLOOR)
        high = min(Decimal(1), centre + half).quantize(six, ROUND_CEILING)
    return str(low), str(high)


def wilson_of_answers(right: int, due: int, prompts: int) -> tuple[str, str]:
    """The interval for `right` of `due` answers in so many prompts, with prompts as what is
    counted: answers of one prompt depend on each other. Prompts are taken to be asked equally
    often.

    Raises SizeError unless 0 <= right <= due, or where there are no prompts.
    """
    if not 0 <= right <= due:
        raise SizeError(f"{right} right of {due} answers: need 0 <= right <= due")
    return wilson(Fraction(right, due) * prompts if due else 0, prompts)
