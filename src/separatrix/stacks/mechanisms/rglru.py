"""RG-LRU, the diagonal recurrence of Griffin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.growth import Growth
from separatrix.stacks.mechanisms.base import EXACT_FORMATS, CacheItem, Facts, convolution, integer
from separatrix.stacks.mechanisms.recurrent_state import Stateful


@dataclass(frozen=True, kw_only=True)
class RGLRU(Stateful):
    """RG-LRU (Griffin): a gated diagonal recurrence of `width` numbers."""

    name: ClassVar[str] = "rglru"
    title: ClassVar[str] = "RG-LRU"
    symbol: ClassVar[str] = "r"
    source: ClassVar[str] = "De et al. 2024, arXiv 2402.19427"
    facts: ClassVar[Facts] = Facts(
        carried="width",
        elsewhere="transformers: recurrent of recurrent_gemma",
    )
    diagonal: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    width: int = integer(256, "width of the recurrence")
    conv: int = integer(0, "kernel size of the short convolution; 0 for none")

    @property
    def inner_width(self) -> int:
        return self.width

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (self._state(self.width), convolution(self.width, self.conv, t, self.p))

    def work(self) -> Growth:
        return Growth(3 * self.width + 2 * self.conv * self.width)

    @property
    def brought(self) -> int:
        # r = 1 forgets all before a token
        return self.latched if self.conv >= 2 else 0

    @property
    def slotted(self) -> int:
        # beside r a gate of its own lets an input in
        return self.brought

    @property
    def latched(self) -> int:
        # r = 0 keeps, and r = 1 at a large rate forgets all before it
        return self.width if self.formats <= EXACT_FORMATS else 0

    @property
    def _handed_on(self) -> int:
        return self.width
