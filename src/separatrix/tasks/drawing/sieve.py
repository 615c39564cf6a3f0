"""Row by row: which tokens are among the row's keys, and how to have tokens that are not."""

from __future__ import annotations

from typing import Any

from separatrix.core.numbers.lazy import Bools, NDArray, np
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.distinct import uniform

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

    Where ids are few every id of a row has a slot of its own. Else those that agree in their low
    bits share one, and what falls on a key's slot is looked up. All that is needed is allocated
    once: fresh memory would take longer than all else. Needs vocabulary <= 2^32.
    """

    def __init__(self, k: int, length: int, vocabulary: int) -> None:
        rows = max(1, _AT_ONCE // length)
        self.vocabulary = vocabulary
        # a power of two, so that a mask takes an id to its slot
        most = max(_SLOTS, 1 << (_SIEVE * k - 1).bit_length())
        self.whole = vocabulary <= most
        self.slots = min(vocabulary, most)
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
        ordered = None if self.whole else np.sort((keys + self.vocabulary * rows).ravel())
        self._held[held_slots] = True
        tokens = uniform(self.vocabulary, slot.shape, rng)
        np.add(self._slots(tokens), self.slots * rows, out=slot)
        # mode "raise" would make a copy of what it writes
        np.take(self._held, slot, out=met, mode="wrap")
        flat = tokens.reshape(-1)
        at = np.flatnonzero(met)
        first = slot.reshape(-1)[at] - self._slots(flat[at])
        if ordered is not None:
            is_key = self._are_keys(flat[at], first, ordered)
            at = at[is_key]
            first = first[is_key]
        # a key is drawn again until it is none, which leaves all other ids equally likely
        while len(at):
            drawn = uniform(self.vocabulary, at.shape, rng)
            flat[at], is_key = drawn, self._are_keys(drawn, first, ordered)
            at = at[is_key]
            first = first[is_key]
        # only what was set is cleared: the next batch finds the sieve empty
        self._held[held_slots] = False
        return tokens

    def _slots(self, tokens: NDArray[Any]) -> NDArray[Any]:
        return tokens if self.whole else tokens & tokens.dtype.type(self.slots - 1)

    def _are_keys(self, tokens: NDArray[Any], first: Tokens, ordered: Tokens | None) -> Bools:
        """Of tokens of rows whose slots begin at `first`; `ordered` are all keys, each with
        `vocabulary` times its row, where ids share slots.
        """
        held = self._held[first + self._slots(tokens)]
        if ordered is not None:
            asked = tokens + self.vocabulary * (first // self.slots)
            held &= ordered[np.minimum(np.searchsorted(ordered, asked), len(ordered) - 1)] == asked
        return held
