"""RWKV-4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.growth import Growth
from separatrix.stacks.mechanisms.base import CacheItem, Facts, Reach, integer
from separatrix.stacks.mechanisms.recurrent_state import Stateful


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

    @property
    def reach(self) -> Reach:
        # the token shift of channel mixing
        return super().reach._replace(after=1)

    def handed_over(self, t: int) -> Bits:
        # the shifts hold a token, as a convolution does
        return self._state(3 * self.width).bits

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        shifts = Bits.of(
            2 * (self.width if self.hidden is None else self.hidden) * min(t, 1), self.p
        )
        return (CacheItem("state", self.handed_over(t) + shifts),)

    def work(self) -> Growth:
        return Growth(10 * self.width)
