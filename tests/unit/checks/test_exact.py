"""Products and sums of weights that need no rounding, and refusal of those that do: borders by
hand.
"""

from __future__ import annotations

import numpy as np
import pytest

from separatrix.checks.exact import exact_product, exact_sum, lowest_bit
from separatrix.errors import CheckFailed

FINE = 2.0**-30


def test_the_lowest_bit() -> None:
    assert [lowest_bit(np.array([x])) for x in (1.0, 3.0, 4.0, 0.75, -FINE)] == [0, 0, 2, -2, -30]
    assert lowest_bit(np.array([4.0, 0.0, 0.5])) == -1
    assert lowest_bit(np.zeros(2)) == 0


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([[1.0, 1.0]], [[1.0], [FINE]]),  # 1 + 2^-30 has 31 bits, float32 holds 24
        ([[1.0, FINE]], [[1.0], [1.0]]),
        ([[1.0 + 2.0**-20]], [[1.0 + 2.0**-20]]),  # 41 bits
        ([[2.0**23, 2.0**23, 1.0]], [[1.0], [1.0], [1.0]]),  # 2^24 + 1
    ],
)
def test_a_product_that_float32_would_round(
    left: list[list[float]], right: list[list[float]]
) -> None:
    with pytest.raises(CheckFailed, match="more than 24 bits"):
        exact_product(np.array(left), np.array(right), bits=24)
    assert exact_product(np.array(left), np.array(right)) == np.array(left) @ np.array(
        right
    )  # float64 holds them all


def test_a_product_at_the_border() -> None:
    """2^22 + 2^22 = 2^23 in steps of 1/2: 24 bits and not one more. In steps of 1/4 the bound,
    2^23, is over 2^22.
    """
    ones = np.array([[1.0], [1.0]])
    assert exact_product(np.array([[2.0**22, 0.5]]), ones, bits=24) == 2.0**22 + 0.5
    with pytest.raises(CheckFailed):
        exact_product(np.array([[2.0**22, 0.25]]), ones, bits=24)


def test_sums() -> None:
    one = np.array([1.0])
    assert exact_sum(one, one * 2.0**-51) == 1 + 2.0**-51
    with pytest.raises(CheckFailed, match="more than 53 bits"):
        exact_sum(one, one * 2.0**-54)
