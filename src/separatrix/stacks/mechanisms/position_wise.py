"""A layer that mixes no tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.growth import NOTHING, Growth
from separatrix.stacks.mechanisms.base import CacheItem, Facts, Mechanism


@dataclass(frozen=True, kw_only=True)
class PositionWise(Mechanism):
    """A layer without token mixing (MLP or experts only): it carries nothing."""

    name: ClassVar[str] = "mlp"
    title: ClassVar[str] = "no token mixing"
    symbol: ClassVar[str] = "-"
    source: ClassVar[str] = "theory.md, section 1: position-wise parts are free"
    facts: ClassVar[Facts] = Facts(
        carried="0",
        elsewhere="transformers: mlp, moe",
    )
    declared_only: ClassVar[bool] = True
    mixes_tokens: ClassVar[bool] = False

    @property
    def settles_after(self) -> int | None:
        return 0

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return ()

    def work(self) -> Growth:
        return NOTHING
