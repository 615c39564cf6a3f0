"""RWKV-4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.mechanisms.base import CacheItem, Facts, integer
from separatrix.mechanisms.recurrent_state import Stateful
from separatrix.numbers.bits import Bits
from separatrix.numbers.growth import Growth


@dataclass(frozen=True, kw_only=True)
class RWKV4(Stateful):
    """RWKV-4: numerator, denominator and running maximum per channel; token shifts of time and
    channel mixing keep the last input.
    """

    name: ClassVar[str] = "rwkv4"
    title: ClassVar[str] = "RWKV-4"
    symbol: ClassVar[str] = "V"
    source: ClassVar[str] = "Peng et al. 2023, arXiv 2305.13048"
    facts: ClassVar[Facts] = Facts(
        carried="3 width + 2 hidden",
        elsewhere="transformers: rwkv",
    )
    diagonal: ClassVar[bool] = True
    monotone: ClassVar[bool] = True
    # the running maximum comes to rest first, and what it scales after it
    stages: ClassVar[int] = 2
    declared_only: ClassVar[bool] = True

    width: int = integer(256, "channels of time mixing (attention_hidden_size)")
    hidden: int | None = integer(None, "width of a token shift (hidden_size); width if not given")

    @property
    def tokens_mixed(self) -> int:
        # the token shift of time mixing
        return 2

    @property
    def settles_after(self) -> int | None:
        after = super().settles_after
        # the token shift of channel mixing
        return None if after is None else after + 1

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        shifts = Bits.of(
            2 * (self.width if self.hidden is None else self.hidden) * min(t, 1), self.p
        )
        return (CacheItem("state", Bits.of(3 * self.width, self.state_p) + shifts),)

    def work(self) -> Growth:
        return Growth(10 * self.width)
