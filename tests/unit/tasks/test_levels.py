"""How often the most frequent value of a uniform function is right: by hand, by listing all
functions, and bounds that stay above.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from support.each import each

from separatrix.tasks.base.levels import share_of_a_composed_mode, share_of_the_mode


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


@each("m, n", [(2, 1), (3, 1), (2, 2), (2, 3)])
def test_the_mode_of_a_composition_by_all_functions(m: int, n: int) -> None:
    """f_1: [m] -> [m], then a row f_2: [m] -> [n m]: a bound from above, exact where no two values
    have more than t < m/2 arguments each, as for m = 2.
    """
    shares = [
        Fraction(max(composed.count(v) for v in composed), m)
        for first in itertools.product(range(m), repeat=m)
        for row in itertools.product(range(n * m), repeat=m)
        for composed in [[row[i] for i in first]]
    ]
    exact = sum(shares) / len(shares)
    bound = share_of_a_composed_mode((m, m), (m, n * m))
    assert exact <= bound < exact + Fraction(1, 40)
    assert m > 2 or bound - exact < Fraction(1, 1 << 150)


def test_long_compositions_stay_above_what_is_drawn() -> None:
    """600 values, where the bound is that of two arguments that agree: 400 functions drawn."""
    rng = np.random.default_rng(1)
    drawn = rng.integers(600, size=(400, 3, 600))
    composed = np.stack([c[b[a]] for a, b, c in drawn])
    shares = [np.bincount(row).max() / 600 for row in composed]
    bound = float(share_of_a_composed_mode((600, 600, 600), (600, 600, 600)))
    assert np.mean(shares) < bound < 0.1
