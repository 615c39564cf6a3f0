"""Sets of places drawn one after the other without replacement, each place with its weight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import fsum

from flint import arb, ctx

from separatrix.core.numbers.lazy import Floats, NDArray, np
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.distinct import smallest, uniform
from separatrix.tasks.drawing.first_different import enough, first_different

_CELLS = 1 << 16
_CUTS = 1 << 12
"""Pieces of [0, 1) in each of which a logarithm is a line and a little more."""
_BITS = 128
"""Of balls, so that no float made of one depends on how it was computed."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """Places with their weights, from which sets are drawn. `weighted` makes one and keeps it for
    the next call.
    """

    weights: Floats
    """Of all places; they sum to 1."""
    number: int
    """Places of a set."""
    draws: int | None
    """Draws with replacement that nearly always show that many different places; None where it
    takes too many.
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
        """The places that arrive first, at exponential times whose rates are the weights.

        Whoever has arrived, the next one is each place with probability proportional to its weight:
        that is drawing without replacement.
        """
        shape = (batch, len(self.weights))
        return smallest(lambda: _exponential(shape, rng) / self.weights, self.number)

    def _with_replacement(
        self, shape: tuple[int, int], rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Places drawn one by one, each by a uniform number of [0, _CELLS)."""
        whole = uniform(_CELLS, shape, rng).reshape(-1)
        drawn = np.take(self.cells, whole, mode="wrap")
        # most cells belong to one place; where several share one, the fraction decides
        shared = np.flatnonzero(drawn < 0)
        number = whole[shared] + rng.random(len(shared))
        place = ~drawn[shared]
        while (beyond := self.ends[place] <= number).any():
            place += beyond
        drawn[shared] = place
        return drawn.reshape(shape)


def _exponential(shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """-log of uniform numbers, by sums and products alone, which every processor rounds alike.

    Of u = m 2^e with 1/2 <= m < 1 and the middle c of m's piece, log u = e log 2 + log c + log(1 +
    r) with |r| <= 2^-12, within 2^-37 of r - r^2/2 there.
    """
    significands, exponents = np.frexp(1 - rng.random(shape))
    pieces = (significands * _CUTS).astype(np.int64)
    middles = (pieces + 0.5) / _CUTS
    r = (significands - middles) / middles
    negative, halved = _logarithms()
    return exponents * halved + negative[pieces] - r + r * r / 2


@lru_cache(maxsize=1)
def _logarithms() -> tuple[Floats, float]:
    """-log of the middles of the pieces, and of 1/2 with its sign."""
    with ctx.workprec(_BITS):
        logs = [float(((2 * arb(_CUTS)) / (2 * i + 1)).log().mid()) for i in range(_CUTS)]
        return np.array(logs), float((arb(1) / 2).log().mid())


@lru_cache(maxsize=16)
def weighted(places: int, a: float, number: int) -> Weighted:
    """Sets of `number` of `places` places g, of weights (g + 1)^(a - 1)."""
    with ctx.workprec(_BITS):
        weights = np.array([float((arb(g) ** (arb(a) - 1)).mid()) for g in range(1, places + 1)])
    weights /= fsum(weights.tolist())
    ends = np.minimum(_CELLS * np.cumsum(weights), _CELLS)
    # what rounding leaves over falls to the last place, where every search ends
    ends[-1] = np.inf
    cells = np.arange(_CELLS)
    first = np.searchsorted(ends, cells, side="right")
    last = np.searchsorted(ends, cells + 1, side="left")
    owner = np.where(first == last, first, ~first).astype(np.int32)
    draws = enough(weights, number, places // 2)  # more take longer than the race
    return Weighted(weights, number, draws, ends, owner)
