"""A recurrent state with a number format of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.mechanisms.base import CacheItem, LayerKind, Mechanism, number_format
from separatrix.numbers.bits import Bits
from separatrix.numbers.formats import NumberFormat


@dataclass(frozen=True, kw_only=True)
class Stateful(Mechanism):
    """A recurrent state with its own number format."""

    group: ClassVar[LayerKind] = "recurrent"

    state_format: str | None = number_format(
        None, "number format of the recurrent state; format if not given"
    )

    @property
    def state_p(self) -> int:
        """Bits per number of the recurrent state."""
        return NumberFormat(self.state_format or self.format).bits

    def _state(self, numbers: int) -> CacheItem:
        return CacheItem("state", Bits.of(numbers, self.state_p))

    def assumptions(self) -> tuple[str, ...]:
        return (f"the recurrent state holds {self.state_p} bits per number",)
