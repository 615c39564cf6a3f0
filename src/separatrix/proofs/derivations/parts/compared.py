"""Scores that are sums over views: every number of a query and of a key is told by one of several
things that are known of their tokens, and both by the same one.

    <q_1[a] + q_2[b] + ..., k_1[c] + k_2[d] + ...> = S_1[a, c] + S_2[b, d] + ...

So what a key leads by is bounded view by view, whatever the others say.

Scores of queries and keys whose places are not known, only how far apart they may be: the least
and the most that each can be, whatever stands between the two.

Of pairs q and k that turn by an angle t a score has |q| |k| cos(t + the angle from k to q): a
cosine over an arc. Keys take few values in a pair, so that the most of all scores is one product of
matrices: a number of the query for each value, and whether the key has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.core.numbers.rotary import Rotation
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.circle import turns_between
from separatrix.proofs.derivations.parts.queries import Lead, Queries, Wanted
from separatrix.proofs.machine import Array, Enclosure, Scores, stacked


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


MOST_VALUES = 64
"""Of the keys in one pair."""


class Told(NamedTuple):
    """Rows whose products are the scores of queries with keys, at the most; and the score of each
    query with the key in its own row, at the least.
    """

    queries: Array
    keys: Array
    own: Array


def at_any_distance(
    queries: Array, keys: Array, rotation: Rotation | None, most: int, arithmetic: Arithmetic
) -> Told:
    """Rows before they are turned, at most so many places apart. Raises CheckFailed for keys of
    too many values.
    """
    turned = 0 if rotation is None else rotation.dims
    still = slice(turned, None)
    found = [(queries[:, still], keys[:, still])]
    own = (queries[:, still] * keys[: len(queries), still]).sum(1)
    for pair in range(turned // 2):
        both = [pair, pair + turned // 2]
        x, y = queries[:, both].T
        if rotation is None or not (x.any() or y.any()) or not keys[:, both].any():
            continue
        values, which = np.unique(keys[:, both], axis=0, return_inverse=True)
        near = 0.0
        if len(values) > MOST_VALUES:
            # alike but for what float64 leaves of a norm
            near = float(np.ldexp(1.0, np.frexp(np.abs(keys[:, both]).max())[1] - 40))
            grid = np.rint(keys[:, both] / near) * near
            values, which = np.unique(grid, axis=0, return_inverse=True)
        if len(values) > MOST_VALUES:
            raise CheckFailed(f"keys that turn have {len(values):,} values in one pair")
        # a product with the conjugate
        real = np.outer(x, values[:, 0]) + np.outer(y, values[:, 1])
        other = np.outer(y, values[:, 0]) - np.outer(x, values[:, 1])
        low, high = _arc(real, other, pair, rotation, most, arithmetic)
        lost = near * (np.abs(x) + np.abs(y))[:, None]
        low, high = low - lost, high + lost
        found.append((high, np.eye(len(values))[which]))
        own += low[np.arange(len(x)), which[: len(x)]]
    columns = [np.concatenate(rows, 1) for rows in zip(*found, strict=True)]
    return Told(columns[0], columns[1], own)


def _arc(
    x: Array, y: Array, pair: int, rotation: Rotation, most: int, arithmetic: Arithmetic
) -> tuple[Array, Array]:
    """The least and the most of the first number of (x, y), turned by 0 to so many places."""
    turns, slow = turns_between(rotation, most, arithmetic)
    long = np.sqrt(x * x + y * y) * (1 + 2.0**-40)
    if not slow[pair]:
        return -long, long
    corners = [(x * cos[pair] - y * sin[pair], x * sin[pair] + y * cos[pair]) for cos, sin in turns]
    ends = [own for own, _ in corners]
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    for (own, other), (then, beside) in pairwise(corners):
        # within a right angle: where the other changes its sign, this one is as long as both
        crosses: NDArray[np.bool_] = other * beside <= 0
        low = np.where(crosses & (np.minimum(own, then) < 0), -long, low)
        high = np.where(crosses & (np.maximum(own, then) > 0), long, high)
    return low, high
