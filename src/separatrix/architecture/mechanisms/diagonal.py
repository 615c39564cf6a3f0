"""Recurrences channel by channel, and the short convolution that stands alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.architecture.mechanisms._base import CacheItem, LayerKind, Mechanism, convolution, integer
from separatrix.architecture.mechanisms.recurrent import Stateful
from separatrix.bits import Bits
from separatrix.errors import SizeError


@dataclass(frozen=True, kw_only=True)
class Mamba(Stateful):
    """Mamba: h_i = exp(D_i A) h_{i-1} + D_i B_i x_i, y_i = C_i h_i, `state` numbers for each of `width` channels."""

    name: ClassVar[str] = "mamba"
    title: ClassVar[str] = "Mamba"
    symbol: ClassVar[str] = "b"
    source: ClassVar[str] = "Gu, Dao 2023, arXiv 2312.00752"

    width: int = integer(256, "channels (d_inner)")
    state: int = integer(16, "state size N per channel")
    conv: int = integer(0, "kernel size of the short convolution on x; 0 for none")

    @property
    def inner_width(self) -> int:
        return self.width

    @property
    def state_numbers(self) -> int:
        """Numbers in the recurrent state."""
        return self.width * self.state

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (self._state(self.state_numbers), convolution(self.width, self.conv, t, self.p))

    def flops(self, t: int) -> int:
        return 5 * self.state_numbers + 2 * self.conv * self.width


@dataclass(frozen=True, kw_only=True)
class Mamba2(Stateful):
    """Mamba-2 (SSD): one scalar decay per head, a state of head_dim x `state` numbers per head."""

    name: ClassVar[str] = "mamba2"
    title: ClassVar[str] = "Mamba-2"
    symbol: ClassVar[str] = "m"
    source: ClassVar[str] = "Dao, Gu 2024, arXiv 2405.21060"

    heads: int = integer(4, "number of heads H")
    head_dim: int = integer(64, "channels per head")
    state: int = integer(128, "state size N per channel")
    groups: int = integer(1, "groups G of heads that share B and C")
    conv: int = integer(0, "kernel size of the short convolution on x, B, C; 0 for none")

    def _check(self) -> None:
        if self.heads % self.groups:
            raise SizeError(f"{self.name}: groups={self.groups} does not divide heads={self.heads}; choose a divisor")

    @property
    def inner_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def state_numbers(self) -> int:
        """Numbers in the recurrent state."""
        return self.heads * self.head_dim * self.state

    @property
    def _channels(self) -> int:
        return self.heads * self.head_dim + 2 * self.groups * self.state

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (self._state(self.state_numbers), convolution(self._channels, self.conv, t, self.p))

    def flops(self, t: int) -> int:
        return 5 * self.state_numbers + 2 * self.conv * self._channels


@dataclass(frozen=True, kw_only=True)
class RGLRU(Stateful):
    """RG-LRU (Griffin): a gated diagonal recurrence of `width` numbers."""

    name: ClassVar[str] = "rglru"
    title: ClassVar[str] = "RG-LRU"
    symbol: ClassVar[str] = "r"
    source: ClassVar[str] = "De et al. 2024, arXiv 2402.19427"

    width: int = integer(256, "width of the recurrence")
    conv: int = integer(0, "kernel size of the short convolution; 0 for none")

    @property
    def inner_width(self) -> int:
        return self.width

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (self._state(self.width), convolution(self.width, self.conv, t, self.p))

    def flops(self, t: int) -> int:
        return 3 * self.width + 2 * self.conv * self.width


@dataclass(frozen=True, kw_only=True)
class RWKV4(Stateful):
    """RWKV-4: numerator, denominator and running maximum per channel; token shifts of time and channel mixing keep the last input."""

    name: ClassVar[str] = "rwkv4"
    title: ClassVar[str] = "RWKV-4"
    symbol: ClassVar[str] = "V"
    source: ClassVar[str] = "Peng et al. 2023, arXiv 2305.13048"

    width: int = integer(256, "channels of time mixing (attention_hidden_size)")
    hidden: int | None = integer(None, "width of a token shift (hidden_size); width if not given")

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        shifts = Bits.of(2 * (self.width if self.hidden is None else self.hidden) * min(t, 1), self.p)
        return (CacheItem("state", Bits.of(3 * self.width, self.state_p) + shifts),)

    def flops(self, t: int) -> int:
        return 10 * self.width


@dataclass(frozen=True, kw_only=True)
class ShortConvolution(Mechanism):
    """A causal convolution over the last `conv` tokens, channel by channel, as the layer's only mixer."""

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
