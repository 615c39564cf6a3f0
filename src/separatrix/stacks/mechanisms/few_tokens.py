"""Layers that hand on a few tokens, a few bits, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.numbers.growth import NOTHING, Growth
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    Machine,
    Mechanism,
    Stores,
    integer,
    positions_field,
)


@dataclass(frozen=True, kw_only=True)
class ShortConvolution(Mechanism, row="shortconv"):
    """A causal convolution over the last `conv` tokens, channel by channel, as the layer's only
    mixer.
    """

    width: int = integer(256, "channels")
    conv: int = integer(3, "kernel size, the token itself included")
    positions: str = positions_field()

    @property
    def inner_width(self) -> int:
        return self.width

    @property
    def settles_after(self) -> int | None:
        return self.conv - 1

    @property
    def _channels(self) -> int:
        return self.width

    def stores(self) -> Stores:
        return {"convolution": [(self._buffer, self.p)]}

    def work(self) -> Growth:
        return Growth(2 * self.conv * self.width)

    @property
    def brought(self) -> int:
        return self.width if self.conv >= 2 and self.formats <= EXACT_FORMATS else 0

    @property
    def _handed_on(self) -> int:
        # a kernel of 1 sees no token but its own
        return self.width if self.conv >= 2 else 0


@dataclass(frozen=True, kw_only=True)
class Automaton(Mechanism, row="automaton"):
    """A state of `bits` single bits, which each token replaces by what the table of its rule has
    for it: s_i = T[r_i, s_{i-1}].
    """

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

    def stores(self) -> Stores:
        return {"state": [(Growth(self.bits), 1)]}

    def work(self) -> Growth:
        # a product with each rule's key is a map of the input; then one row is looked up
        return Growth(self.rules + self.bits)


@dataclass(frozen=True, kw_only=True)
class PositionWise(Mechanism, row="mlp"):
    """A layer without token mixing (MLP or experts only): it carries nothing."""

    @property
    def settles_after(self) -> int | None:
        return 0

    def stores(self) -> Stores:
        return {}

    def work(self) -> Growth:
        return NOTHING
