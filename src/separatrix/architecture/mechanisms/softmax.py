"""Softmax attention over all tokens, over a window, over a chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.architecture.mechanisms._base import CacheItem, Heads, LayerKind, flag, integer, number_format
from separatrix.bits import Bits, NumberFormat
from separatrix.errors import SizeError

SINK = "whether every softmax has one learned score more per head, of a value of 0 (attention sink)"


@dataclass(frozen=True, kw_only=True)
class Softmax(Heads):
    """Grouped softmax attention; which tokens are seen is up to the subclass."""

    kv_heads: int | None = integer(None, "number of key-value heads (GQA); heads if not given")
    accumulator: str | None = number_format(None, "number format of the softmax accumulators; format if not given")
    running_max: bool = flag(False, "whether the accumulator also carries a running maximum")
    rope: bool = flag(False, "whether queries and keys are rotated by their places (RoPE)", alters=True)
    rope_base: int = integer(10_000, "base of the rotation's angles (rope_theta)")

    @property
    def kv(self) -> int:
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def accumulator_bits(self) -> int:
        return NumberFormat(self.accumulator or self.format).bits

    def _check(self) -> None:
        if self.heads % self.kv:
            raise SizeError(f"{self.name}: kv_heads={self.kv} does not divide heads={self.heads}; choose a divisor")
        if self.rope and self.head_dim % 2:
            raise SizeError(f"{self.name}: head_dim={self.head_dim} is odd; rope=true turns pairs of dimensions")

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

    def assumptions(self) -> tuple[str, ...]:
        what = "numerators, denominator and running maximum" if self.running_max else "numerators and denominator"
        return (f"softmax accumulators ({what}) hold {self.accumulator_bits} bits per number",)


@dataclass(frozen=True, kw_only=True)
class Full(Softmax):
    """Full causal softmax attention: y_i = sum_j a_ij V x_j, a_ij = exp(<Q x_i, K x_j>) / sum_j' exp(<Q x_i, K x_j'>)."""

    name: ClassVar[str] = "full"
    title: ClassVar[str] = "full attention"
    symbol: ClassVar[str] = "f"
    group: ClassVar[LayerKind] = "full"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "Vaswani et al. 2017; [Ye26] section 2"

    sink: bool = flag(False, SINK, alters=True)

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (CacheItem("kv", self._keys_values(t)), self._convolution(self._channels, t))

    def read_bits(self) -> int:
        """H (d_v + 1) p; with a running maximum H (d_v + 2) p (theory.md, section 1)."""
        return self.heads * (self.dv + 1 + self.running_max) * self.accumulator_bits

    def flops(self, t: int) -> int:
        return self._attend(t, t)


@dataclass(frozen=True, kw_only=True)
class Window(Softmax):
    """Softmax attention to the last `size` tokens (the token itself included)."""

    name: ClassVar[str] = "window"
    title: ClassVar[str] = "sliding-window attention"
    symbol: ClassVar[str] = "w"
    group: ClassVar[LayerKind] = "windowed"
    source: ClassVar[str] = "Beltagy, Peters, Cohan 2020 (Longformer)"

    size: int = integer(128, "tokens seen, the token itself included")
    sink: bool = flag(False, SINK, alters=True)
    shared: bool = flag(False, "whether one vector per head is key and value at once, stored once (DeepSeek-V4)")

    def _check(self) -> None:
        super()._check()
        if self.shared and self.dv != self.head_dim:
            raise SizeError(f"window: value_dim={self.dv} and head_dim={self.head_dim}; a key that is the value too has one dimension")

    @property
    def kv_numbers(self) -> int:
        return self.kv * self.head_dim if self.shared else super().kv_numbers

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (CacheItem("window", self._keys_values(min(t, self.size))), self._convolution(self._channels, t))

    def flops(self, t: int) -> int:
        return self._attend(min(t, self.size), t)


@dataclass(frozen=True, kw_only=True)
class Chunked(Softmax):
    """Softmax attention within consecutive chunks of `size` tokens; nothing is seen across a border between chunks."""

    name: ClassVar[str] = "chunked"
    title: ClassVar[str] = "chunked attention"
    symbol: ClassVar[str] = "c"
    group: ClassVar[LayerKind] = "windowed"
    source: ClassVar[str] = "Meta 2025 (Llama 4); transformers' chunked_attention"

    size: int = integer(128, "tokens per chunk")

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        """At most a chunk; right after a border fewer tokens matter, but caches are allotted for a whole one."""
        return (CacheItem("window", self._keys_values(min(t, self.size))), self._convolution(self._channels, t))

    def flops(self, t: int) -> int:
        """At the end of a chunk, where the most tokens are seen."""
        return self._attend(min(t, self.size), t)
