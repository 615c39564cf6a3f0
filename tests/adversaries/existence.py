"""Whether a protocol of some sizes answers every prompt right: found, and returned as one
that runs, or shown not to exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from adversaries.satisfy import Unknown, UnknownTables, satisfy
from adversaries.two_readings import TwoReadings, TwoReadingsSizes
from separatrix.protocols.block_messages import BlockMessages, BlockMessageSizes
from separatrix.protocols.fixed_query import Answers, FixedQuery
from separatrix.protocols.one_reading import OneReading, OneReadingSizes

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


def find_block_messages(sizes: BlockMessageSizes) -> BlockMessages[int] | None:
    """A protocol that is right on every prompt, or None if there is none, by search over all of
    them.
    """
    unknown = UnknownTables(interchangeable=("message",))
    line: BlockMessages[Unknown] = BlockMessages(sizes, unknown)
    for blocks, query in product(product(sizes.contents, repeat=sizes.T), range(sizes.N)):
        messages = line.messages(blocks)
        opened = line.opened(messages, query)
        wrong = 1 - any(query in block for block in blocks)
        for opening, literal in enumerate(opened):
            # if this opening is chosen, the answer after it must not be the wrong one
            unknown.forbid([literal, line.answer(messages, query, opening, blocks)[wrong]])
    tables = unknown.solve()
    return None if tables is None else BlockMessages(sizes, tables)


def find_fixed_query(answers: Answers, reads: int) -> FixedQuery[int] | None:
    """A protocol with so many values to read that is right on every (A, B), or None if there is
    none.
    """
    size = 1 + max(answers.values())

    def run(tables: UnknownTables) -> Iterator[tuple[Unknown, int]]:
        line = FixedQuery(reads, size, tables)
        return ((line.run(A, B), right) for (A, B), right in answers.items())

    tables = satisfy(run, interchangeable=("reads",))
    return None if tables is None else FixedQuery(reads, size, tables)
