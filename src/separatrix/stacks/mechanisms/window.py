"""Sliding-window attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.growth import Growth, tokens
from separatrix.stacks.mechanisms.base import (
    CacheItem,
    Facts,
    LayerKind,
    Mechanism,
    Reach,
    Varied,
    flag,
    integer,
)
from separatrix.stacks.mechanisms.full import Full
from separatrix.stacks.mechanisms.gated_softmax import GatedSoftmax
from separatrix.stacks.mechanisms.softmax import KEYS_VALUES, SINK


@dataclass(frozen=True, kw_only=True)
class Window(GatedSoftmax):
    """Softmax attention to the last `size` tokens (the token itself included)."""

    name: ClassVar[str] = "window"
    title: ClassVar[str] = "sliding-window attention"
    symbol: ClassVar[str] = "w"
    group: ClassVar[LayerKind] = "windowed"
    source: ClassVar[str] = "Beltagy, Peters, Cohan 2020 (Longformer)"
    facts: ClassVar[Facts] = Facts(
        carried=f"{KEYS_VALUES} min(t, size)",
        elsewhere="transformers: sliding_attention; fla: Attention(window_size)",
    )

    size: int = integer(128, "tokens seen, the token itself included")
    sink: bool = flag(False, SINK, alters=True)
    shared: bool = flag(
        False, "whether one vector per head is key and value at once, stored once (DeepSeek-V4)"
    )

    def _check(self) -> None:
        super()._check()
        if self.shared and self.dv != self.head_dim:
            raise SizeError(
                f"window: value_dim={self.dv} and head_dim={self.head_dim}; a key that is the value"
                " too has one dimension"
            )

    @property
    def kv_numbers(self) -> int:
        return self.kv * self.head_dim if self.shared else super().kv_numbers

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (
            CacheItem("window", self._keys_values(min(t, self.size))),
            self._convolution(t),
        )

    @property
    def reach(self) -> Reach:
        return Reach(before=max(0, self.conv - 1), window=self.size - 1)

    def within(self, tokens: int) -> Mechanism:
        if tokens > self.size or self.shared:
            return self
        return Full(**{k: v for k, v in self.sizes().items() if k not in ("size", "shared")})

    @property
    def settles_after(self) -> int | None:
        return self._settles_in(self.size)

    def seen(self) -> Growth:
        return tokens(self.size)

    @property
    def card_title(self) -> str:
        return f"windowed ({self.size:,})"

    @property
    def _handed_on(self) -> int:
        # keys must tell places and values bits: one vector cannot be both
        return self.dv if self.size >= 2 and not self.shared and self.free_scores else 0

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"window": "size"}
