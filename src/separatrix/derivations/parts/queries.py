"""Every query that one hop of a chain can have, and the lead of the key it must read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.derivations.parts.stream import Stream
from separatrix.errors import CheckFailed
from separatrix.proofs.machine import Array, Enclosure, Scores, linear

_CHUNK = 1 << 20


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


@dataclass(frozen=True)
class Lead:
    """The smallest lead of the right key over the others, over all queries."""

    gap: float
    """Before rounding: between centres."""
    error: float
    """How far a score may be from its centre, over all queries."""
    least: float
    """As computed: the smallest of gap less the errors of both scores, query by query."""
    token: int
    value: int
    rival: int
    """Where it is smallest: the last token, the value fetched before, and the other key."""


@dataclass(frozen=True)
class Queries:
    """Every query of one hop: a row of `of_token` plus a row of `of_field` (., head_dim)."""

    tokens: NDArray[np.int64]
    """A last token for each row of `of_token`."""
    parts: NDArray[np.int64]
    of_token: Enclosure
    of_field: Enclosure

    @classmethod
    def of(cls, weight: Array, hop: Wanted, stream: Stream, what: str) -> Queries:
        """Last tokens with one query that ask for one place count once."""
        token = linear(stream.last, weight, what=what, beside=stream.field)
        value = linear(stream.field, weight, what=what, beside=stream.last)
        table = np.concatenate([token.mid, token.rad, hop.part[:, None]], 1)
        _, first = np.unique(table, axis=0, return_index=True)
        return cls(first, hop.part[first], token.rows(first), value)

    @property
    def count(self) -> int:
        return len(self.parts) * len(self.of_field.mid)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Dimensions in which some query is not 0."""
        return self.of_token.used | self.of_field.used

    def lead(
        self,
        scores: Scores,
        hop: Wanted,
        key_of: Callable[[NDArray[np.int64]], NDArray[np.int64]] | None = None,
    ) -> Lead | None:
        """The smallest lead of the key that holds the place asked for; None where none is asked.

        `key_of` says which key a place has (default: its own), -1 for none.
        """
        by_token = scores.centres(self.of_token)
        by_value = scores.centres(self.of_field)
        token_errors = scores.errors(self.of_token)
        value_errors = scores.errors(self.of_field)
        found: Lead | None = None
        gap = np.inf
        error = 0.0
        values = len(by_value)
        # all scores of all queries at once may not fit in memory
        rows = max(1, _CHUNK // max(1, by_token.shape[1]))
        for start in range(0, self.count, rows):
            part, value = np.divmod(np.arange(start, min(start + rows, self.count)), values)
            place = np.asarray(hop.place(self.parts[part], value))
            key = place if key_of is None else key_of(place)
            asked = key >= 0
            if not asked.all():
                part, value, key = part[asked], value[asked], key[asked]
            if not len(key):
                continue
            table = by_token[part]
            # exact zeros where nothing was fetched before
            if values > 1 or self.of_field.used.any():
                table += by_value[value]
            row = np.arange(len(key))
            right = table[row, key]
            table[row, key] = -np.inf
            lead = right - table.max(1)
            off = token_errors[part] + value_errors[value]
            computed = lead - 2 * off * (1 + 2.0**-40)
            gap = min(gap, float(lead.min()))
            error = max(error, float(off.max()))
            worst = int(computed.argmin())
            if found is None or computed[worst] < found.least:
                found = Lead(
                    gap,
                    error,
                    float(computed[worst]),
                    int(self.tokens[part[worst]]),
                    int(value[worst]),
                    int(table[worst].argmax()),
                )
        if found is None:
            return None
        return Lead(gap, error, found.least, found.token, found.value, found.rival)


def winning(lead: Lead, what: str) -> Lead:
    """The lead, if it is one. Raises CheckFailed when another key wins, or may win by rounding."""
    if lead.gap <= 0:
        raise CheckFailed(
            f"{what} {lead.rival} scores no less, for some query, than the one the task asks for"
        )
    if lead.least <= 0:
        raise CheckFailed(
            f"{what} {lead.rival} may score no less, by rounding, than the one the task asks for"
        )
    return lead
