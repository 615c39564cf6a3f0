"""Scores that are sums over views: every number of a query and of a key is told by one of several
things that are known of their tokens, and both by the same one.

    <q_1[a] + q_2[b] + ..., k_1[c] + k_2[d] + ...> = S_1[a, c] + S_2[b, d] + ...

So what a key leads by is bounded view by view, whatever the others say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.proofs.derivations.parts.queries import Lead, Queries, Wanted
from separatrix.proofs.machine import Enclosure, Scores, stacked


@dataclass(frozen=True)
class Compared:
    """Rows of queries and of keys, view by view, each 0 in what another view tells better."""

    queries: Sequence[Enclosure]
    keys: Sequence[Enclosure]
    others: Sequence[Enclosure]
    """Keys that are whole in one row."""
    what: str

    @classmethod
    def of(
        cls,
        queries: Sequence[Enclosure],
        keys: Sequence[Enclosure],
        where: str,
        *others: Enclosure,
        pairs: int = 0,
    ) -> Compared:
        """Rows that hold, in each view, whatever the other views leave open. `pairs`: so many
        numbers are turned together with as many behind them, so that one view tells both.
        """
        rest = np.max([0 * keys[0].size[0], *(rows.size.max(0) for rows in others)], 0)
        loose = np.array(
            [
                q.rad.max(0) * np.maximum(k.size.max(0), rest) + q.size.max(0) * k.rad.max(0)
                for q, k in zip(queries, keys, strict=True)
            ]
        )
        loose[:, :pairs] += loose[:, pairs : 2 * pairs]
        loose[:, pairs : 2 * pairs] = loose[:, :pairs]
        teller = loose.argmin(0)
        of_queries, of_keys = (
            [rows.only(teller == view) for view, rows in enumerate(views)]
            for views in (queries, keys)
        )
        return cls(of_queries, of_keys, others, f"{where}, scores")

    @cached_property
    def _scores(self) -> Scores:
        used = np.any([rows.used for rows in self.queries], 0)
        return Scores(stacked(*self.keys, *self.others), used, self.what).of(*self.queries)

    @property
    def terms(self) -> int:
        """Products of a score."""
        return self._scores.terms

    @cached_property
    def error(self) -> float:
        """How far a computed score may be off."""
        return sum(float(self._scores.errors(rows).max()) for rows in self.queries)

    def own(self, view: int, keys: slice = slice(None)) -> float:
        """By how much the key of a query's own row, of these rows of keys, leads over the others of
        them, at least.
        """
        of_keys = self.keys[view].rows(keys)
        if len(of_keys.mid) == 1:
            return np.inf
        own = Wanted.each("", np.arange(len(of_keys.mid)))
        queries = self.queries[view]
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
