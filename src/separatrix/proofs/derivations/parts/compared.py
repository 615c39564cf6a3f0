"""Scores that are sums over tables: a query is the sum of a row of each of its tables, a key of a
row of each of its own, and what one table writes is compared with what its fellow writes alone.

    <q_1[a] + q_2[b] + ..., k_1[c] + k_2[d] + ...> = S_1[a, c] + S_2[b, d] + ...

So what a key leads by is bounded table by table, whatever stands in the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.queries import Lead, Queries, Wanted
from separatrix.proofs.machine import Array, Enclosure, Scores, limited, lowest_bits, whole


def exactly(
    tables: Sequence[Array], weight: Array, what: str, arithmetic: Arithmetic
) -> list[Array]:
    """W x for the rows of several tables, of which one each is added up before. Raises CheckFailed
    where W of such a sum may be rounded, whatever the order of its terms.
    """
    largest = sum((np.abs(rows).max(0) for rows in tables), np.zeros(weight.shape[1]))
    used = (weight != 0.0) & (largest != 0.0)
    each = np.min([lowest_bits(rows).min(0) for rows in tables], axis=0)
    lowest = np.where(used, lowest_bits(weight) + each, 1 << 20).min(1)
    most = np.abs(weight) @ largest
    limited(most, what, arithmetic, summed=True)
    digits = arithmetic.summed_digits
    room = np.ldexp(1.0, np.clip(digits + lowest, -1000, 1000).astype(np.int64))
    normal = (lowest >= arithmetic.summed_smallest).all()
    found = [rows @ weight.T for rows in tables]
    exact = all(whole(rows, weight.T) for rows in tables)
    held = normal and all(arithmetic.held(numbers).all() for numbers in found)
    if not exact or not held or (most > room).any():
        raise CheckFailed(f"{what}: a number may be rounded")
    return found


def apart(tables: Sequence[Array], weight: Array, what: str, arithmetic: Arithmetic) -> list[Array]:
    """The same where no number that W reads or gives is made of rows of two tables."""
    found = exactly(tables, weight, what, arithmetic)
    read = (weight != 0.0).any(0)
    pairs = [*combinations([rows * read for rows in tables], 2), *combinations(found, 2)]
    if any(_meet(*pair) for pair in pairs):
        raise CheckFailed(f"{what}: a number is made of rows of two tables")
    return found


def _meet(one: Array, other: Array) -> bool:
    """Whether two tables have a column in which neither is 0."""
    return bool((one.any(0) & other.any(0)).any())


@dataclass(frozen=True)
class Compared:
    """Rows of queries and of keys, table by table, and how far a computed score may be off."""

    queries: Sequence[Array]
    keys: Sequence[Array]
    terms: int
    """Products of a score."""
    error: float
    arithmetic: Arithmetic
    what: str

    @classmethod
    def of(
        cls,
        queries: Sequence[Array],
        keys: Sequence[Array],
        arithmetic: Arithmetic,
        where: str,
        *others: Array,
    ) -> Compared:
        """`others`: keys that are no such sums. Raises CheckFailed where a table of queries is
        compared with another table of keys than its fellow.
        """
        what = f"{where}, scores"
        if any(_meet(queries[i], keys[j]) for i, j in permutations(range(len(keys)), 2)):
            raise CheckFailed(f"{what}: two different things are compared")
        asking = [Enclosure.point(rows, arithmetic) for rows in queries]
        used = np.any([rows.used for rows in asking], 0)
        every = Enclosure.point(np.concatenate([*keys, *others]), arithmetic)
        scores = Scores(every, used, what).of(*asking)
        error = sum(float(scores.errors(rows).max()) for rows in asking)
        return cls(queries, keys, scores.terms, error, arithmetic, what)

    def own(self, table: int, keys: slice = slice(None)) -> float:
        """By how much the key of a query's own row, of these rows of keys, leads over the others of
        them, at least.
        """
        queries, of_keys = (
            Enclosure.point(rows, self.arithmetic)
            for rows in (self.queries[table], self.keys[table][keys])
        )
        if len(of_keys.mid) == 1:
            return np.inf
        own = Wanted.each("", np.arange(len(of_keys.mid)))
        found = Queries.alone(queries).lead(Scores(of_keys, queries.used, self.what), own)
        assert found is not None
        return found.gap

    def least(self, gaps: Iterable[float], wins: str) -> Lead:
        """The smallest of these leads, each a difference of two scores. Raises CheckFailed where
        rounding may leave none.
        """
        return least_of(gaps, self.error, wins, self.what)


def least_of(gaps: Iterable[float], error: float, wins: str, where: str) -> Lead:
    """The same of scores that are each off by no more than the error."""
    gap = min(gaps)
    least = gap - 2 * error * (1 + 2.0**-40)
    if not least > 0:
        how = "may score, by rounding," if gap > 0 else "scores"
        raise CheckFailed(f"{where}: for some query another key {how} no less than {wins}")
    return Lead(gap, error, least)
