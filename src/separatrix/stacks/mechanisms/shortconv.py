"""The short convolution that stands alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.growth import Growth
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    CacheItem,
    Facts,
    LayerKind,
    Mechanism,
    convolution,
    integer,
    positions_field,
)


@dataclass(frozen=True, kw_only=True)
class ShortConvolution(Mechanism):
    """A causal convolution over the last `conv` tokens, channel by channel, as the layer's only
    mixer.
    """

    name: ClassVar[str] = "shortconv"
    title: ClassVar[str] = "short convolution"
    symbol: ClassVar[str] = "u"
    group: ClassVar[LayerKind] = "convolution"
    source: ClassVar[str] = "Liquid AI 2025 (LFM2); transformers' conv layers"
    facts: ClassVar[Facts] = Facts(
        carried="width min(t, conv - 1)",
        elsewhere="transformers: conv (lfm2)",
    )

    width: int = integer(256, "channels")
    conv: int = integer(3, "kernel size, the token itself included")
    positions: str = positions_field()

    @property
    def inner_width(self) -> int:
        return self.width

    @property
    def settles_after(self) -> int | None:
        return self.conv - 1

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (convolution(self.width, self.conv, t, self.p),)

    def work(self) -> Growth:
        return Growth(2 * self.conv * self.width)

    @property
    def brought(self) -> int:
        return self.width if self.conv >= 2 and self.formats <= EXACT_FORMATS else 0

    @property
    def _handed_on(self) -> int:
        # a kernel of 1 sees no token but its own
        return self.width if self.conv >= 2 else 0
