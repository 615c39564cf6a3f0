"""RG-LRU, the diagonal recurrence of Griffin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.mechanisms.base import CacheItem, Facts, convolution, integer
from separatrix.mechanisms.recurrent_state import Stateful
from separatrix.numbers.growth import Growth


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
    def _handed_on(self) -> int:
        return self.width
