"""Costs of a layout, in exact integers: the same sums as `Architecture.cache_bits` and
`.flops`, without writing the stack out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from separatrix.cards.design.space import Arrangement
from separatrix.stacks.architecture import Layer, bounded_bits
from separatrix.stacks.mechanisms import Mechanism


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
    """Sums over the layers of arrangements; every layer is asked once for every length. The
    arrangements' layers must stay alive meanwhile.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], int] = {}
        self._alive: list[Layer] = []

    def cost(self, arrangement: Arrangement, context: int) -> Cost:
        return Cost(
            self.cache_bits(arrangement, context),
            self._total(arrangement, context, 1, _flops),
            arrangement.reading,
        )

    def cache_bits(self, arrangement: Arrangement, t: int) -> int:
        return self._total(arrangement, t, 0, _cache_bits)

    def prefix(self, arrangement: Arrangement, t: int) -> list[int]:
        """Bits of the first 0, 1, ... bounded layers at lengths up to t."""
        sums = [0]
        for layer in arrangement.filled():
            sums.append(sums[-1] + self._of(layer, t, 2, bounded_bits))
        return sums

    def _of(self, layer: Layer, t: int, what: int, measure: Callable[[Layer, int], int]) -> int:
        # identity is faster than comparing layers; `_alive` keeps an id from being used again
        key = (id(layer), t, what)
        if key not in self._known:
            self._known[key] = measure(layer, t)
            self._alive.append(layer)
        return self._known[key]

    def _total(
        self, arrangement: Arrangement, t: int, what: int, measure: Callable[[Layer, int], int]
    ) -> int:
        total = (
            0
            if arrangement.reader is None
            else arrangement.reading * self._of(arrangement.reader, t, what, measure)
        )
        if arrangement.bounded:
            cycle = [self._of(layer, t, what, measure) for layer in arrangement.fill]
            times, rest = divmod(arrangement.bounded, len(cycle))
            total += times * sum(cycle) + sum(cycle[:rest])
        return total


def _cache_bits(layer: Sequence[Mechanism], t: int) -> int:
    return sum(part.cache_bits(t) for part in layer)


def _flops(layer: Sequence[Mechanism], t: int) -> int:
    return sum(part.flops(t) for part in layer)
