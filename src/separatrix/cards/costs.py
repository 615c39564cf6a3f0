"""What an architecture costs when it is served: operations and memory traffic per token, sequences
that fit in a memory, all in exact integers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, NamedTuple

from separatrix.core.errors import SizeError
from separatrix.core.numbers.amounts import LONGEST_CONTEXT, format_bytes, parse_bits
from separatrix.core.numbers.first_size import first_size
from separatrix.core.numbers.growth import Growth
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.engines import Engine
from separatrix.stacks.architecture.settings import Settings
from separatrix.stacks.architecture.weights import Weights

MOST_BATCH = 10**6
_APART = 16
"""How many times longer each context of a card's costs is than the one before."""
ASKED = (8 << 10, 32 << 10, 128 << 10)
"""Tokens of the sequences that are counted in a memory."""


@dataclass(frozen=True)
class Serving:
    """What a model is served with: bits of memory (of each card) and of weights, None where nobody
    says, sequences that are decoded together, the engine (None: what is declared is kept, on one
    card), and its share of the memory.
    """

    memory: int | None = None
    weights: int | None = None
    batch: int = 1
    engine: Engine | None = None
    utilisation: Fraction = Fraction(1)
    told: Literal["given", "files", "sizes"] = "given"
    """Where the weights are from: whoever asks, the files beside the description, the sizes in it.
    Only the first may not be too large for the memory.
    """

    def __post_init__(self) -> None:
        if self.told == "given" and (room := self.room) is not None and room <= 0:
            more = f", {format_bytes(-room)} too little" if room else ""
            raise SizeError(
                f"weights of {format_bytes(self.weights or 0)} leave nothing of"
                f" {format_bytes(self.usable)} of memory{more}; give more memory, or weights in a"
                " narrower format"
            )

    @classmethod
    def parse(
        cls,
        memory: str | None,
        weights: str | None,
        batch: int = 1,
        settings: Settings | None = None,
    ) -> Serving:
        """From sizes as people write them, such as 80GiB, and the engine that is set. Raises
        SizeError for what is no size, for weights that fill the memory, and for an engine's share
        of no memory; what `Settings.served` raises.
        """
        engine = None if settings is None else settings.served
        share = None if settings is None else settings.utilisation
        if share is not None and memory is None:
            raise SizeError("utilisation is a share of --memory; give that, such as 80GiB")
        whole, own = (
            None if text is None else 0 if text == "0" else parse_bits(text, what=what)
            for text, what in ((memory, "--memory"), (weights, "--weights"))
        )
        usual = Fraction(1 if engine is None else engine.memory)
        return cls(whole, own, batch, engine, usual if share is None else share)

    @property
    def usable(self) -> int:
        """Bits of the memory that the engine takes."""
        return int((self.memory or 0) * self.utilisation)

    @property
    def cards(self) -> int:
        return 1 if self.engine is None else self.engine.cards

    def kept(self, architecture: Architecture, t: int) -> int:
        """Bits of a sequence of t tokens on each card. Raises SizeError for a stack that the engine
        does not have, or that the cards do not divide.
        """
        if self.engine is None:
            return architecture.cache_bits(t)
        return self.engine.bits(architecture, t)

    @property
    def room(self) -> int | None:
        """Bits of a card's memory beside its part of the weights; None where either is unknown."""
        if self.memory is None or self.weights is None:
            return None
        return self.usable - -(-self.weights // self.cards)

    def of(self, architecture: Architecture) -> Serving:
        """With the weights that files tell, where nobody gives any."""
        known, beside = architecture.weights, architecture.weight_bits
        stored = None if known is None else known.stored
        weights = stored if beside is None else beside
        if self.weights is not None or weights is None:
            return self
        if known is not None and stored and self.engine is not None and self.engine.widest:
            weights = -(-weights * (known.within(self.engine.widest).stored or 0) // stored)
        return replace(self, weights=weights, told="sizes" if beside is None else "files")

    def read(self, known: Weights | None) -> Fraction:
        """Bits of weights that a step reads for the whole batch: all, or of those that a file tells
        apart the share that the batch needs at the most.
        """
        return (self.weights or 0) * (Fraction(1) if known is None else known.share(self.batch))


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
    """Bits of the cache, on each card where there is an engine."""
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
    known: Weights | None
    """What the file tells of the weights."""
    untold: str
    """Why it does not tell what they take; "" where nobody asked a file."""
    table: tuple[tuple[int, int], ...]
    """Tokens, and how many sequences of them fit; empty where no room is known to be left."""
    meets: int | None
    """The smallest batch that reads as much of caches as of weights at the context; None where
    neither is known, or no batch does.
    """
    engine: str
    """What was taken of the engine's table, in words; "" without an engine."""

    def here(self, context: int) -> CostAt:
        """Those at one of the contexts."""
        return next(cost for cost in self.at if cost.context == context)


def costs(architecture: Architecture, context: int, serving: Serving) -> Costs:
    """The costs of an architecture at a context and around it."""
    served, known = serving.of(architecture), architecture.weights
    grown, room = _Grown.of(architecture), served.room
    each = None if served.weights is None else served.read(known) / served.batch
    found: list[CostAt] = []
    for t in (context // _APART, context, context * _APART):
        if not 1 <= t <= LONGEST_CONTEXT:
            continue
        kept = served.kept(architecture, t)
        found.append(
            CostAt(
                t,
                architecture.flops(t),
                None if grown is None else grown.prefill.total(t),
                None if grown is None else grown.fetched.at(t),
                each,
                kept,
                None if room is None or not kept else max(0, room) // kept,
            )
        )
    longest, table = None, ()
    if room is not None:
        share = room // served.batch
        # caches never shrink
        over = first_size(lambda t: served.kept(architecture, t) > share, 1, limit=LONGEST_CONTEXT)
        longest = LONGEST_CONTEXT if over is None else over - 1
        if room > 0:
            table = tuple((t, room // max(1, served.kept(architecture, t))) for t in ASKED)
    return Costs(
        served,
        tuple(found),
        longest,
        known,
        architecture.uncounted if known is None else "they are quantised in a way that is not read",
        table,
        None
        if grown is None
        else _meets(served, known, _read(served, architecture, grown, context)),
        "" if served.engine is None else served.engine.said(architecture),
    )


def _read(serving: Serving, architecture: Architecture, grown: _Grown, t: int) -> Fraction:
    """Bits that decoding one token reads of the cache, on all cards together: what a card holds
    twice, or in a narrower format, is read so.
    """
    fetched, engine = Fraction(grown.fetched.at(t)), serving.engine
    if engine is None or not engine.page or not fetched:
        return fetched
    return fetched * engine.cards * engine.held(architecture, t) / architecture.cache_bits(t)


def _meets(serving: Serving, known: Weights | None, fetched: Fraction | None) -> int | None:
    """Caches are read once for each sequence; of experts more are met, until all are."""
    if not serving.weights or not fetched:
        return None

    def caches_ahead(batch: int) -> bool:
        return batch * fetched >= replace(serving, batch=batch).read(known)

    return first_size(caches_ahead, 1, limit=MOST_BATCH)


class _Grown(NamedTuple):
    """Sums over the layers of a stack."""

    prefill: Growth
    fetched: Growth

    @classmethod
    def of(cls, architecture: Architecture) -> _Grown | None:
        """None where a mechanism does not say how it grows."""
        parts = [(part, times) for layer, times in architecture.counted() for part in layer]
        if not all(part.grows_as_told for part, _ in parts):
            return None
        found = cls(Growth(), Growth())
        for part, times in parts:
            prefill, fetched = part.prefill_work() * times, part.fetched() * times
            found = cls(found.prefill + prefill, found.fetched + fetched)
        return found
