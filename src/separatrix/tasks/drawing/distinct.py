"""Different ids, orders, sets and values of each prompt, drawn for a batch at once."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import fsum, isqrt, prod, sqrt
from typing import Any

from flint import fmpq

from separatrix.core.numbers.lazy import Bools, Floats, NDArray, np
from separatrix.tasks.base.described import require
from separatrix.tasks.base.task import Tokens

_SPARE = 4
"""Standard deviations by which the number of different ids is expected to lie above what is
needed.
"""


def first_different(
    number: int,
    ids: int,
    draws: int,
    draw: Callable[[tuple[int, int]], NDArray[np.integer]],
    *,
    held: Tokens,
) -> Tokens:
    """Shape (batch, number): of each row of draws the first ids that are new, and none of `held`
    (batch, any).

    `draw(shape)` gives independent ids of [ids]. There are `draws` of them for each row, and more
    where that proves too few for one.
    """
    batch = len(held)
    rows = ids * np.arange(batch)[:, None]
    drawn = draw((batch, draws))
    met = np.empty(batch * ids, np.int32)
    # draws run from right to left, so that the last one written to a slot is the first of its id
    while True:
        slot = (drawn + rows).reshape(-1)
        order = np.arange(drawn.size, dtype=np.int32)
        met[slot] = order
        # after the draws, so that no draw of what is held counts as new
        met[held + rows] = -1
        new = np.flatnonzero(np.take(met, slot, mode="wrap") == order)
        ends = np.searchsorted(new, np.arange(batch + 1) * drawn.shape[1])
        if (np.diff(ends) >= number).all():
            return drawn.reshape(-1)[new[ends[1:, None] - np.arange(1, number + 1)]].astype(
                np.int64, copy=False
            )
        # to the left of those there are: further draws come after them
        drawn = np.concatenate((draw((batch, draws)), drawn), axis=1)


def enough(weights: Floats, number: int, most: int, *, alike: int = 1) -> int | None:
    """Draws that nearly always show `number` different ids, `alike` of each weight; or None."""

    def suffice(draws: int) -> bool:
        """How many are met: mean the sum of p = 1 - (1 - w)^draws, variance at most of p (1-p)."""
        missed = _power(1 - weights, draws)
        met = alike * fsum((1 - missed).tolist())
        spread = sqrt(alike * fsum((missed * (1 - missed)).tolist()))
        return met - _SPARE * spread >= number

    low = number
    high = most
    if high < low or not suffice(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffice(middle) else (middle + 1, high)
    return low


def _power(base: Floats, exponent: int) -> Floats:
    """By products alone, which every processor rounds alike."""
    power = np.ones_like(base)
    while exponent:
        if exponent % 2:
            power = power * base
        base = base * base
        exponent //= 2
    return power


@lru_cache(maxsize=64)
def enough_of_uniform(number: int, ids: int, besides: int) -> int | None:
    """The same for ids that are alike, of which `besides` do not count: 4 number + 64 at most."""
    return enough(np.array([1 / ids]), number, 4 * number + 64, alike=ids - besides)


MOST_ZIPF = 1 << 17
"""Most values that a Zipf-distributed draw has, so that its chance level can be written out."""
FEW = 4
"""How many values occur under the shift "few"."""
LOOKUP_SHIFTS = {
    "zipf": (
        "entries are Zipf-distributed: value v has probability 1/((v+1) H_V), H_V = 1 + 1/2 + ..."
        " + 1/V"
    ),
    "few": f"entries are among the values 0..{FEW - 1} only",
    "local": "the entry asked for is one of the last ceil(sqrt(n))",
}
"""Of a table of n entries in [V] and a place in it."""
_DENSE = 2
"""Below this many ids per number drawn, whole permutations are drawn."""
_SLOTS = 1 << 19
"""Slots in use at once, so that they stay in a core's cache."""
_SORTED = 32
"""Permutations of fewer are drawn faster by exchanging entries than by sorting."""


