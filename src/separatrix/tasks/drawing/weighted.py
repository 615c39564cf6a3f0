"""Sets of places drawn one after the other without replacement, each place with its weight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.distinct import uniform
from separatrix.tasks.drawing.first_different import enough, first_different

Floats = NDArray[np.float64]

_CELLS = 1 << 16


@dataclass(frozen=True, eq=False)
class Weighted:
    """Made by `weighted`, which keeps it."""

    weights: Floats
    """Of all places; they sum to 1."""
    number: int
    """Places of a set."""
    draws: int | None
    """With replacement, that show so many different places nearly always; None where that takes
    too many.
    """
    ends: Floats
    """Where the part of each place in [0, _CELLS) ends; parts are proportional to weights."""
    cells: NDArray[np.int32]
    """The place that has all of [c, c + 1), or where several share it the complement (~) of the
    first of them, for c < _CELLS.
    """

    def sets(self, batch: int, rng: np.random.Generator) -> Tokens:
        """Shape (batch, number), in no order that matters."""
        if self.number == len(self.weights):
            return np.broadcast_to(np.arange(self.number), (batch, self.number))
        if self.draws is None:
            return self._race(batch, rng)
        nothing = np.empty((batch, 0), np.int64)
        return first_different(
            self.number,
            len(self.weights),
            self.draws,
            lambda shape: self._with_replacement(shape, rng),
            held=nothing,
        )

    def _race(self, batch: int, rng: np.random.Generator) -> Tokens:
        """Those that arrive first at exponential times of such rates: the next to arrive is each
        with probability proportional to its weight.
        """
        times = rng.standard_exponential((batch, len(self.weights)))
        times /= self.weights
        return np.argpartition(times, self.number - 1, axis=1)[:, : self.number]

    def _with_replacement(
        self, shape: tuple[int, int], rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """By the whole part of a uniform number of [0, _CELLS), and where several places share
        that, by the rest of it.
        """
        whole = uniform(_CELLS, shape, rng).reshape(-1)
        drawn = np.take(self.cells, whole, mode="wrap")
        shared = np.flatnonzero(drawn < 0)
        number = whole[shared] + rng.random(len(shared))
        place = ~drawn[shared]
        while (beyond := self.ends[place] <= number).any():
            place += beyond
        drawn[shared] = place
        return drawn.reshape(shape)


@lru_cache(maxsize=16)
def weighted(places: int, a: float, number: int) -> Weighted:
    """Sets of `number` of `places` places g, of weights (g + 1)^(a - 1)."""
    weights = np.arange(1.0, places + 1) ** (a - 1)
    weights /= weights.sum()
    ends = np.minimum(_CELLS * np.cumsum(weights), _CELLS)
    ends[-1] = np.inf
    cells = np.arange(_CELLS)
    first = np.searchsorted(ends, cells, side="right")
    last = np.searchsorted(ends, cells + 1, side="left")
    draws = enough(weights, number, places // 2)  # more take longer than the race
    return Weighted(
        weights, number, draws, ends, np.where(first == last, first, ~first).astype(np.int32)
    )
