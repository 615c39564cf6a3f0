"""Permutations as tokens: all those of k things, or the even ones, and how they multiply."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import factorial

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.task import Tokens

MOST_THINGS = 6
"""Largest k: the table of all products of two permutations has (k!)^2 entries."""


@dataclass(frozen=True)
class Arrangements:
    """The permutations p of 0..k-1, or the even ones, in lexicographic order of (p(0), ...,
    p(k-1)). Id r is the r-th of them, counted from 0; the one read first acts first.
    """

    k: int
    even: bool

    @cached_property
    def rows(self) -> Tokens:
        """(order, k): row r is permutation r."""
        every = itertools.permutations(range(self.k))
        return np.array([p for p in every if not (self.even and _inversions(p) % 2)], np.int64)

    @property
    def order(self) -> int:
        return factorial(self.k) // (2 if self.even and self.k > 1 else 1)

    def ids(self, permutations: Tokens) -> Tokens:
        """The ids of permutations (..., k), which must be among these."""
        # as digits to base k, the first one highest, they stand in the order of the numbers
        base = self.k ** np.arange(self.k)[::-1]
        return np.searchsorted(self.rows @ base, permutations @ base)

    @cached_property
    def table(self) -> Tokens:
        """(order^2,): entry a order + b is the id of b o a, a acting first."""
        return np.concatenate([self.ids(self.rows[:, first]) for first in self.rows])

    def product(self, tokens: Tokens) -> Tokens:
        """The products of rows (batch, n) of ids.

        Neighbours are multiplied, then the products of neighbours, and so on: all pairs of all rows
        at once.
        """
        while tokens.shape[1] > 1:
            even = tokens.shape[1] // 2 * 2
            pairs = self.table.take(tokens[:, 0:even:2] * self.order + tokens[:, 1:even:2])
            tokens = np.concatenate((pairs, tokens[:, even:]), axis=1)
        return tokens[:, 0]

    def chain(self, tokens: Tokens) -> Tokens:
        """(batch, n): the products of the first 1, 2, ..., n ids of each row."""
        chain = np.empty_like(tokens)
        chain[:, 0] = state = tokens[:, 0]
        for place in range(1, tokens.shape[1]):
            chain[:, place] = state = self.table[state * self.order + tokens[:, place]]
        return chain

    def word(self, token: int) -> str:
        return f"[{','.join(map(str, self.rows[token].tolist()))}]"

    @property
    def spelling(self) -> str:
        return f"A permutation p is written as the arrangement [p(0),...,p({self.k - 1})]."

    @property
    def reply(self) -> tuple[str, int]:
        return "arrangement", self.k


@lru_cache
def arrangements(k: int, *, even: bool = False) -> Arrangements:
    """The permutations of k things, or the even ones. Their tables are made once."""
    return Arrangements(k, even)


def _inversions(p: tuple[int, ...]) -> int:
    return sum(one > other for one, other in itertools.combinations(p, 2))