def uniform(ids: int, size: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    """Independent uniform ids of [ids], in the narrowest unsigned type that draws fast. Needs ids
    <= 2^32.

    Of a power of two they are bits of the generator as they come, 16 or 32 each: two to four times
    as fast as numbers below any other bound.
    """
    if ids & (ids - 1):
        return rng.integers(ids, size=size, dtype=np.uint32)
    width = 2 if ids <= 1 << 16 else 4
    number = prod(size)
    # little-endian, so that the bits are cut into the same ids on every machine
    drawn = rng.integers(0, 1 << 64, size=-(-number * width // 8), dtype=np.uint64).astype(
        "<u8", copy=False
    )
    bits = drawn.view(f"<u{width}")[:number].reshape(size)
    bits &= bits.dtype.type(ids - 1)
    return bits


def distinct(
    batch: int,
    number: int,
    ids: int,
    rng: np.random.Generator,
    *,
    besides: Tokens | None = None,
    slots: int = _SLOTS,
) -> Tokens:
    """Shape (batch, number): rows of different numbers from [ids], every ordered row equally
    likely. Needs number <= ids.

    `besides` (batch, more) holds numbers that differ within their row and are not to be drawn.
    Where ids are few, the first free entries of uniform permutations, else the first free ones of
    independent draws; of more ids than `slots`, and of few numbers faster, what repeats is drawn
    again.
    """
    held = np.empty((batch, 0), np.int64) if besides is None else besides
    more = held.shape[1]
    if ids < _DENSE * (number + more):
        order = shuffled(batch, ids, rng)
        if more:
            taken = np.zeros((batch, ids), np.bool_)
            np.put_along_axis(taken, held, True, axis=1)
            # stable: what is free comes first, still in the order of the permutation
            free = np.argsort(np.take_along_axis(taken, order, axis=1), axis=1, kind="stable")
            order = np.take_along_axis(order, free, axis=1)
        return order[:, :number]
    draws = enough_of_uniform(number, ids, more)
    if ids > slots or draws is None:
        return _distinct_of_many(held, number, ids, rng)
    rows = _SLOTS // ids
    result = np.empty((batch, number), np.int64)
    for start in range(0, batch, rows):
        block = slice(start, start + rows)
        result[block] = first_different(
            number, ids, draws, lambda shape: uniform(ids, shape, rng), held=held[block]
        )
    return result


def _distinct_of_many(held: Tokens, number: int, ids: int, rng: np.random.Generator) -> Tokens:
    """Of more ids than there is room for slots: those that repeat an earlier entry of their row are
    drawn again until none does. No step tells free ids apart but by whether they are equal, so
    exchanging two turns any row of different ones into another that is equally likely.
    """
    batch, more = held.shape
    drawn = np.concatenate((held, rng.integers(ids, size=(batch, number))), axis=1)
    rows = np.arange(batch)
    while len(rows):
        row, place = repeated(drawn[rows], ids)
        drawn[rows[row], place] = rng.integers(ids, size=len(row))
        rows = rows[np.unique(row)]
    return drawn[:, more:]


def repeated(drawn: Tokens, ids: int) -> tuple[Tokens, Tokens]:
    """Row and place of every entry that equals an earlier one of its row."""
    bits = drawn.shape[1].bit_length()
    if ids.bit_length() + bits < 64:
        # id and place in one number sort much faster than places by id
        packed = np.sort(drawn << bits | np.arange(drawn.shape[1]), axis=1)
        # two of one id differ in the bits of their places alone
        equal = packed[:, 1:] ^ packed[:, :-1] < 1 << bits
        # several times as fast as np.nonzero
        row, at = np.divmod(np.flatnonzero(equal), equal.shape[1])
        return row, packed[row, at + 1] & ((1 << bits) - 1)
    order = np.argsort(drawn, axis=1, kind="stable")
    ordered = np.take_along_axis(drawn, order, axis=1)
    row, at = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
    return row, order[row, at + 1]


def shuffled(batch: int, number: int, rng: np.random.Generator) -> Tokens:
    """Shape (batch, number): uniform permutations of [number].

    Long rows are places sorted by random bits that stand before them in one number. Should two
    agree in these bits, as in at most one of 2^20 batches, all is drawn anew. Given that none
    agree, every order is as likely as any other.
    """
    places = np.arange(number)
    bits = (number - 1).bit_length()
    # fewer than batch number^2 / 2 pairs, each alike with probability at most 2^-(64 - bits)
    if not number >= _SORTED or 2 * batch * number * number > 1 << (64 - bits - 20):
        return rng.permuted(np.broadcast_to(places, (batch, number)), axis=1)
    low = np.uint64((1 << bits) - 1)
    while True:
        packed = rng.integers(0, 1 << 64, size=(batch, number), dtype=np.uint64)
        packed &= ~low
        packed |= places.astype(np.uint64)
        packed.sort(axis=1)
        if (packed[:, 1:] ^ packed[:, :-1] > low).all():
            packed &= low
            return packed.view(np.int64)


def smallest(draw: Callable[[], Floats], number: int) -> Tokens:
    """(batch, number): places, in order, of each row's smallest; drawn anew where two tie."""
    while True:
        drawn = draw()
        last = np.partition(drawn, number - 1, axis=1)[:, number - 1, None]
        found = np.flatnonzero(drawn <= last)
        if len(found) == len(drawn) * number:
            return found.reshape(-1, number) % drawn.shape[1]


def how_often(ids: Tokens, number: int) -> Tokens:
    """Shape (batch, number): how often each id of [number] stands in a row; no others do."""
    cells = ids + number * np.arange(len(ids))[:, None]
    return np.bincount(cells.ravel(), minlength=number * len(ids)).reshape(-1, number)


def one_of(qualified: Bools, rng: np.random.Generator) -> Tokens:
    """Shape (batch,): in each row a uniform place among those that qualify; there is one."""
    # the largest of equally distributed numbers is each of them equally often
    return np.where(qualified, rng.random(qualified.shape), -1.0).argmax(axis=1)


def zipf(values: int, size: int | tuple[int, ...], rng: np.random.Generator) -> Tokens:
    """Numbers k from [values], of probability proportional to 1/(k + 1) within values / 2^58."""
    ends = _zipf_ends(values)
    return np.searchsorted(ends, rng.integers(ends[-1], size=size), side="right")


@lru_cache(maxsize=16)
def _zipf_ends(values: int) -> Tokens:
    """Where the part of each number ends. 1 + 1/2 + ... + 1/values < 32 keeps all below 2^63."""
    return np.cumsum((1 << 58) // np.arange(1, values + 1))


@lru_cache(maxsize=64)
def zipf_chance(values: int) -> Fraction:
    """1/H with H = 1 + 1/2 + ... + 1/values: how often the most frequent of `zipf` comes."""
    total = fmpq.harmonic(values)
    return Fraction(int(total.q), int(total.p))


def check_zipf(task: str, name: str, values: int, shift: str) -> None:
    """Raises SizeError for more Zipf-distributed values than `MOST_ZIPF`."""
    if shift == "zipf":
        require(task, name, values, 1, MOST_ZIPF)


def near(n: int, shift: str) -> int:
    """How many entries of a table may be asked for: the last ceil(sqrt(n)) under "local"."""
    return min(n, 1 + isqrt(n - 1)) if shift == "local" else n


def independent(batch: int, n: int, V: int, shift: str, rng: np.random.Generator) -> Tokens:
    """(batch, n): independent values of [V], uniform, Zipf-distributed or of the first few."""
    if shift == "zipf":
        return zipf(V, (batch, n), rng)
    return rng.integers(occurring(V, shift), size=(batch, n))


def lookup_chance(V: int, shift: str) -> Fraction:
    """The probability of the most frequent of `independent`."""
    return zipf_chance(V) if shift == "zipf" else Fraction(1, occurring(V, shift))


def occurring(V: int, shift: str) -> int:
    """How many values occur, where they are uniform."""
    return min(FEW, V) if shift == "few" else V


def avoiding(values: int, holes: Tokens, n: int, rng: np.random.Generator) -> Tokens:
    """(batch, n): uniform over [values] without the row's different holes (batch, number)."""
    # uniform numbers of as many values as are left, moved up past each hole: no rejection
    x = rng.integers(values - holes.shape[1], size=(len(holes), n))
    for hole in np.sort(holes, axis=1).T:
        x += x >= hole[:, None]
    return x


def balanced(batch: int, number: int, values: int, rng: np.random.Generator) -> Tokens:
    """(batch, number): each of [values] floor or ceil(number / values) times, in uniform order."""
    if number < values:
        return distinct(batch, number, values, rng)
    drawn = np.tile(np.arange(number) % values, (batch, 1))
    rng.permuted(drawn, axis=1, out=drawn)
    if number % values:
        drawn = np.take_along_axis(shuffled(batch, values, rng), drawn, axis=1)
    return drawn


def share(number: int, values: int) -> Fraction:
    """How much of such values the most frequent one is."""
    return Fraction(-(-number // values), number)


def other(number: int, values: int) -> Fraction:
    """The most that one entry, or a table of it, tells about another one."""
    most = -(-number // values)
    # of the other entries at most `most` hold any one value
    return max(Fraction(1, values), Fraction(min(most, number - 1), max(1, number - 1)))


def shown(hit: Fraction, number: int, values: int) -> Fraction:
    """What an entry tells that is the one asked for with this probability."""
    return hit + (1 - hit) * other(number, values)


def spread(
    batch: int, number: int, values: int, rng: np.random.Generator, *, shift: str = ""
) -> Tokens:
    """(batch, number): exchangeable values, as many different as can be, or under a shift."""
    if shift in ("zipf", "few"):
        return independent(batch, number, values, shift, rng)
    if number < values:
        return distinct(batch, number, values, rng)
    every = np.broadcast_to(np.arange(values), (batch, values))
    more = rng.integers(values, size=(batch, number - values))
    return rng.permuted(np.concatenate((every, more), axis=1), axis=1)
