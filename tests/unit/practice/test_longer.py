"""Rows as their models were tested elsewhere: at last places, and on longer prompts."""

from __future__ import annotations

from fractions import Fraction

from support.practice_tables import diverged, row, trial

from separatrix.practice.longer import at_size, by_length
from separatrix.practice.table import Longer


def test_longer_prompts_are_medians_over_seeds() -> None:
    seeds = [
        trial(0, 1000, longer=(Longer("n=64", 0, 10, 40),)),
        trial(1, 1000, longer=(Longer("n=64", 0, 30, 40),)),
        diverged(2),
    ]
    found = by_length(row({}, {1e-3: seeds}, task="parity:n=32"))
    assert {length: one.median for length, one in found.items()} == {32: 1, 64: Fraction(1, 4)}


def test_last_places_stand_for_the_trained_length_and_choose_the_rate() -> None:
    def at(last: int, far: int) -> tuple[Longer, ...]:
        return (Longer("queries=8", 0, last, 40), Longer("n=64,queries=8", 0, far, 40))

    trained = row(
        {},
        {
            # the easy places make the first rate look better
            1e-3: [trial(0, 900, longer=at(20, 40))],
            3e-3: [trial(0, 800, longer=at(40, 10))],
        },
        task="parity:n=32,queries=all",
    )
    found = by_length(trained)
    assert {length: one.median for length, one in found.items()} == {32: 1, 64: Fraction(1, 4)}
    assert at_size(trained, "n=64,queries=8").median == 1


def test_a_row_that_was_tested_nowhere_else_stands_alone() -> None:
    one = row({}, {1e-3: [trial(0, 500)]}, task="parity:n=32")
    assert by_length(one) == {32: one}
