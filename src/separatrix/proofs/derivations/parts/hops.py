"""The residual stream of tokens that each hold a pointer: where it leads, bit by bit.

Every token holds a number, or none: a place, a letter. What a token with a given number may hold is
an enclosure for each of its binary digits: a row for digit c being 0, one for it being 1, and one
for none. A token whose number is u lies in all the rows of u's digits at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.entries import Left
from separatrix.proofs.machine import Array, Enclosure, add, mlp

RESIDUAL = "the residual stream"


@dataclass(frozen=True)
class Numbered:
    """What tokens may hold, by the binary digits of a number that they have."""

    digits: Enclosure
    """Row c: digit c is 0; row bits + c: it is 1."""
    none: Enclosure | None
    """One row: there is no number; None where every token has one."""

    @property
    def bits(self) -> int:
        return len(self.digits.mid) // 2

    @classmethod
    def of(cls, rows: Enclosure, numbers: NDArray[np.int64], bits: int) -> Numbered:
        """From one row for each number."""
        found = [
            rows.rows(np.flatnonzero((numbers >> digit & 1) == value)).hull()
            for value in (0, 1)
            for digit in range(bits)
        ]
        return cls(stacked(found), None)

    def mapped(self, through: Callable[[Enclosure], Enclosure]) -> Numbered:
        return Numbered(through(self.digits), None if self.none is None else through(self.none))

    def rows(self, numbers: NDArray[np.int64]) -> Enclosure:
        """What a token of each number may hold. Raises CheckFailed where that is nothing."""
        digit = numbers[:, None] >> np.arange(self.bits) & 1
        low = np.full((len(numbers), self.digits.mid.shape[1]), -np.inf)
        high = -low
        lows = self.digits.low
        highs = self.digits.high
        for place in range(self.bits):
            row = digit[:, place] * self.bits + place
            np.maximum(low, lows[row], out=low)
            np.minimum(high, highs[row], out=high)
        if (low > high).any():
            raise CheckFailed("no token can hold what is proved of its number")
        return self.digits.spanning(low, high)

    def any(self) -> Enclosure:
        """One row: what a token may hold, whatever its number: of each digit one row, or none."""
        found: Enclosure | None = None
        for digit in range(self.bits):
            both = self.digits.rows(np.array([digit, self.bits + digit]))
            row = both.hull() if self.none is None else hull([both, self.none])
            found = row if found is None else within(found, row)
        assert found is not None
        return found

    def all(self) -> Enclosure:
        """Digits, then none: a table."""
        return self.digits if self.none is None else stacked([self.digits, self.none])

    def like(self, table: Enclosure) -> Numbered:
        """Of a table as `all` gives it."""
        split = 2 * self.bits
        none = None if self.none is None else table.rows(slice(split, split + 1))
        return Numbered(table.rows(slice(0, split)), none)


def stacked(rows: list[Enclosure]) -> Enclosure:
    """One table of several."""
    return rows[0].like(
        np.concatenate([one.mid for one in rows]), np.concatenate([one.rad for one in rows])
    )


def hull(rows: list[Enclosure]) -> Enclosure:
    """One row that encloses all rows of several tables."""
    return stacked([one.hull() for one in rows]).hull()


def within(table: Enclosure, row: Enclosure) -> Enclosure:
    """A table whose rows lie within a row as well. Raises CheckFailed where nothing does."""
    low = np.maximum(table.low, row.low)
    high = np.minimum(table.high, row.high)
    if (low > high).any():
        raise CheckFailed("no token can hold what is proved of it")
    return table.spanning(low, high)


@dataclass(frozen=True)
class Position:
    """The MLP of a layer, and how far any number of a row may move before a hidden unit that is
    open or closed for sure switches.
    """

    part: Live

    def after(self, x: Enclosure, y: Enclosure) -> Enclosure:
        """The stream after the layer, of rows x to which attention adds y."""
        mixed = add(x, y, RESIDUAL)
        weights = self._weights
        if weights is None:
            return mixed
        written, _ = mlp(mixed, weights, what=f"{self.part.where}, MLP")
        return add(mixed, written, RESIDUAL)

    def room(self, x: Enclosure, y: Enclosure) -> float:
        """The least such move over all rows; 0 without an MLP."""
        weights = self._weights
        if weights is None:
            return 0.0
        up, bias, _, _ = weights
        mixed = add(x, y, RESIDUAL)
        centre = np.abs(mixed.mid @ up.T + bias)
        move = mixed.rad @ np.abs(up).T
        sums = np.abs(up).sum(1)
        reads = sums > 0
        left = (centre - move)[:, reads] * (1 - 2.0**-40) / sums[reads]
        return float(left[left > 0].min(initial=np.inf)) if (left > 0).any() else 0.0

    @property
    def _weights(self) -> tuple[Array, Array, Array, Array] | None:
        given = self.part.mlp
        if not given:
            return None
        return given["up.weight"], given["up.bias"], given["down.weight"], given["down.bias"]


def repeated(row: Enclosure, count: int) -> Enclosure:
    """A row as often as asked for."""
    shape = (count, row.mid.shape[1])
    return row.like(np.broadcast_to(row.mid, shape), np.broadcast_to(row.rad, shape))


def left_of(part: Live, fetched: list[Enclosure], cleaned: list[Enclosure], room: float) -> Left:
    """Of what is known of the bits fetched, and of what the MLP made of them: numbers that may be
    anything are off by 1/4 and more.
    """
    if not part.mlp:
        raise CheckFailed(f"{part.where}: nothing cleans what is fetched")
    written = (part.mlp["down.weight"] != 0.0).any(1)
    return Left(
        fetch_error=max(_known(table) for table in fetched),
        threshold=room,
        clean_error=max(_known(table.only(written)) for table in cleaned),
    )


def _known(table: Enclosure) -> float:
    return float(table.rad[table.rad < 0.25].max(initial=0.0))
