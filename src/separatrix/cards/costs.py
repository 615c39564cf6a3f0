"""What an architecture costs when it is served: operations and memory traffic per token, sequences
that fit in a memory, all in exact integers; and from which contexts one costs less than another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from separatrix.architecture import Architecture
from separatrix.errors import SizeError
from separatrix.mechanisms import Mechanism
from separatrix.numbers.amounts import LONGEST_CONTEXT, format_bytes, parse_bits
from separatrix.numbers.growth import Growth, Since, signs, total_signs

MOST_BATCH = 10**6
_APART = 16
"""How many times longer each context of a card's costs is than the one before."""


@dataclass(frozen=True)
class Serving:
    """What a model is served with: bits of memory and of weights, None where nobody says, and
    sequences that are decoded together.
    """

    memory: int | None = None
    weights: int | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        if type(self.batch) is not int or not 1 <= self.batch <= MOST_BATCH:
            raise SizeError(
                f"batch is {self.batch!r}; it must be a number of sequences from 1 to"
                f" {MOST_BATCH:,}"
            )
        if self.memory is not None and self.memory <= (self.weights or 0):
            raise SizeError(
                f"weights of {format_bytes(self.weights or 0)} leave nothing of"
                f" {format_bytes(self.memory)} of memory; give more memory, or weights in a"
                " narrower format"
            )

    @classmethod
    def parse(cls, memory: str | None, weights: str | None, batch: int = 1) -> Serving:
        """From sizes as people write them, such as 80GiB. Raises SizeError for what is no size, and
        for weights that fill the memory.
        """
        return cls(
            None if memory is None else parse_bits(memory, what="memory"),
            None if weights is None else parse_bits(weights, what="weights"),
            batch,
        )

    @property
    def room(self) -> int | None:
        """Bits of memory beside the weights."""
        return None if self.memory is None else self.memory - (self.weights or 0)


class CostAt(NamedTuple):
    """Costs at one context; None where they are not known."""

    context: int
    decode: int
    """Operations that mixing the token after so many takes, that token counted."""
    prefill: int | None
    """Operations that mixing takes of all tokens of a prompt of that length."""
    fetched: int | None
    """Bits of the cache that decoding that token reads."""
    weights: Fraction | None
    """Bits of weights read for each token of the batch."""
    kept: int
    """Bits of the cache."""
    sequences: int | None
    """Sequences whose caches fit in the memory."""

    @property
    def prefill_each(self) -> Fraction | None:
        """Of the prompt's tokens, in the mean."""
        return None if self.prefill is None else Fraction(self.prefill, self.context)


@dataclass(frozen=True)
class Costs:
    """Costs at a context, shorter and longer ones; and the longest context at which the whole batch
    fits in the memory (0 for none, None without a memory).
    """

    serving: Serving
    at: tuple[CostAt, ...]
    longest: int | None

    def here(self, context: int) -> CostAt:
        """Those at one of the contexts."""
        return next(cost for cost in self.at if cost.context == context)


def costs(architecture: Architecture, context: int, serving: Serving) -> Costs:
    """The costs of an architecture at a context and around it."""
    near = (context // _APART, context, context * _APART)
    contexts = [t for t in near if 1 <= t <= LONGEST_CONTEXT]
    grown = _Grown.of(architecture)
    found = tuple(_cost_at(architecture, grown, t, serving) for t in contexts)
    return Costs(serving, found, _longest(architecture, serving))


def _cost_at(
    architecture: Architecture, grown: _Grown | None, context: int, serving: Serving
) -> CostAt:
    kept = architecture.cache_bits(context)
    sequences = None
    if serving.room is not None and kept:
        sequences = serving.room // kept
    return CostAt(
        context,
        architecture.flops(context),
        None if grown is None else grown.prefill.total(context),
        None if grown is None else grown.fetched.at(context),
        None if serving.weights is None else Fraction(serving.weights, serving.batch),
        kept,
        sequences,
    )


def _longest(architecture: Architecture, serving: Serving) -> int | None:
    """The longest context at which the batch fits; caches never shrink."""
    if serving.room is None:
        return None
    each = serving.room // serving.batch
    low, high = 0, LONGEST_CONTEXT + 1
    while low + 1 < high:
        middle = (low + high) // 2
        if architecture.cache_bits(middle) <= each:
            low = middle
        else:
            high = middle
    return low


class _Grown(NamedTuple):
    """Sums over the layers of a stack."""

    decode: Growth
    prefill: Growth
    fetched: Growth
    kept: Growth

    @classmethod
    def of(cls, architecture: Architecture) -> _Grown | None:
        """None where a mechanism does not say how it grows."""
        parts = [(part, times) for layer, times in architecture.counted() for part in layer]
        if not all(part.grows_as_told for part, _ in parts):
            return None
        found = cls(Growth(), Growth(), Growth(), Growth())
        for part, times in parts:
            found = cls(*(sum_ + own * times for sum_, own in zip(found, _own(part), strict=True)))
        return found


def _own(part: Mechanism) -> tuple[Growth, Growth, Growth, Growth]:
    return part.work(), part.prefill_work(), part.fetched(), part.kept()


@dataclass(frozen=True)
class Crossing:
    """From which contexts on the first of two designs has less of something (-1), as much (0), or
    more (1), up to 10^12 tokens.
    """

    what: str
    """A key of `MEASURES`."""
    since: tuple[Since, ...] | None
    """None where they take turns block by block."""


MEASURES = {
    "decode": "operations to decode a token",
    "prefill": "operations to read a prompt",
    "fetched": "bytes read to decode a token",
    "kept": "bytes of cache for each sequence",
    "sequences": "memory for each sequence",
}
"""What is compared, in words; for `sequences`, the share of the memory beside the weights that one
takes: where it is less, more sequences fit.
"""


def crossings(
    first: Architecture, second: Architecture, servings: tuple[Serving, Serving]
) -> tuple[Crossing, ...]:
    """Where two designs change places. Empty where one does not say how it grows."""
    one, other = _Grown.of(first), _Grown.of(second)
    if one is None or other is None:
        return ()
    return tuple(_crossings(one, other, servings))


def _crossings(one: _Grown, other: _Grown, servings: tuple[Serving, Serving]) -> Iterator[Crossing]:
    yield Crossing("decode", signs(one.decode - other.decode, LONGEST_CONTEXT))
    yield Crossing("prefill", total_signs(one.prefill - other.prefill, LONGEST_CONTEXT))
    yield Crossing(
        "fetched", signs(_read(one, servings[0]) - _read(other, servings[1]), LONGEST_CONTEXT)
    )
    rooms = [serving.room for serving in servings]
    if rooms[0] is None or rooms[1] is None:
        yield Crossing("kept", signs(one.kept - other.kept, LONGEST_CONTEXT))
        return
    # as many more sequences of the one fit as its caches take less of its room
    shares = one.kept * rooms[1] - other.kept * rooms[0]
    yield Crossing("sequences", signs(shares, LONGEST_CONTEXT))


def _read(grown: _Grown, serving: Serving) -> Growth:
    """Bits of cache and weights that a step reads for the whole batch."""
    return grown.fetched * serving.batch + Growth(serving.weights or 0)
