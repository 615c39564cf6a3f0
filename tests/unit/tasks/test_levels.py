"""How often the most frequent value of a uniform function is right: by hand, by listing all
functions, and bounds that stay above.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from support.each import each

from separatrix.tasks.base.levels import share_of_the_mode


def test_by_hand() -> None:
    """Two entries of two values are equal with probability 1/2; three agree with probability
    1/4, else two do.
    """
    assert share_of_the_mode(2, 2) == Fraction(3, 4)
    assert share_of_the_mode(3, 2) == (Fraction(1, 4) * 3 + Fraction(3, 4) * 2) / 3
    assert share_of_the_mode(1, 5) == 1


@each("n, V", [(2, 3), (4, 3), (5, 2), (6, 4), (3, 7)])
def test_by_all_functions(n: int, V: int) -> None:
    largest = [max(map(f.count, f)) for f in itertools.product(range(V), repeat=n)]
    assert share_of_the_mode(n, V) == Fraction(sum(largest), n * V**n)


@pytest.mark.parametrize("n", [129, 500, 5000])
def test_beyond_the_exact_sizes_it_is_a_bound(n: int) -> None:
    """Against 2,000 functions drawn: not below their mean, four standard errors taken off."""
    f = np.random.default_rng(0).integers(8, size=(2000, n))
    shares = (f[:, :, None] == np.arange(8)).sum(1).max(1) / n
    assert shares.mean() - 4 * shares.std() / 2000**0.5 <= share_of_the_mode(n, 8) <= 1
