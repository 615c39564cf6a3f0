"""Shares with their intervals, and chance, as tables have them."""

from __future__ import annotations

from fractions import Fraction

from separatrix.core.document.cells import guessed, interval, share


def test_intervals_are_rounded_outward() -> None:
    # Wilson at one half: 0.5 -+ z / (2 sqrt(n + z^2)), z = 1.96: 0.02164 for n = 2,048
    assert interval(1024, 2048, 2048) == "47.8 to 52.2 %"
    # all right: from n / (n + z^2) = 0.99813 on
    assert interval(2048, 2048, 2048) == "99.8 to 100.0 %"
    assert interval(0, 2048, 2048) == "0.0 to 0.2 %"
    # four answers a prompt: as wide as of the prompts alone
    assert interval(4096, 8192, 2048) == "47.8 to 52.2 %"
    told = share(4096, 8192, 2048)
    assert told.startswith("50.0 % (4,096 of 8,192; ")
    assert told.endswith("prompts 47.8 to 52.2 %)")


def test_chance() -> None:
    assert guessed(Fraction(1, 16)) == "6.2 %"
