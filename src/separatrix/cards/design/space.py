"""The layouts that `design` looks at: how many layers read, of which kind, where they stand, and
what fills the rest of the stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, pairwise
from math import comb
from typing import Literal

from separatrix.core.errors import SizeError, SpecError
from separatrix.stacks.architecture import Architecture, Layer
from separatrix.stacks.architecture.spec import MOST_LAYERS
from separatrix.theory.words import counted_as

Place = Literal["any", "even", "start", "end"]
PLACES: tuple[Place, ...] = ("any", "even", "start", "end")
NAMED: dict[Place, str] = {"even": "evenly spaced", "end": "at the end", "start": "at the start"}
TOLD_APART = 2
"""Up to that many reading layers Theorems III, IV and V see how much stands in every gap;
beyond, only what stands before the second counts, but for tasks that VI and VII may speak of.
"""
MOST_ARRANGEMENTS = 500_000
MOST_CLASSES = 20_000_000


@dataclass(frozen=True)
class Arrangement:
    """Layouts of the same layers in the same order of the bounded ones: they differ in where the
    reading layers stand, and cost the same.

    `fill` is repeated over the bounded layers, first layer first. Up to `told_apart` reading layers
    every gap counts.
    """

    reader: Layer | None
    reading: int
    fill: tuple[Layer, ...]
    bounded: int
    told_apart: int = TOLD_APART

    @property
    def depth(self) -> int:
        return self.reading + self.bounded

    def filled(self) -> Iterator[Layer]:
        """The bounded layers, first one first."""
        return (self.fill[i % len(self.fill)] for i in range(self.bounded))

    def placements(self, places: Sequence[Place] = ("any",)) -> Iterator[tuple[int, ...]]:
        """Numbers of bounded layers in the reading + 1 gaps: one placement for every class that
        the theorems can tell apart.
        """
        if self.reading == 0:
            yield (self.bounded,)
        elif "any" not in places:
            yield from dict.fromkeys(self.named(place) for place in places)
        elif self.reading <= self.told_apart:
            for marks in combinations(range(self.depth), self.reading):
                ends = (-1, *marks, self.depth)
                yield tuple(right - left - 1 for left, right in pairwise(ends))
        else:
            # beyond one cycle no new kind of layer stands before the second reader; the even
            # placement stands for its own class
            even = self.named("even")
            for before in range(min(len(self.fill), self.bounded) + 1):
                own = min(sum(even[:2]), len(self.fill)) == before
                yield even if own else (before, *(0,) * (self.reading - 1), self.bounded - before)

    def classes(self, places: Sequence[Place] = ("any",)) -> int:
        """How many placements `placements` yields, for places that hold "any" without counting
        them one by one.
        """
        if self.reading == 0:
            return 1
        if "any" not in places:
            return len({self.named(place) for place in places})
        return (
            comb(self.depth, self.reading)
            if self.reading <= self.told_apart
            else min(len(self.fill), self.bounded) + 1
        )

    def named(self, place: Place) -> tuple[int, ...]:
        """The gaps of evenly spaced reading layers (each after its share of the bounded ones),
        or of all at the start or the end.
        """
        k = self.reading
        rest = self.bounded
        if place == "start":
            return (*(0,) * k, rest)
        if place == "end":
            return (rest, *(0,) * k)
        ends = [-(-rest * i // k) for i in range(k + 1)]
        return (*(right - left for left, right in pairwise(ends)), 0)


@dataclass(frozen=True)
class Layout:
    """One stack: an arrangement and how many bounded layers stand before, between and after its
    reading layers.
    """

    arrangement: Arrangement
    gaps: tuple[int, ...]

    @property
    def layers(self) -> tuple[Layer, ...]:
        bounded = self.arrangement.filled()
        layers: list[Layer] = []
        for number, gap in enumerate(self.gaps):
            layers += islice(bounded, gap)
            if number < self.arrangement.reading and self.arrangement.reader is not None:
                layers.append(self.arrangement.reader)
        return tuple(layers)

    @property
    def architecture(self) -> Architecture:
        return Architecture(self.layers)

    @property
    def place(self) -> str:
        """Where the reading layers stand, in words."""
        k = self.arrangement.reading
        gaps = self.gaps
        if k == 0:
            return "none"
        if not self.arrangement.bounded:
            return "every layer"
        for name, said in NAMED.items():
            if gaps == self.arrangement.named(name):
                return said
        layers = [sum(gaps[: i + 1]) + i + 1 for i in range(k)]
        if k <= 4:
            return f"layer{'s' if k > 1 else ''} {' and '.join(str(layer) for layer in layers)}"
        return f"after {counted_as(gaps[0], 'bounded layer')}"


@dataclass(frozen=True)
class Space:
    """What may be chosen: numbers of layers, kinds of reading layers, cycles of bounded layers,
    numbers of reading layers (None: all), places.

    Raises SizeError for an empty or too large space, SpecError for a reader that does not read or a
    filling layer that does.
    """

    depths: tuple[int, ...]
    readers: tuple[Layer, ...]
    fills: tuple[tuple[Layer, ...], ...]
    readings: tuple[int, ...] | None = None
    places: tuple[Place, ...] = ("any",)
    told_apart: int = TOLD_APART
    """Up to how many reading layers placements in every gap are looked at."""

    def __post_init__(self) -> None:
        if not self.depths or any(
            type(depth) is not int or not 1 <= depth <= MOST_LAYERS for depth in self.depths
        ):
            raise SizeError(
                f"layers: {', '.join(map(str, self.depths)) or 'none given'}; give numbers of"
                f" layers from 1 to {MOST_LAYERS:,}"
            )
        if not self.readers and not self.fills:
            raise SizeError(
                "neither a reading nor a bounded layer may be used; name at least one mechanism"
            )
        if any(not fill for fill in self.fills):
            raise SizeError("a cycle of bounded layers is empty; it has at least one layer")
        if self.readings is not None and any(type(k) is not int or k < 0 for k in self.readings):
            raise SizeError(
                f"numbers of reading layers: {', '.join(map(str, self.readings))}; none may be"
                " negative"
            )
        if not self.places or any(place not in PLACES for place in self.places):
            raise SpecError(
                f"places: {', '.join(self.places) or 'none given'}; choose from {', '.join(PLACES)}"
            )
        for layer in self.readers:
            if not any(part.reading for part in layer):
                raise SpecError(
                    f"{Architecture((layer,)).spec} is no reading layer: its cache does not grow"
                    " with every token"
                )
        for layer in (layer for fill in self.fills for layer in fill):
            if any(part.reading for part in layer):
                raise SpecError(
                    f"{Architecture((layer,)).spec} is a reading layer; it cannot stand among the"
                    " bounded ones"
                )

    def arrangements(self) -> list[Arrangement]:
        """Every arrangement once, however it can be written. Raises SizeError when there are too
        many to look at, or none.
        """
        numbers: dict[Layer, int] = {}

        def own(layers: Sequence[Layer]) -> tuple[int, ...]:
            return tuple(numbers.setdefault(layer, len(numbers)) for layer in layers)

        # numbers in place of layers: short keys, which are compared many times
        readers = {own((reader,))[0]: reader for reader in self.readers}
        fills = {own(cycle): cycle for cycle in map(_shortest, self.fills)}
        found: dict[tuple[int | None, int, tuple[int, ...], int], Arrangement] = {}
        classes = 0
        for depth in sorted(set(self.depths)):
            for k in sorted(set(range(depth + 1) if self.readings is None else self.readings)):
                bounded = depth - k
                if bounded < 0 or (k and not readers) or (bounded and not fills):
                    continue
                for key, reader in readers.items() if k else ((None, None),):
                    for ids, fill in fills.items() if bounded else (((), ()),):
                        # of a cycle longer than the rest only its beginning is used
                        name = (key, k, ids[:bounded], bounded)
                        if name not in found:
                            found[name] = Arrangement(
                                reader, k, fill[:bounded], bounded, self.told_apart
                            )
                            classes += found[name].classes(self.places)
                if len(found) > MOST_ARRANGEMENTS or classes > MOST_CLASSES:
                    raise SizeError(
                        "more than 20 million layouts; name fewer numbers of layers, state sizes,"
                        " windows or blocks"
                    )
        if not found:
            raise SizeError(
                "no stack has that many layers of these kinds; allow other numbers of layers or"
                " reading layers, or name more mechanisms"
            )
        return list(found.values())


def _shortest(cycle: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The shortest cycle that repeats to the same layers."""
    for period in range(1, len(cycle)):
        if len(cycle) % period == 0 and cycle[:period] * (len(cycle) // period) == cycle:
            return cycle[:period]
    return cycle


@dataclass(frozen=True, order=True)
class Cost:
    """Bits of cache after the context, of one sequence; floating-point operations that mixing
    one token there takes; reading layers.
    """

    cache_bits: int
    flops: int
    reading: int

    def dominates(self, other: Cost) -> bool:
        """Whether it is no larger anywhere, and smaller somewhere."""
        return (
            self != other
            and self.cache_bits <= other.cache_bits
            and self.flops <= other.flops
            and self.reading <= other.reading
        )


class Costs:
    """Costs of arrangements at a context: the same sums as those of their stacks, of which none is
    written out; every layer is asked once.
    """

    def __init__(self, context: int) -> None:
        self._context = context
        self._known: dict[int, tuple[Layer, int, int]] = {}

    def cost(self, arrangement: Arrangement) -> Cost:
        layers = [] if arrangement.reader is None else [(arrangement.reader, arrangement.reading)]
        if arrangement.bounded:
            times, rest = divmod(arrangement.bounded, len(arrangement.fill))
            layers += [(layer, times + (i < rest)) for i, layer in enumerate(arrangement.fill)]
        bits = flops = 0
        for layer, times in layers:
            _, own, work = self._of(layer)
            bits += times * own
            flops += times * work
        return Cost(bits, flops, arrangement.reading)

    def _of(self, layer: Layer) -> tuple[Layer, int, int]:
        # identity is faster than comparing layers; what is kept here keeps its id
        if id(layer) not in self._known:
            bits = sum(part.cache_bits(self._context) for part in layer)
            flops = sum(part.flops(self._context) for part in layer)
            self._known[id(layer)] = (layer, bits, flops)
        return self._known[id(layer)]
