"""Proves that a head finds the latest token of one's own letter in a block of places before one's
own, or the start token where there is none.

Of places p, j >= 1 and a binary digit b, j is in the block of p where p has 1 in digit b, j has 0,
and both agree above: floor(p / 2^b) is odd, and floor(j / 2^b) is one less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.live_parts import Head
from separatrix.proofs.derivations.parts.queries import error_of_sums
from separatrix.proofs.machine import (
    Array,
    Enclosure,
    limited,
    lowest_bits,
    whole,
)

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Latest:
    """The smallest lead of the key that wins over every other one, before rounding, and how far a
    computed score may be from what it is.
    """

    gap: float
    error: float

    @property
    def least(self) -> Fraction:
        """The lead of what is computed."""
        return Fraction(self.gap) - 2 * Fraction(self.error)


@dataclass(frozen=True)
class _Sides:
    """Keys or queries of a letter at a place: the sum of a row for the one and a row for the other,
    in different dimensions.
    """

    letters: Array
    places: Array

    @classmethod
    def of(
        cls, weight: Array, letters: Array, places: Array, what: str, arithmetic: Arithmetic
    ) -> _Sides:
        """Raises CheckFailed where they share a number, or one may be rounded."""
        if (letters.any(0) & places.any(0)).any():
            raise CheckFailed(f"{what}: letters and places are embedded in the same numbers")
        found = cls(*exactly((letters, places), weight, what, arithmetic))
        if (found.letters.any(0) & found.places.any(0)).any():
            raise CheckFailed(f"{what}: letters and places meet in one number")
        return found


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
    digits = arithmetic.summed_digits
    room = np.ldexp(1.0, np.clip(digits + lowest, -1000, 1000).astype(np.int64))
    normal = (lowest >= arithmetic.summed_smallest).all()
    found = [rows @ weight.T for rows in tables]
    exact = all(whole(rows, weight.T) for rows in tables)
    held = normal and all(arithmetic.held(numbers).all() for numbers in found)
    if not exact or not held or (np.abs(weight) @ largest > room).any():
        raise CheckFailed(f"{what}: a number may be rounded")
    return found


def latest_of_a_block(
    head: Head, letters: Array, places: Array, start: Enclosure, digit: int, where: str
) -> Latest:
    """The lead of a head, over every letter at every place, whatever stands elsewhere. `places` are
    embeddings of places 1, 2, ..., `start` is what the start token holds, one row without a radius.

    Raises CheckFailed, saying why, where another key may win for some query.
    """
    arithmetic = start.arithmetic
    q = _Sides.of(head.q, letters, places, f"{where}, q", arithmetic)
    k = _Sides.of(head.k, letters, places, f"{where}, k", arithmetic)
    first = exactly((start.mid,), head.k, f"{where}, k", arithmetic)[0][0]
    # alone with its own key, whose score need only be a number
    own = exactly((start.mid,), head.q, f"{where}, q", arithmetic)[0]
    limited(np.abs(own) @ np.abs(first), where, arithmetic, summed=True)
    for own, other in ((q.letters, k.places), (q.places, k.letters)):
        if (own.any(0) & other.any(0)).any():
            raise CheckFailed(f"{where}, scores: letters are compared with places")
    keyed = np.concatenate([k.letters, k.places, first[None]])
    error = error_of_sums(keyed, (q.letters, q.places), arithmetic, where)
    same = q.letters @ k.letters.T
    to_start = q.letters @ first
    match = np.diagonal(same)
    other = same.copy()
    np.fill_diagonal(other, -np.inf)
    # of letters: a match over the start token, and that over a wrong one, and over any
    over_start = float((match - to_start).min())
    start_over_wrong = float((to_start - other.max(1)).min())
    start_over_any = float((to_start - same.max(1)).min())

    block = np.arange(1, len(places) + 1) >> digit
    groups, rows = np.unique(block, return_index=True)
    if (q.places != q.places[rows][np.searchsorted(groups, block)]).any():
        raise CheckFailed(f"{where}, q: places of one block ask differently")
    gap = np.inf
    count = max(1, _CHUNK // len(places))
    for at in range(0, len(groups), count):
        group = groups[at : at + count]
        asked = q.places[rows[at : at + count]]
        table = asked @ k.places.T
        start_score = asked @ first
        inside = (block[None] == group[:, None] - 1) & (group[:, None] % 2 == 1)
        rise = np.diff(table, axis=1)[inside[:, 1:] & inside[:, :-1]]
        low = np.where(inside, table, np.inf).min(1)
        high = np.where(inside, table, -np.inf).max(1)
        outside = np.where(inside, -np.inf, table).max(1)
        gap = min(
            gap,
            # a later match over an earlier one; over wrong letters it leads through the start token
            float(rise.min(initial=np.inf)),
            float((low - start_score).min()) + over_start,
            float((start_score - high).min()) + start_over_wrong,
            float((start_score - outside).min()) + start_over_any,
        )
    found = Latest(gap, error)
    if found.least <= 0:
        raise CheckFailed(
            f"{where}: a head may read another key than the latest of its letter in its block, or"
            f" than the start token: the lead is {gap:g}, and rounding may take {2 * error:g}"
        )
    return found
