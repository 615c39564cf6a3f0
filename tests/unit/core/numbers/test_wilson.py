from fractions import Fraction

import pytest
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.core.numbers.wilson import wilson, wilson_of_answers


@pytest.mark.parametrize(
    ("correct", "total", "low", "high"),
    [
        (8, 10, 0.4901625, 0.9433178),  # Brown, Cai, DasGupta 2001: the textbook case of 8 of 10
        (0, 10, 0.0, 0.2775328),  # z^2 / (n + z^2)
        (10, 10, 0.7224672, 1.0),
    ],
)
def test_textbook_values(correct: int, total: int, low: float, high: float) -> None:
    found = wilson(correct, total)
    assert abs(float(found[0]) - low) < 2e-6
    assert abs(float(found[1]) - high) < 2e-6


@each("correct", [0, 1, 7, 50, 99, 100])
def test_ends_solve_the_score_equation(correct: int) -> None:
    """(share - p)^2 = z^2 p (1 - p) / n at both ends, up to the outward rounding of 1e-6."""
    share = Fraction(correct, 100)
    z2 = Fraction(1.959963984540054) ** 2
    for end, outward in zip(wilson(correct, 100), (1, -1), strict=True):
        p = Fraction(end)
        inner = p + outward * Fraction(2, 10**6)
        excess = [(share - x) ** 2 - z2 * x * (1 - x) / 100 for x in (p, inner)]
        assert excess[0] >= -Fraction(1, 10**12)
        assert excess[1] < 0


@pytest.mark.parametrize(("correct", "total"), [(1, 0), (-1, 5), (6, 5)])
def test_bad_counts(correct: int, total: int) -> None:
    with pytest.raises(SizeError, match="right of"):
        wilson(correct, total)


def test_shares_of_prompts_count_as_prompts() -> None:
    """400 of 1,000 answers right in 250 prompts are as 100 prompts of 250; a half is no prompt."""
    assert wilson(Fraction(400, 1000) * 250, 250) == wilson(100, 250)
    low, high = (Fraction(end) for end in wilson(Fraction(1, 2), 1))
    # by hand: the centre is 1/2 and the half width z sqrt(1/4 + z^2/4) / (1 + z^2), z^2 = 3.841459
    assert low + high == 1
    assert abs(high - low - Fraction("0.890758")) < Fraction(1, 10**5)


def test_answers_of_a_prompt_count_as_one() -> None:
    assert wilson_of_answers(80, 100, 10) == wilson(8, 10)
    assert wilson_of_answers(7, 10, 10) == wilson(7, 10)
    # no answer was due
    assert wilson_of_answers(0, 0, 10) == wilson(0, 10)
    # 3 of 7 answers in 10 prompts is no whole number of prompts; it lies between two
    low, high = (float(end) for end in wilson_of_answers(3, 7, 10))
    assert float(wilson(4, 10)[0]) < low < float(wilson(5, 10)[0])
    assert float(wilson(4, 10)[1]) < high < float(wilson(5, 10)[1])
    for right, due, prompts in ((2, 1, 5), (-1, 4, 5), (1, 2, 0)):
        with pytest.raises(SizeError):
            wilson_of_answers(right, due, prompts)
