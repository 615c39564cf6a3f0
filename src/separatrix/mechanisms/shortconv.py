"""The short convolution that stands alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.mechanisms.base import CacheItem, LayerKind, Mechanism, convolution, integer


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

    width: int = integer(256, "channels")
    conv: int = integer(3, "kernel size, the token itself included")

    @property
    def inner_width(self) -> int:
        return self.width

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (convolution(self.width, self.conv, t, self.p),)

    def flops(self, t: int) -> int:
        return 2 * self.conv * self.width
