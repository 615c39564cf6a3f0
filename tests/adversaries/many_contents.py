"""What may stand behind a prefix in the proofs of Theorems VI and VII: the contents that they
choose, in the ways in which they count them. Source: theory.md, section 11.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from adversaries.classes_of_z_1 import Spread
from adversaries.many_readings import ManyReadingsSizes
from adversaries.prices import Prices
from separatrix.protocols.one_reading import Entries

Content = tuple[Entries, ...]
"""The parts of a prompt behind a prefix."""


class Contents:
    """Z_1 and T of each group of w_2, then Z_2, Z_3, ..., as far as they are chosen."""

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.sizes: ManyReadingsSizes = prices.sizes
        self.spreads: list[Spread] = []
        self.chosen: dict[int, tuple[Entries, ...]] = {}
        """Z_2, Z_3, ..."""

    def all(self, level: int, *, ws: int | None = None) -> Iterator[Content]:
        """Lambda_level; at most `ws` of the w of a group."""
        return (content for _, content, _ in self.asked(level, ws))

    def asked(self, level: int, ws: int | None = None) -> Iterator[tuple[int, Content, int]]:
        """The same with the group of w_2 and with the place of z_level that a content asks for
        (of the answer, for the first level behind them).
        """
        for gamma, spread in enumerate(self.spreads):
            for higher in self._functions(level):
                for z_1, place in product(spread.contents, spread.places):
                    for w in self.ws(gamma)[:ws]:
                        content = (*higher, z_1, *self.tail(place, w))
                        yield gamma, content, self._place(content, level)

    def points(self, level: int) -> list[tuple[int, int]]:
        """The places of z_level that matter, with the group of w_2 (0 from level 3 on)."""
        found = ((gamma if level == 2 else 0, at) for gamma, _, at in self.asked(level))
        return list(dict.fromkeys(found))

    def lower(self, level: int, *, joined: bool) -> Iterator[tuple[list[Content], int, int]]:
        """Every token of z_{level-1}, ..., z_1, z_0 with the contents up to it: contents that
        hold it, its part and its place there; joined as in `of_z_0`.
        """
        after = next(self.several())
        for i in range(level - 1, 1, -1):
            lowest = next(self._functions(i), ())
            for higher in self._functions(level, i):
                for place in range(len(higher[-1])):
                    yield [(*higher, *lowest, *after)], len(higher) - 1, place
        for higher in self._functions(level):
            for content in self.several():
                for i in range(self.sizes.t):
                    yield [(*higher, *content)], len(higher), i
            for ends in self.of_z_0(joined=joined):
                yield [(*higher, *one) for one in ends], len(higher) + 1, 0

    def several(self) -> Iterator[Content]:
        """A content behind P_2 for each z_1 of each group."""
        for gamma, spread in enumerate(self.spreads):
            for z_1 in spread.contents:
                yield (z_1, *self.tail(spread.places[0], self.ws(gamma)[0]))

    def of_z_0(self, *, joined: bool) -> Iterator[list[Content]]:
        """For each z_0 of each group, contents that end with it, one by one for each z_1; joined:
        all z_1 of the group at once.
        """
        for gamma, spread in enumerate(self.spreads):
            w = self.ws(gamma)[0]
            for place in spread.places:
                ends = [(z_1, *self.tail(place, w)) for z_1 in spread.contents]
                yield from [ends] if joined else [[one] for one in ends]

    def any(self, place: int = 0, w: int = 0) -> Content:
        """Some content behind P_2, for a query that knows its own token only."""
        z_1 = self.spreads[0].contents[0] if self.spreads else (0,) * self.sizes.t
        return (z_1, *self.tail(place, w))

    def tail(self, place: int, w: int) -> tuple[Entries, Entries]:
        """z_0, a place among the last t of z_1, and w."""
        return (self.sizes.m - self.sizes.t + place,), (w,)

    def ws(self, gamma: int) -> list[int]:
        """The w of a group."""
        g = self.prices.g
        return [w for w in range(self.sizes.W) if self.sizes.digit(w, 2) // g == gamma]

    def part(self, level: int, z: Entries) -> Entries:
        """The part of the prompt that holds z_level: that of z_2 ends as z_1 begins."""
        return (*z, *self.sizes.lead) if level == 2 else z

    def _functions(self, level: int, lowest: int = 2) -> Iterator[Content]:
        """z_{level-1}, ..., z_lowest, of the contents that were chosen."""
        numbers = range(level - 1, lowest - 1, -1)
        for chosen in product(*(self.chosen[one] for one in numbers)):
            yield tuple(self.part(n, z) for n, z in zip(numbers, chosen, strict=True))

    def _place(self, content: Content, level: int) -> int:
        """Where in z_level the content's z_{level-1}, ..., z_1, z_0 and w lead."""
        sizes = self.sizes
        *functions, (z_0,), (w,) = content
        i = functions[-1][z_0 - len(sizes.lead)]
        for number in range(2, level):
            i = functions[-number][sizes.digit(w, number - 1) * sizes.N[number - 2] + i]
        return sizes.digit(w, level - 1) * sizes.N[level - 2] + i
