"""Every query that one hop of a chain can have, and the smallest lead of the key it must read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.checks.exact import Array, exact_lead, exact_product, exact_sum, largest
from separatrix.checks.live_parts import Head
from separatrix.errors import CheckFailed

_CHUNK = 1 << 22


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
class Queries:
    """Every query of one hop: a row of `of_part` (parts, head_dim), from the last token, plus a
    row of `of_field` (values, head_dim), from what was fetched before.
    """

    parts: NDArray[np.int64]
    of_part: Array
    of_field: Array

    @classmethod
    def of(cls, head: Head, hop: Wanted, embed: Array, position: Array, field: Array) -> Queries:
        """Last tokens with one query count once; the task must ask the same of all of them
        (CheckFailed otherwise).
        """
        fixed = exact_sum(embed, np.broadcast_to(position, embed.shape))
        rows, first, inverse = np.unique(
            head.q.of_rows(fixed), axis=0, return_index=True, return_inverse=True
        )
        # the place may depend on the query alone, so equal queries must ask for equal parts
        if (hop.part[first][inverse.reshape(-1)] != hop.part).any():
            raise CheckFailed(
                f"{hop.fetches}: two last tokens that ask for different places have one query"
            )
        return cls(hop.part[first], rows, head.q.of_rows(field))

    @property
    def count(self) -> int:
        return len(self.of_part) * len(self.of_field)

    def largest_number(self) -> Fraction:
        """The largest |q_c| of any query."""
        # every row of W_Q picks one coordinate, so a number of q comes from the last token or
        # from what was fetched: the two never add up
        return max(largest(self.of_part), largest(self.of_field))

    def every(self, hop: Wanted) -> tuple[Array, NDArray[np.int64]]:
        """All queries (count, head_dim) and the place each must read."""
        part, value = np.divmod(np.arange(self.count), len(self.of_field))
        queries = exact_sum(self.of_part[part], self.of_field[value])
        return queries, np.asarray(hop.place(self.parts[part], value))

    def gap(self, hop: Wanted, keys: Array) -> Fraction:
        """The smallest lead, over all queries, of the key the task asks for. Raises CheckFailed
        when another key wins or ties.
        """
        smallest = np.inf
        # all scores of all queries at once may not fit in memory
        rows = max(1, _CHUNK // len(keys))
        for start in range(0, self.count, rows):
            part, value = np.divmod(
                np.arange(start, min(start + rows, self.count)), len(self.of_field)
            )
            scores = exact_product(exact_sum(self.of_part[part], self.of_field[value]), keys.T)
            row = np.arange(len(part))
            place = np.asarray(hop.place(self.parts[part], value))
            right = scores[row, place]
            scores[row, place] = -np.inf
            lead = exact_lead(right, scores.max(1))
            if lead.min() <= 0:
                worst = int(lead.argmin())
                winner = int(scores[worst].argmax())
                asked = int(place[worst])
                raise CheckFailed(
                    f"{hop.fetches}: position {winner} scores no less than position {asked}, the"
                    " one the task asks for"
                )
            smallest = min(smallest, float(lead.min()))
        return Fraction(smallest)
