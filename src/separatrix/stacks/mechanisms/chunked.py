"""Chunked attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.growth import Growth, tokens
from separatrix.stacks.mechanisms.base import (
    CacheItem,
    Facts,
    LayerKind,
    Mechanism,
    Reach,
    Varied,
    integer,
)
from separatrix.stacks.mechanisms.full import Full
from separatrix.stacks.mechanisms.softmax import KEYS_VALUES, Softmax


@dataclass(frozen=True, kw_only=True)
class Chunked(Softmax):
    """Softmax attention within consecutive chunks of `size` tokens; nothing is seen across a
    border between chunks.
    """

    name: ClassVar[str] = "chunked"
    title: ClassVar[str] = "chunked attention"
    symbol: ClassVar[str] = "c"
    group: ClassVar[LayerKind] = "windowed"
    source: ClassVar[str] = "Meta 2025 (Llama 4); transformers' chunked_attention"
    facts: ClassVar[Facts] = Facts(
        carried=f"{KEYS_VALUES} min(t, size)",
        elsewhere="transformers: chunked_attention",
    )

    size: int = integer(128, "tokens per chunk")

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        """At most a chunk; right after a border fewer tokens matter, but caches are allotted for
        a whole one.
        """
        return (
            CacheItem("window", self._keys_values(min(t, self.size))),
            self._convolution(t),
        )

    @property
    def reach(self) -> Reach:
        return Reach(before=max(0, self.conv - 1), chunk=self.size)

    def within(self, tokens: int) -> Mechanism:
        if tokens > self.size:
            return self
        return Full(**{name: value for name, value in self.sizes().items() if name != "size"})

    def seen(self) -> Growth:
        """At the end of a chunk, where the most tokens are seen."""
        return tokens(self.size)

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"window": "size"}
