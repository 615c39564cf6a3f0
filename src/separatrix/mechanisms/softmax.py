"""Softmax attention over stored keys and values, whatever it reads of them."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.errors import SizeError
from separatrix.mechanisms.base import (
    CacheItem,
    Head,
    HeadShape,
    Mechanism,
    convolution,
    flag,
    integer,
    number_format,
)
from separatrix.mechanisms.heads import Heads
from separatrix.numbers.bits import Bits
from separatrix.numbers.formats import NumberFormat

KEYS_VALUES = "kv_heads (head_dim + value_dim)"
"""The numbers of one token's keys and values, as tables write them."""
SINK = "whether every softmax has one learned score more per head, of a value of 0 (attention sink)"


@dataclass(frozen=True, kw_only=True)
class Softmax(Heads, Mechanism):
    """Grouped softmax attention; which tokens are seen is up to the subclass."""

    kv_heads: int | None = integer(None, "number of key-value heads (GQA); heads if not given")
    accumulator: str | None = number_format(
        None, "number format of the softmax accumulators; format if not given"
    )
    running_max: bool = flag(False, "whether the accumulator also carries a running maximum")
    rope: bool = flag(
        False, "whether queries and keys are rotated by their places (RoPE)", alters=True
    )
    rope_base: int = integer(10_000, "base of the rotation's angles (rope_theta)")

    @property
    def kv(self) -> int:
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def accumulator_bits(self) -> int:
        return NumberFormat(self.accumulator or self.format).bits

    def _check(self) -> None:
        if self.heads % self.kv:
            raise SizeError(
                f"{self.name}: kv_heads={self.kv} does not divide heads={self.heads}; choose a"
                " divisor"
            )
        if self.rope and self.head_dim % 2:
            raise SizeError(
                f"{self.name}: head_dim={self.head_dim} is odd; rope=true turns pairs of dimensions"
            )

    @property
    def head_shape(self) -> HeadShape:
        return HeadShape(self.heads, self.head_dim, self.kv)

    @property
    def head(self) -> Head:
        """The room of one head."""
        return Head(self.head_dim, self.dv, self.format)

    @property
    def kv_numbers(self) -> int:
        """Numbers of keys and values per token."""
        return self.kv * (self.head_dim + self.dv)

    def _keys_values(self, tokens: int) -> Bits:
        return Bits.of(tokens * self.kv_numbers, self.p)

    @property
    def _channels(self) -> int:
        return self.heads * self.head_dim + self.kv_numbers

    def _attend(self, tokens: int, t: int) -> int:
        """Operations of scores and weighted values over that many tokens, convolution included."""
        return 2 * self.heads * (self.head_dim + self.dv) * tokens + 2 * self.conv * self._channels

    def _convolution(self, t: int) -> CacheItem:
        return convolution(self._channels, self.conv, t, self.p)

    def assumptions(self) -> tuple[str, ...]:
        return (accumulators(self.accumulator_bits, self.running_max),)


def accumulators(bits: int, running_max: bool) -> str:
    """What is assumed of softmax accumulators of that many bits per number."""
    what = "numerators, denominator and running maximum"
    if not running_max:
        what = "numerators and denominator"
    return f"softmax accumulators ({what}) hold {bits} bits per number"
