"""Softmax attention over stored keys and values, whatever it reads of them."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.errors import SizeError
from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.growth import Growth
from separatrix.core.numbers.rotary import SCALINGS, Rotation
from separatrix.stacks.mechanisms.accumulating import Accumulating
from separatrix.stacks.mechanisms.base import (
    CacheItem,
    Head,
    HeadShape,
    convolution,
    flag,
    integer,
    positions_field,
    rotation_scaling,
)
from separatrix.stacks.mechanisms.heads import Heads

KEYS_VALUES = "kv_heads (head_dim + value_dim)"
"""The numbers of one token's keys and values, as tables write them."""
ROPE_SCALING = f"how the rotation's angles are scaled: {', '.join(SCALINGS.values())}"
SINK = "whether every softmax has one learned score more per head, of a value of 0 (attention sink)"


@dataclass(frozen=True, kw_only=True)
class Softmax(Heads, Accumulating):
    """Grouped softmax attention; which tokens are seen is up to the subclass."""

    kv_heads: int | None = integer(None, "number of key-value heads (GQA); heads if not given")
    rope: bool = flag(
        False, "whether queries and keys are rotated by their places (RoPE)", alters=True
    )
    rope_base: int = integer(10_000, "base of the rotation's angles (rope_theta)")
    rope_dim: int | None = integer(
        None, "rotated numbers of a query or key, the first ones; all if not given", alters=True
    )
    rope_scaling: str | None = rotation_scaling(ROPE_SCALING)
    positions: str = positions_field()
    softcap: int = integer(
        0, "scores are softcap tanh(score / softcap) (Gemma 2); 0: not capped", alters=True
    )
    bounded: bool = flag(
        False,
        "whether scores are bounded whatever the weights: queries and keys are clipped (DBRX), or"
        " scaled to one length that is not learned (nanochat)",
        alters=True,
    )

    @property
    def kv(self) -> int:
        return self.heads if self.kv_heads is None else self.kv_heads

    def _check(self) -> None:
        if self.heads % self.kv:
            raise SizeError(
                f"{self.name}: kv_heads={self.kv} does not divide heads={self.heads}; choose a"
                " divisor"
            )
        turned = self._turned
        if self.rope and turned % 2:
            raise SizeError(
                f"{self.name}: {'head_dim' if self.rope_dim is None else 'rope_dim'}={turned} is"
                " odd; rope=true turns pairs of dimensions"
            )
        if self.rope and turned > self.head_dim:
            raise SizeError(f"{self.name}: rope_dim={turned} is more than head_dim={self.head_dim}")
        if self.rope:
            Rotation(self.rope_base, turned, self.rope_scaling)

    @property
    def _turned(self) -> int:
        """Numbers of a query or key that a rotation turns."""
        return self.head_dim if self.rope_dim is None else self.rope_dim

    @property
    def free_scores(self) -> bool:
        return not self.softcap and not self.bounded

    @property
    def rotation(self) -> Rotation | None:
        if not self.rope:
            return None
        return Rotation(self.rope_base, self._turned, self.rope_scaling)

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

    def seen(self) -> Growth:
        """Keys that a query meets, each with a value."""
        raise NotImplementedError

    def held(self) -> Growth:
        """Keys with values that are kept for each head: those that are seen, unless a class says
        otherwise.
        """
        return self.seen()

    def opened(self) -> Growth:
        """Keys with values that are read for each head of them, whichever query heads ask."""
        return self.seen()

    def work(self) -> Growth:
        """Scores and weighted values, and the convolution."""
        scored = self.seen() * (2 * self.heads * (self.head_dim + self.dv))
        return scored + Growth(2 * self.conv * self._channels)

    def kept(self) -> Growth:
        return self.held() * (self.kv_numbers * self.p) + self._buffered(self.conv)

    def fetched(self) -> Growth:
        return self.opened() * (self.kv_numbers * self.p) + self._buffered(self.conv)

    def _convolution(self, t: int) -> CacheItem:
        return convolution(self._channels, self.conv, t, self.p)

    def assumptions(self) -> tuple[str, ...]:
        return (self.sums_assumed,)
