"""Every query that one hop of a chain can have, and the lead of the key it must read: from a table
of all scores, or from keys that are codes.

A key is a code where each of its dimensions takes one of two values, low or high, and no two keys
that are asked for agree in all of them. Where the right key holds, in every dimension, the value
that the query likes better, each term of its score is the largest there is: a rival that differs in
dimension i lacks at least |q_i| (high_i - low_i). So over all rivals

    lead >= min over i of |q_i| (high_i - low_i),

which the key that differs in that dimension alone attains, where there is one. Keys that no query
asks for, such as that of the last token, score at most the sum of the better of their extremes in
each dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.proofs.derivations.parts.live_parts import Head
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import Array, Enclosure, Scores

Places = NDArray[np.int64]
_CHUNK = 1 << 20
_ROWS = 1 << 14
"""Queries that are looked at together, at most."""
_TABLE = 1 << 24
"""Scores that are compared one by one, even where the keys are codes."""
_LOWEST = -(2.0**500)
"""Below any score."""
_MOST = 1 << 33
"""Most scores that are compared one by one: a minute or so."""


@dataclass(frozen=True)
class Wanted:
    """What the task asks of one hop: the place to read, given a part of the last token and what
    the hop before has fetched.
    """

    fetches: str
    values: int
    """Ids 0..values-1 may stand at the places read."""
    part: NDArray[np.int64]
    """For each last token, the part of it that decides."""
    place: Callable[[Any, Any], Any]
    """(part, value fetched before) -> position."""
    then: NDArray[np.int64] | None = None
    """The part of each last token that the hop after it asks with."""
    first: int = 0
    """The id of the first last token."""

    @classmethod
    def each(cls, fetches: str, places: Places) -> Wanted:
        """A place for each row of queries that stand alone."""
        return cls(fetches, 0, places, lambda row, _: places[row])


@dataclass(frozen=True)
class Lead:
    """The smallest lead of the right key over the others, over all queries."""

    gap: float
    """Before rounding: between centres."""
    error: float
    """How far a score may be from its centre, over all queries."""
    least: float
    """As computed: the smallest of gap less the errors of both scores, query by query."""
    rival: int = 0
    """The other key where it is smallest."""


class _Some(NamedTuple):
    """Some queries, their parts, and the keys that they ask for."""

    parts: Places
    queries: Enclosure
    keys: Places


@dataclass(frozen=True)
class Queries:
    """Every query of one hop: of each kind of last tokens, beside each value fetched before."""

    parts: Places
    """Of the last token, for each kind of them."""
    values: int
    """How many values may have been fetched before."""
    asked: Callable[[Places, Places], Enclosure]
    """Queries of these kinds beside these values, row by row."""
    every: Enclosure
    """One row: any query."""

    @classmethod
    def of(cls, head: Head, hop: Wanted, stream: Stream) -> Queries:
        """Last tokens of which queries read the same, and that ask for one place, count once."""
        at = np.array([len(stream.by_place.mid) - 1])
        first = np.arange(len(hop.part))
        # rows that differ in their part need not be sorted
        parts = np.sort(hop.part)
        if (parts[1:] == parts[:-1]).any():
            last = stream.last.columns((head.q != 0.0).any(0))
            table = np.concatenate([last.mid, last.rad, hop.part[:, None]], 1)
            _, first = np.unique(table, axis=0, return_index=True)
        values = len(stream.field.mid) // len(stream.parts)
        start = np.zeros(len(first), np.int64)
        if len(stream.parts) > 1:
            start = np.searchsorted(stream.parts, hop.part[first]) * values

        def asked(kind: Places, value: Places) -> Enclosure:
            return head.asked(stream.beside(first[kind], start[kind] + value), at)

        return cls(hop.part[first], values, asked, head.asked(stream.at_last(), at))

    @classmethod
    def alone(cls, rows: Enclosure) -> Queries:
        """A query for each row, which is its own part, where nothing was fetched before."""
        return cls(np.arange(len(rows.mid)), 1, lambda row, _: rows.rows(row), rows.hull())

    @property
    def count(self) -> int:
        return len(self.parts) * self.values

    @property
    def used(self) -> NDArray[np.bool_]:
        """Dimensions in which some query may not be 0."""
        return self.every.used

    def lead(self, scores: Scores, hop: Wanted, *, causal: bool = False) -> Lead | None:
        """The smallest lead of the key that holds the place asked for (-1: none is asked for); None
        where no query asks. Where there are very many scores the keys must be codes: CheckFailed
        otherwise. `causal`: parts are the places of queries, which see no key behind their own.
        """
        keys = len(scores.keys.mid)
        if self.count * keys > _TABLE:
            found = self._by_codes(scores, hop)
            if found is not None:
                return found
        if self.count * keys > _MOST:
            raise CheckFailed(
                f"{scores.what}: {self.count:,} queries of {keys:,} keys are too many to compare"
                " one by one, and the keys are no codes"
            )

        def leads(some: _Some, more: Array | float = 0.0) -> Array:
            table = scores.centres(some.queries) + more
            row = np.arange(len(table))
            right = table[row, some.keys]
            table[row, some.keys] = -np.inf
            if causal:
                table[np.arange(keys) > some.parts[:, None]] = -np.inf
            # a key that is seen alone leads by more than any score
            return right - table.max(1, initial=_LOWEST)

        def closer(some: _Some) -> Array:
            """Less what each query may be off by, as its own key differs from another."""
            loose = np.zeros((len(some.keys), keys))
            for dim in np.flatnonzero(some.queries.rad.any(0)):
                right, off = scores.keys.mid[:, dim], some.queries.rad[:, dim, None]
                loose += off * np.abs(right[some.keys, None] - right)
            return leads(some, loose * (1 + 2.0**-40))

        # all scores of all queries at once may not fit in memory
        rows = _CHUNK // max(1, keys)
        found = self._least(scores, self._asking(hop, rows), leads)
        if found is not None and found.least <= 0 < found.gap and self.count * keys <= _TABLE:
            near = self._least(scores, self._asking(hop, rows), closer, apart=True)
            assert near is not None
            return replace(near, gap=found.gap)
        return found

    def lowest(self, scores: Scores, hop: Wanted) -> float:
        """At or below every score of the key that holds the place asked for, as computed."""
        least = np.inf
        for some in self._asking(hop):
            own = scores.keys.rows(some.keys)
            right = (some.queries.mid * own.mid).sum(1)
            # errors are enlarged by more than the rounding of these sums
            off = scores.of(some.queries).errors(some.queries, own) + 2.0**-40 * np.abs(right)
            least = min(least, float((right - off).min()))
        return least

    def _by_codes(self, scores: Scores, hop: Wanted) -> Lead | None:
        """The same from codes; None where the keys are none, or where that gives no lead."""
        asked = np.zeros(len(scores.keys.mid), np.bool_)
        for _, _, keys in self._places(hop, _ROWS):
            asked[keys] = True
        codes = Codes.of(scores.keys.mid, asked, self.used) if asked.any() else None
        if codes is None:
            return None

        def leads(some: _Some) -> Array:
            found = codes.leads(some.queries.mid, some.keys)
            return np.zeros(len(some.keys)) if found is None else found

        found = self._least(scores, self._asking(hop), leads)
        return found if found is not None and found.least > 0 else None

    def _places(self, hop: Wanted, rows: int) -> Iterator[tuple[Places, Places, Places]]:
        """Queries that ask for a key, so many at once: their kinds and values, and the keys."""
        for start in range(0, self.count, rows):
            every = np.arange(start, min(start + rows, self.count))
            kind, value = np.divmod(every, self.values)
            key = np.asarray(hop.place(self.parts[kind], value))
            asked = key >= 0
            if asked.any():
                yield kind[asked], value[asked], key[asked]

    def _asking(self, hop: Wanted, rows: int = _ROWS) -> Iterator[_Some]:
        for kind, value, key in self._places(hop, max(1, min(rows, _ROWS))):
            yield _Some(self.parts[kind], self.asked(kind, value), key)

    def _least(
        self,
        scores: Scores,
        queries: Iterator[_Some],
        leads: Callable[[_Some], Array],
        *,
        apart: bool = False,
    ) -> Lead | None:
        """The smallest of the leads of all these queries. `apart`: leads are less what queries may
        be off by, so that roundings alone are left.
        """
        least = gap = np.inf
        error = 0.0
        closest: tuple[Enclosure, int] | None = None
        for some in queries:
            lead, rows = leads(some), some.queries
            # sizes say nothing of the digits of what is within them
            exact = scores if apart else scores.of(rows)
            off = exact.errors(rows.like(rows.size, 0 * rows.size) if apart else rows)
            # the last term: our own subtractions
            computed = lead - 2 * off * (1 + 2.0**-40) - np.abs(lead) * 2.0**-50
            gap = min(gap, float(lead.min()))
            error = max(error, float(off.max()))
            worst = int(computed.argmin())
            if closest is None or computed[worst] < least:
                least = float(computed[worst])
                closest = some.queries.rows(slice(worst, worst + 1)), int(some.keys[worst])
        if closest is None:
            return None
        query, right = closest
        row = scores.centres(query)[0]
        row[right] = -np.inf
        return Lead(gap, error, least, int(row.argmax()))


def winning(lead: Lead | None, what: str) -> Lead:
    """The lead, if it is one. Raises CheckFailed when another key wins, or may win by rounding."""
    assert lead is not None
    if lead.gap <= 0:
        raise CheckFailed(
            f"{what} {lead.rival} scores no less, for some query, than the one the task asks for"
        )
    if lead.least <= 0:
        raise CheckFailed(
            f"{what} {lead.rival} may score no less, by rounding, than the one the task asks for"
        )
    return lead


def lead_of_rows(queries: Enclosure, keys: Enclosure, right: NDArray[np.int64], what: str) -> Lead:
    """The smallest lead, over all rows of `queries`, of the key that `right` names for the row.
    Raises CheckFailed where another key may win.
    """
    scores = Scores(keys, queries.used, what)
    return winning(Queries.alone(queries).lead(scores, Wanted.each("", right)), what)


def must_tie(queries: Enclosure, keys: Enclosure, where: str) -> None:
    """Raises CheckFailed where a score may be rounded, so that equal ones need not tie."""
    if Scores(keys, queries.used, f"{where}, scores").of(queries).rounded:
        raise CheckFailed(f"{where}: scores are rounded, so that nothing need tie")


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
        ends = rest.min(0, initial=np.inf), rest.max(0, initial=-np.inf)
        return cls(keys, low, high, apart, *ends)

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
        if np.isfinite(self.most).all():
            rival = np.where(queries > 0, queries * self.most, queries * self.least).sum(1)
            return np.minimum(lead, (queries * own).sum(1) - rival)
        return lead
