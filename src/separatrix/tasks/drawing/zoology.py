"""What mqar draws beside keys and values: filler without the keys of its prompt, and sets of places
without replacement, each place with its weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import fsum
from typing import Any

from flint import arb, ctx

from separatrix.core.numbers.lazy import Bools, Floats, NDArray, np
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.distinct import enough, first_different, smallest, uniform

_SLOTS = 1 << 13
"""Slots of a row's sieve, at least, where there are as many ids."""
_AT_ONCE = 1 << 17
"""Tokens drawn at once."""
_SIEVE = 128
"""Slots of a row's sieve per key, at least: one token in so many is looked up though it is no
key.
"""


def find(keys: Tokens, tokens: Tokens, vocabulary: int) -> Tokens | None:
    """Which of its row's keys each token is, or -1; keys (batch, k), tokens (batch, length). None
    where a row has a key twice.

    `batch * vocabulary` must lie below 2^63.
    """
    # each row has a range of ids of its own, so that one sorted array serves all rows
    base = vocabulary * np.arange(len(keys))[:, None]
    order = np.argsort(keys, axis=1)
    ordered = (np.take_along_axis(keys, order, axis=1) + base).ravel()
    if (ordered[1:] == ordered[:-1]).any():
        return None
    return _look_up(ordered, order.ravel(), (tokens + base).ravel()).reshape(tokens.shape)


def _look_up(ordered: Tokens, order: Tokens, asked: Tokens) -> Tokens:
    at = np.minimum(np.searchsorted(ordered, asked), len(ordered) - 1)
    return np.where(ordered[at] == asked, order[at], -1)


class Sieve:
    """A sampler of tokens that are none of their row's keys, for `length` tokens and k keys a row.
    It draws so many rows at once that a core's cache holds them.

    Ids that agree in their low bits share a slot of their row, and what falls on a key's slot is
    looked up. All that is needed is allocated once: fresh memory would take longer than all else.
    Needs vocabulary <= 2^32.
    """

    def __init__(self, k: int, length: int, vocabulary: int) -> None:
        rows = max(1, _AT_ONCE // length)
        self.vocabulary = vocabulary
        # a power of two, so that a mask takes an id to its slot
        self.slots = 1 << (min(vocabulary, max(_SLOTS, _SIEVE * k)) - 1).bit_length()
        self._held = np.zeros(rows * self.slots, np.bool_)
        self._slot = np.empty((rows, length), np.int64)
        self._met = np.empty((rows, length), np.bool_)

    def fill(self, tokens: Tokens, keys: Tokens, rng: np.random.Generator) -> None:
        """Tokens (batch, length) become independent, uniform over all ids but the row's `keys`
        (batch, k): those that are keys are drawn again.
        """
        rows = len(self._slot)
        for start in range(0, len(keys), rows):
            tokens[start : start + rows] = self._draw(keys[start : start + rows], rng)

    def _draw(self, keys: Tokens, rng: np.random.Generator) -> NDArray[Any]:
        batch = len(keys)
        rows = np.arange(len(keys))[:, None]
        slot = self._slot[:batch]
        met = self._met[:batch]
        held_slots = self._slots(keys) + self.slots * rows
        ordered = np.sort((keys + self.vocabulary * rows).ravel())
        self._held[held_slots] = True
        tokens = uniform(self.vocabulary, slot.shape, rng)
        np.add(self._slots(tokens), self.slots * rows, out=slot)
        # mode "raise" would make a copy of what it writes
        np.take(self._held, slot, out=met, mode="wrap")
        flat = tokens.reshape(-1)
        at = np.flatnonzero(met)
        first = slot.reshape(-1)[at] - self._slots(flat[at])
        # a key is drawn again until it is none, which leaves all other ids equally likely
        while (is_key := self._are_keys(flat[at], first, ordered)).any():
            at = at[is_key]
            first = first[is_key]
            flat[at] = uniform(self.vocabulary, at.shape, rng)
        # only what was set is cleared: the next batch finds the sieve empty
        self._held[held_slots] = False
        return tokens

    def _slots(self, tokens: NDArray[Any]) -> NDArray[Any]:
        return tokens & tokens.dtype.type(self.slots - 1)

    def _are_keys(self, tokens: NDArray[Any], first: Tokens, ordered: Tokens) -> Bools:
        """Of tokens of rows whose slots begin at `first`; `ordered` are all keys, each with
        `vocabulary` times its row.
        """
        asked = tokens + self.vocabulary * (first // self.slots)
        return ordered[np.minimum(np.searchsorted(ordered, asked), len(ordered) - 1)] == asked


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
