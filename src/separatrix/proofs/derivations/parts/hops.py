"""The residual stream of tokens that each hold a pointer: where it leads, bit by bit.

Every token holds a number, or none: a place, a letter. What a token with a given number may hold is
an enclosure for each of its binary digits: a row for digit c being 0, one for it being 1, and one
for none. A token whose number is u lies in all the rows of u's digits at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.mixers.full import FullMixer
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, weights_of
from separatrix.proofs.derivations.parts.steps import PARAMETERS, steps
from separatrix.proofs.machine import Array, Enclosure, hull, linear, stacked


@dataclass(frozen=True)
class Heads:
    """The heads of full attention that write, and the output map (width, heads * value_dim)."""

    each: list[Head]
    o: Array
    value_dim: int
    where: str

    @classmethod
    def of(cls, part: Live, options: frozenset[str] = frozenset()) -> Heads:
        """Raises CheckFailed for another mixer, other options than these, each with an evaluator
        (steps.py), a parameter that is not read, and for a head that does not write but is not
        zero; without options also for heads that share keys.
        """
        mixer = part.mixer
        if not isinstance(mixer, FullMixer) or mixer.mechanism.altered - options:
            beside = f", or with {', '.join(sorted(options))}" if options else ""
            raise CheckFailed(f"{part.where}: the proof is about plain full attention{beside}")
        if mixer.kv != mixer.heads and not mixer.mechanism.altered:
            raise CheckFailed(f"{part.where}: its heads share keys, which the proof is not about")
        weights = weights_of(mixer, part.where, *(PARAMETERS if options else ()))
        return cls(
            [
                replace(weights.head(index), steps=steps(mixer, index, part.where))
                for index in weights.live
            ],
            array(mixer.o.weight),
            mixer.dv,
            part.where,
        )

    def written(self, averages: dict[int, Enclosure]) -> Enclosure:
        """What averages add to the stream: by the number of a head, all with as many rows; heads
        that are not named give 0.
        """
        some = next(iter(averages.values()))
        mid = np.zeros((len(some.mid), self.o.shape[1]))
        rad = np.zeros_like(mid)
        for index, given in averages.items():
            own = slice(index * self.value_dim, (index + 1) * self.value_dim)
            mid[:, own] = given.mid
            rad[:, own] = given.rad
        return linear(some.like(mid, rad), self.o, what=f"{self.where}, o")


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
        return cls(stacked(*found), None)

    @property
    def absent(self) -> Enclosure:
        """What a token without a number holds."""
        assert self.none is not None
        return self.none

    def mapped(self, through: Callable[[Enclosure], Enclosure]) -> Numbered:
        """Of a function of tables that leaves the number of rows."""
        if self.none is None:
            return Numbered(through(self.digits), None)
        table = through(stacked(self.digits, self.none))
        return Numbered(table.rows(slice(0, -1)), table.rows(slice(-1, None)))

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
            row = both.hull() if self.none is None else hull(both, self.none)
            found = row if found is None else found.within(row)
        assert found is not None
        return found


@dataclass(frozen=True)
class Views:
    """What tokens hold before a layer, whatever the prompt: a row per place, and by numbers that
    they have.
    """

    by_place: Enclosure
    by: dict[str, Numbered]

    @property
    def anywhere(self) -> Enclosure:
        """One row: any token of the prompt."""
        return self.by_place.hull()

    def mapped(self, through: Callable[[Enclosure], Enclosure], **instead: Numbered) -> Views:
        """Of a function of tables that leaves the number of rows; some numbers as they are given
        `instead`.
        """
        by = {
            name: instead[name] if name in instead else numbered.mapped(through)
            for name, numbered in self.by.items()
        }
        return Views(through(self.by_place), by | instead)

    def tightened(self) -> Views:
        """The same, each view within what the others say of any token."""
        first, *rest = self.by.values()
        row = first.any().within(self.anywhere)
        for numbered in rest:
            row = row.within(numbered.any())
        return self.mapped(lambda table: table.within(row))
