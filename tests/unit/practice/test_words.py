"""Accuracies and distances in words: rounded so that nothing sounds better than it is."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction

import pytest
from support.practice_tables import diverged, row, trial

from separatrix.numbers.wilson import wilson
from separatrix.practice.words import about, about_at_most, beyond, decimal, interval, times


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Fraction(0), "0.00"),
        (Fraction(1), "1.00"),
        (Fraction(998, 1000), "0.998"),
        (Fraction(99_999, 100_000), "0.99999"),
        (Fraction(1, 3), "0.33"),
        (Fraction(1, 120), "0.01"),
        (Fraction(1, 10**9), "almost 0"),
        (1 - Fraction(1, 10**9), "almost 1"),
    ],
)
def test_what_is_not_all_is_never_said_to_be(value: Fraction, said: str) -> None:
    assert decimal(value) == said


def test_intervals_are_rounded_outward() -> None:
    assert decimal(Fraction(1239, 1000), ROUND_FLOOR) == "1.23"
    assert decimal(Fraction(991, 1000), ROUND_CEILING) == "1.00"


def test_the_interval_is_of_the_seeds_in_the_middle() -> None:
    odd = row({}, {1e-3: [trial(0, 900), trial(1, 100), trial(2, 500)]})
    low, high = wilson(125, 250)
    assert interval(odd) == (Fraction(low), Fraction(high))
    even = row({}, {1e-3: [trial(0, 900), diverged(1), trial(2, 500), trial(3, 600)]})
    assert interval(even) == (Fraction(low), Fraction(wilson(150, 250)[1]))


def test_distances_name_what_lies_beyond() -> None:
    assert beyond({"tokens": Fraction(4096), "layers": Fraction(3, 2)}) == (
        "4,000 x in tokens, 1.5 x in layers"
    )
    assert beyond({"tokens": Fraction(1), "layers": Fraction(1, 2)}) == ""
    assert times(Fraction(10**9)) == "1 G x"
    assert times(Fraction(2**20)) == "1,000,000 x"
    assert (about(7), about(98_321), about(101)) == (7, 98_000, 100)
    assert (about_at_most(7), about_at_most(98_321), about_at_most(100)) == (7, 99_000, 100)
