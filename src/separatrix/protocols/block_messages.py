"""The protocol of Theorem II: T blocks of B values send one message each; the last token, which
asks for a value, opens k of them.

Does some block hold the value? (2-Sum per query asks for the value that cancels the query.) What is
opened depends on the messages and the query only. Source: theory.md, sections 4 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb
from typing import Generic

from separatrix.core.errors import SizeError
from separatrix.protocols.tables import Tables, Value, written

Block = tuple[int, ...]
"""The values of a block, in order, each once: order and repeats are free to send but help
nobody.
"""


@dataclass(frozen=True, kw_only=True)
class BlockMessageSizes:
    """T blocks of B values out of N, k opened, `messages` = 2^c; `distinct`: the values inside a
    block differ.

    Raises SizeError unless N >= 2, 0 <= k <= T, and a block can lack a value: B < N where its
    values differ.
    """

    T: int
    B: int
    N: int
    k: int
    messages: int
    distinct: bool = False

    def __post_init__(self) -> None:
        if (
            self.N < 2
            or not 0 <= self.k <= self.T
            or min(self.T, self.B, self.messages) < 1
            or (self.distinct and self.B >= self.N)
        ):
            raise SizeError(
                "blocks need N >= 2, 0 <= k <= T and T, B, messages >= 1, and B < N if values"
                f" differ; these are {self}"
            )

    @property
    def u1(self) -> int:
        """ceil(N (1 - k/T))."""
        return -(-self.N * (self.T - self.k) // self.T)

    def traces(self, u: int) -> int:
        """g(u): what blocks can leave on u given values (theory.md, section 4)."""
        least = max(0, self.B - (self.N - u)) if self.distinct else 0
        # no block is empty, so on all N values the empty trace does not occur
        return sum(comb(u, j) for j in range(least, min(u, self.B) + 1)) - (
            u == self.N and not self.distinct
        )

    @property
    def fails(self) -> bool:
        """Whether Theorem II says that no protocol is right on every prompt; it says that there
        is one otherwise.
        """
        return self.k < self.T and self.traces(self.u1) > self.messages

    @cached_property
    def contents(self) -> tuple[Block, ...]:
        """Every set of values that a block can hold."""
        least = self.B if self.distinct else 1
        return tuple(
            block for j in range(least, self.B + 1) for block in combinations(range(self.N), j)
        )

    @cached_property
    def openings(self) -> tuple[tuple[int, ...], ...]:
        """Every choice of k blocks."""
        return tuple(combinations(range(self.T), self.k))


class BlockMessages(Generic[Value]):
    """A protocol of these sizes with these message functions."""

    def __init__(self, sizes: BlockMessageSizes, tables: Tables[Value]) -> None:
        self.sizes = sizes
        self._tables = tables

    def messages(self, blocks: tuple[Block, ...]) -> tuple[Value, ...]:
        """One message per block."""
        return tuple(
            self._tables("message", (place, block), (), self.sizes.messages)
            for place, block in enumerate(blocks)
        )

    def opened(self, messages: tuple[Value, ...], query: int) -> Value:
        """The number of the opening, an index of `sizes.openings`."""
        return self._tables("opened", query, messages, len(self.sizes.openings))

    def answer(
        self, messages: tuple[Value, ...], query: int, opening: int, blocks: tuple[Block, ...]
    ) -> Value:
        """1 for yes, given an opening."""
        seen = tuple(blocks[place] for place in self.sizes.openings[opening])
        return self._tables("answer", (query, opening, seen), messages, 2)


def respond(line: BlockMessages[int], blocks: tuple[Block, ...], query: int) -> int:
    """A protocol's answer to a prompt."""
    messages = line.messages(blocks)
    return line.answer(messages, query, line.opened(messages, query), blocks)


def cyclic(sizes: BlockMessageSizes) -> BlockMessages[int]:
    """The theorem's own protocol: block b's message tells its values among u1 that start at b u1,
    round the N values; blocks that do not tell about the query are opened. Right on every prompt
    where the theorem does not say that all fail.
    """
    clear = [
        frozenset((place * sizes.u1 + i) % sizes.N for i in range(sizes.u1))
        for place in range(sizes.T)
    ]
    traces = [
        sorted({tuple(v for v in block if v in known) for block in sizes.contents})
        for known in clear
    ]

    def message(known: tuple[int, Block]) -> int:
        place, block = known
        return traces[place].index(tuple(v for v in block if v in clear[place]))

    def opened(query: int, *messages: int) -> int:
        # at most k blocks (theory.md, section 4): each value is clear for at least T - k of them
        unclear = [place for place in range(sizes.T) if query not in clear[place]]
        rest = [place for place in range(sizes.T) if query in clear[place]]
        return sizes.openings.index(tuple(sorted((unclear + rest)[: sizes.k])))

    def answer(known: tuple[int, int, tuple[Block, ...]], *messages: int) -> int:
        query, _, seen = known
        told = any(
            query in traces[place][message]
            for place, message in enumerate(messages)
            if message < len(traces[place])
        )
        return int(told or any(query in block for block in seen))

    return BlockMessages(sizes, written({"message": message, "opened": opened, "answer": answer}))


def every_prompt(sizes: BlockMessageSizes) -> Iterator[tuple[tuple[Block, ...], int, int]]:
    """All (blocks, query, right answer)."""
    for blocks, query in product(product(sizes.contents, repeat=sizes.T), range(sizes.N)):
        yield blocks, query, int(any(query in block for block in blocks))
