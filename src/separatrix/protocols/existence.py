"""Whether a line protocol of some sizes answers every prompt right: found, and returned as one
that runs, or shown not to exist.
"""

from __future__ import annotations

from collections.abc import Iterator

from separatrix.protocols.one_reading import OneReading, OneReadingSizes
from separatrix.protocols.satisfy import Unknown, UnknownTables, satisfy
from separatrix.protocols.two_readings import TwoReadings, TwoReadingsSizes

RENAMED_ONE = ("first", "carried", "early", "entry reads", "z_0 reads", "w reads")
"""Whoever is told one of these knows what else its sender's names may depend on: `first` and B
tell `carried`, and so on.
"""
RENAMED_TWO = ("first", "carried", "early", "entry reads", "z_0 reads", "w reads", "w reads again")
"""The same; not `gathered`, whose reader does not know B."""


def find_one_reading(sizes: OneReadingSizes) -> OneReading[int] | None:
    """A protocol of Theorem III that is right on every prompt of the cut, or None if there is
    none. Sizes must be tiny: N_1 up to 3 or so.
    """

    def run(tables: UnknownTables) -> Iterator[tuple[Unknown, int]]:
        line = OneReading(sizes, tables)
        return ((line.run(tokens).answer, right) for tokens, right in sizes.prompts())

    tables = satisfy(run, interchangeable=RENAMED_ONE)
    return None if tables is None else OneReading(sizes, tables)


def find_two_readings(sizes: TwoReadingsSizes) -> TwoReadings[int] | None:
    """A protocol of Theorem IV that is right on every prompt of the cut, or None if there is
    none. Sizes must be tiny: N_1 up to 3 or so.
    """

    def run(tables: UnknownTables) -> Iterator[tuple[Unknown, int]]:
        line = TwoReadings(sizes, tables)
        return ((line.run(tokens).answer, right) for tokens, right in sizes.prompts())

    tables = satisfy(run, interchangeable=RENAMED_TWO)
    return None if tables is None else TwoReadings(sizes, tables)
