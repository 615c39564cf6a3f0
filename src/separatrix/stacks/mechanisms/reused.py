"""Softmax attention that reads keys and values which an earlier layer made and keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.growth import NOTHING, Growth, tokens
from separatrix.stacks.mechanisms.base import CacheItem, Facts, LayerKind, Reach, flag, integer
from separatrix.stacks.mechanisms.gated_softmax import GatedSoftmax
from separatrix.stacks.mechanisms.softmax import SINK

_SOURCE = "Brandon et al. 2024 (cross-layer attention), arXiv 2405.12981"


@dataclass(frozen=True, kw_only=True)
class Reused(GatedSoftmax):
    """Full softmax attention over the keys and values of an earlier layer: queries are its own,
    and it keeps nothing.
    """

    name: ClassVar[str] = "reused"
    title: ClassVar[str] = "full attention over an earlier layer's keys"
    symbol: ClassVar[str] = "E"
    group: ClassVar[LayerKind] = "full"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = _SOURCE
    facts: ClassVar[Facts] = Facts(
        carried="0",
        read="heads (value_dim + 1 + running_max)",
        elsewhere="transformers: num_kv_shared_layers",
    )
    declared_only: ClassVar[bool] = True

    sink: bool = flag(False, SINK, alters=True)

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return ()

    def read_bits(self) -> int:
        """As full attention: what one query returns does not depend on who made the keys."""
        return self.heads * (self.dv + 1 + self.running_max) * self.accumulator_bits

    def seen(self) -> Growth:
        return tokens()

    def kept(self) -> Growth:
        return NOTHING

    @property
    def card_title(self) -> str:
        return "full, keys of an earlier layer"


@dataclass(frozen=True, kw_only=True)
class ReusedWindow(GatedSoftmax):
    """Sliding-window attention over the keys and values that an earlier window keeps: whatever it
    sees of a prefix is in that layer's cache.
    """

    name: ClassVar[str] = "reused_window"
    title: ClassVar[str] = "sliding window over an earlier layer's keys"
    symbol: ClassVar[str] = "W"
    group: ClassVar[LayerKind] = "windowed"
    source: ClassVar[str] = _SOURCE
    facts: ClassVar[Facts] = Facts(
        carried="0",
        elsewhere="transformers: num_kv_shared_layers",
    )
    declared_only: ClassVar[bool] = True

    size: int = integer(128, "tokens seen, the token itself included")
    sink: bool = flag(False, SINK, alters=True)

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return ()

    @property
    def reach(self) -> Reach:
        # the keys are of an earlier layer, whose own reach is in what comes in here, too
        return Reach(before=max(0, self.conv - 1), window=self.size - 1)

    @property
    def settles_after(self) -> int | None:
        return self._settles_in(self.size)

    def seen(self) -> Growth:
        return tokens(self.size)

    def kept(self) -> Growth:
        return NOTHING

    @property
    def card_title(self) -> str:
        return f"windowed ({self.size:,}), keys of an earlier layer"
