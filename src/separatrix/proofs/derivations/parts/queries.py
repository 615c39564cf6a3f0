"""Every query that one hop of a chain can have, and the lead of the key it must read: from a table
of all scores, or from keys that are codes.

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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.proofs.derivations.parts.live_parts import Head
from separatrix.proofs.derivations.parts.steps import Rows
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import Array, Enclosure, Scores, linear

Places = NDArray[np.int64]
KeyOf = Callable[[Places], Places]
_CHUNK = 1 << 20
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


@dataclass(frozen=True)
class Queries:
    """Every query of one hop: a row of `of_token` plus a row of `of_field` (., head_dim)."""

    parts: NDArray[np.int64]
    """Of the last token, for each row of `of_token`."""
    of_token: Enclosure
    of_field: Enclosure
    first: Places
    """For each row of `of_token`, the first row of `of_field` that may stand beside it."""
    values: int
    """How many rows from there on may."""

    @classmethod
    def of(cls, head: Head, hop: Wanted, stream: Stream, where: str) -> Queries:
        """Last tokens with one query that ask for one place count once."""
        what = f"{where}, q"
        token = linear(stream.last, head.q, what=what, beside=stream.field)
        value = linear(stream.field, head.q, what=what, beside=stream.last)
        last = np.array([len(stream.by_place.mid) - 1])
        token, value = head.behind("q", Rows((token, value), last), what).parts
        first = np.arange(len(hop.part))
        # rows that differ in their part need not be sorted
        parts = np.sort(hop.part)
        if (parts[1:] == parts[:-1]).any():
            table = np.concatenate([token.mid, token.rad, hop.part[:, None]], 1)
            _, first = np.unique(table, axis=0, return_index=True)
        values = len(value.mid) // len(stream.parts)
        at = np.zeros(len(first), np.int64)
        if len(stream.parts) > 1:
            at = np.searchsorted(stream.parts, hop.part[first]) * values
        return cls(hop.part[first], token.rows(first), value, at, values)

    @classmethod
    def alone(cls, rows: Enclosure) -> Queries:
        """A query for each row, which is its own part, where nothing was fetched before."""
        every = np.arange(len(rows.mid))
        nothing = Enclosure.point(np.zeros((1, rows.mid.shape[1])), rows.arithmetic)
        return cls(every, rows, nothing, 0 * every, 1)

    @property
    def count(self) -> int:
        return len(self.parts) * self.values

    @property
    def used(self) -> NDArray[np.bool_]:
        """Dimensions in which some query is not 0."""
        return self.of_token.used | self.of_field.used

    def lead(
        self,
        scores: Scores,
        hop: Wanted,
        key_of: KeyOf | None = None,
        *,
        causal: bool = False,
    ) -> Lead | None:
        """The smallest lead of the key that holds the place asked for; None where none is asked.

        `key_of` says which key a place has (default: its own), -1 for none. Where there are very
        many scores the keys must be codes: CheckFailed otherwise. `causal`: parts are the places of
        queries, which see no key behind their own.
        """
        scores = scores.of(self.of_token, self.of_field)
        keys = len(scores.keys.mid)
        if self.count * keys > _TABLE:
            found = self._by_codes(scores, hop, key_of)
            if found is not None:
                return found
        if self.count * keys > _MOST:
            raise CheckFailed(
                f"{scores.what}: {self.count:,} queries of {keys:,} keys are too many to compare"
                " one by one, and the keys are no codes"
            )

        def leads(part: Places, field: Places, key: Places) -> Array:
            table = _of_some(scores, self.of_token, part)
            # exact zeros where nothing was fetched before
            if self.of_field.used.any():
                table += _of_some(scores, self.of_field, field)
            row = np.arange(len(key))
            right = table[row, key]
            table[row, key] = -np.inf
            if causal:
                table[np.arange(keys) > self.parts[part][:, None]] = -np.inf
            # a key that is seen alone leads by more than any score
            return right - table.max(1, initial=_LOWEST)

        # all scores of all queries at once may not fit in memory
        return self._least(scores, self._asked(hop, key_of, max(1, _CHUNK // max(1, keys))), leads)

    def lowest(self, scores: Scores, hop: Wanted) -> float:
        """At or below every score of the key that holds the place asked for, as computed."""
        least = np.inf
        rows = max(1, _CHUNK // scores.keys.mid.shape[1])
        token_errors = scores.errors(self.of_token)
        value_errors = scores.errors(self.of_field)
        for part, field, key in self._asked(hop, None, rows):
            query = self.of_token.mid[part] + self.of_field.mid[field]
            right = (query * scores.keys.mid[key]).sum(1)
            # errors are enlarged by more than the rounding of these sums
            off = (token_errors[part] + value_errors[field]) * (1 + 2.0**-40)
            least = min(least, float((right - off).min()))
        return least

    def _by_codes(self, scores: Scores, hop: Wanted, key_of: KeyOf | None) -> Lead | None:
        """The same from codes; None where the keys are none, or where that gives no lead."""
        rows = _CHUNK // max(1, scores.keys.mid.shape[1])
        asked = np.zeros(len(scores.keys.mid), np.bool_)
        for _, _, key in self._asked(hop, key_of, rows):
            asked[key] = True
        codes = Codes.of(scores.keys.mid, asked, self.used) if asked.any() else None
        if codes is None:
            return None

        def leads(part: Places, field: Places, key: Places) -> Array:
            found = codes.leads(self.of_token.mid[part] + self.of_field.mid[field], key)
            return np.zeros(len(key)) if found is None else found

        found = self._least(scores, self._asked(hop, key_of, rows), leads)
        return found if found is not None and found.least > 0 else None

    def _asked(
        self, hop: Wanted, key_of: KeyOf | None, rows: int
    ) -> Iterator[tuple[Places, Places, Places]]:
        """Queries that ask for a key, so many at once: their rows of `of_token` and `of_field`, and
        the keys.
        """
        for start in range(0, self.count, rows):
            every = np.arange(start, min(start + rows, self.count))
            part, value = np.divmod(every, self.values)
            place = np.asarray(hop.place(self.parts[part], value))
            key = place if key_of is None else key_of(place)
            asked = key >= 0
            if asked.any():
                field = self.first[part] + value
                yield part[asked], field[asked], key[asked]

    def _least(
        self,
        scores: Scores,
        queries: Iterator[tuple[Places, Places, Places]],
        leads: Callable[[Places, Places, Places], Array],
    ) -> Lead | None:
        """The smallest of the leads of all these queries."""
        token_errors = scores.errors(self.of_token)
        value_errors = scores.errors(self.of_field)
        least = gap = np.inf
        error = 0.0
        closest: tuple[int, int, int] | None = None
        for part, field, key in queries:
            lead = leads(part, field, key)
            off = token_errors[part] + value_errors[field]
            # the last term: our own subtractions
            computed = lead - 2 * off * (1 + 2.0**-40) - np.abs(lead) * 2.0**-50
            gap = min(gap, float(lead.min()))
            error = max(error, float(off.max()))
            worst = int(computed.argmin())
            if closest is None or computed[worst] < least:
                least = float(computed[worst])
                closest = int(part[worst]), int(field[worst]), int(key[worst])
        if closest is None:
            return None
        token, field, right = closest
        row = scores.centres(self.of_token.rows(slice(token, token + 1)))[0]
        row = row + scores.centres(self.of_field.rows(slice(field, field + 1)))[0]
        row[right] = -np.inf
        return Lead(gap, error, least, int(row.argmax()))


def _of_some(scores: Scores, rows: Enclosure, some: Places) -> Array:
    """Centres of the scores of some of the rows, each computed once."""
    each, at = np.unique(some, return_inverse=True)
    return scores.centres(rows.rows(each))[at]


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
        return cls(
            keys, low, high, apart, few, rest.min(0, initial=np.inf), rest.max(0, initial=-np.inf)
        )

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
