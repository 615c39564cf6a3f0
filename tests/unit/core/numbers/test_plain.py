"""What needs NumPy elsewhere, without it: the same numbers, bit for bit."""

from __future__ import annotations

from array import array

import pytest

from separatrix.core.numbers import plain
from separatrix.core.numbers.rotary import Rotation
from separatrix.core.numbers.selection import _largest, _largest_plain
from separatrix.core.numbers.turns import turns


def test_the_largest_product_of_each_row() -> None:
    # (1, 2) and (-3, 1) with (5, -1), (0, 4): 3, 8; -16, 4
    rows, columns = array("d", [1, 2, -3, 1]), array("d", [5, -1, 0, 4])
    assert plain.maxima(rows, columns, 2) == [8, 4]


def test_halves_are_rounded_to_the_even() -> None:
    assert list(plain.rounded(2, [0.25, 0.75, -0.75])) == [0, 2, -2]


@pytest.mark.parametrize(
    ("rotation", "block", "first"),
    [
        (Rotation(10_000, 8), 50, range(0, 50, 50)),
        (Rotation(1_000_000, 12), 300, range(600, 1_800, 300)),
        (Rotation(500_000, 64), 64, range(128, 64 * 9, 64)),
    ],
)
def test_leads_are_the_same(rotation: Rotation, block: int, first: range) -> None:
    with_numpy = turns(rotation.angles, first)
    parts = [[complex(*number) for number in row] for row in plain.turns(rotation.angles, first)]
    assert with_numpy.tolist() == parts
    assert _largest_plain(rotation, block, first) == _largest(rotation, block, first)
