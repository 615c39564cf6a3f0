"""A finite automaton as a layer: a state of single bits, and a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.growth import Growth
from separatrix.stacks.mechanisms.base import (
    CacheItem,
    Facts,
    LayerKind,
    Machine,
    Mechanism,
    integer,
    positions_field,
)


@dataclass(frozen=True, kw_only=True)
class Automaton(Mechanism):
    """A state of `bits` single bits, which each token replaces by what the table of its rule has
    for it: s_i = T[r_i, s_{i-1}].
    """

    name: ClassVar[str] = "automaton"
    title: ClassVar[str] = "finite automaton"
    symbol: ClassVar[str] = "A"
    group: ClassVar[LayerKind] = "recurrent"
    source: ClassVar[str] = "theory.md, section 3, tightness of Theorem I"
    facts: ClassVar[Facts] = Facts(
        carried="bits", elsewhere="none: the machine that Theorem I is tight for"
    )

    bits: int = integer(8, "bits of the state, of one bit each")
    rules: int = integer(64, "rows of the table: each token follows one of so many rules")
    positions: str = positions_field()

    @property
    def state_numbers(self) -> int:
        """Numbers in the recurrent state, of one bit each."""
        return self.bits

    @property
    def machine(self) -> Machine | None:
        return Machine(self.bits, self.rules)

    @property
    def inner_width(self) -> int:
        return self.bits

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (CacheItem("state", Bits.of(self.bits, 1)),)

    def work(self) -> Growth:
        # a product with each rule's key is a map of the input; then one row is looked up
        return Growth(self.rules + self.bits)
