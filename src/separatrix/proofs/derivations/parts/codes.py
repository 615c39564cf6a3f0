"""Leads of keys that are codes, without the table of every query against every key.

A key is a code where each of its dimensions takes one of two values, low or high, and no two keys
that are asked for agree in all of them. Where the right key holds, in every dimension, the value
that the query likes better, each term of its score is the largest there is: a rival that differs in
dimension i lacks at least |q_i| (high_i - low_i). So over all rivals

    lead >= min over i of |q_i| (high_i - low_i),

which the key that differs in that dimension alone attains, where there is one. Keys that no query
asks for, such as that of the last token, score at most the sum of the better of their extremes in
each dimension; a few of them are scored one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.proofs.machine import Array

_FEW = 64
"""Keys never asked for that are scored one by one."""
_MOST_DIMENSIONS = 62
"""Bits of one integer that tells keys apart."""


@dataclass(frozen=True)
class Codes:
    """Keys (m, d) by the two values, low and high, of each dimension of those asked for."""

    keys: Array
    low: Array
    high: Array
    apart: NDArray[np.int64]
    """The dimensions that tell the keys asked for apart."""
    others: Array
    """Keys never asked for, where they are few."""
    least: Array
    most: Array
    """Extremes of each dimension over the keys never asked for."""

    @classmethod
    def of(cls, keys: Array, asked: NDArray[np.bool_], used: NDArray[np.bool_]) -> Codes | None:
        """The codes of the keys asked for, told apart in the dimensions used; None where they are
        none.
        """
        ours = keys[asked]
        low = ours.min(0)
        high = ours.max(0)
        upper = ours == high
        apart = np.flatnonzero(used & (low != high))
        if not (upper | (ours == low)).all() or len(apart) > _MOST_DIMENSIONS:
            return None
        numbers = upper[:, apart] @ (1 << np.arange(len(apart), dtype=np.int64))
        numbers.sort()
        if (numbers[1:] == numbers[:-1]).any():
            return None
        rest = keys[~asked]
        few = rest if len(rest) <= _FEW else rest[:0]
        return cls(keys, low, high, apart, few, _least(rest), -_least(-rest))

    def leads(self, queries: Array, right: NDArray[np.int64]) -> Array | None:
        """A lower bound of each query's lead of its right key, by number, over all others; None
        where some right key does not hold what its query likes best.

        Centres are float64, whose rounding the errors of scores cover.
        """
        own = self.keys[right]
        best = np.where(queries > 0, self.high, self.low)
        if ((own != best) & (queries != 0)).any():
            return None
        losses = np.abs(queries[:, self.apart]) * (self.high - self.low)[self.apart]
        lead = losses.min(1, initial=np.inf)
        score = (queries * own).sum(1)
        if len(self.others):
            return np.minimum(lead, score - (queries @ self.others.T).max(1))
        if np.isfinite(self.most).all():
            rival = np.where(queries > 0, queries * self.most, queries * self.least).sum(1)
            return np.minimum(lead, score - rival)
        return lead


def _least(rows: Array) -> Array:
    return rows.min(0, initial=np.inf)
