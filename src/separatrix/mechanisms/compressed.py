"""Compressed attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from separatrix.errors import SizeError
from separatrix.mechanisms.accumulating import Accumulating
from separatrix.mechanisms.base import (
    CacheItem,
    Facts,
    LayerKind,
    Varied,
    flag,
    integer,
    positions_field,
    rotation_scaling,
)
from separatrix.mechanisms.softmax import ROPE_SCALING
from separatrix.numbers.bits import Bits
from separatrix.numbers.rotary import Rotation


@dataclass(frozen=True, kw_only=True)
class Compressed(Accumulating):
    """Compressed attention (DeepSeek-V4): every `ratio` tokens leave one entry that is key and
    value at once; attention reads the `topk` entries that an indexer chooses, or all of them (topk
    = 0), and the last `size` tokens uncompressed.
    """

    name: ClassVar[str] = "compressed"
    title: ClassVar[str] = "compressed attention"
    symbol: ClassVar[str] = "z"
    group: ClassVar[LayerKind] = "indexed"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = (
        "DeepSeek-AI 2026 (DeepSeek-V4): compressed sparse and heavily compressed attention; cache"
        " as in transformers"
    )
    facts: ClassVar[Facts] = Facts(
        carried=(
            "(head_dim + index_dim) (t // ratio) + head_dim min(t, size) + 2 (head_dim + index_dim)"
            " min(t, ratio - 1)"
        ),
        read="heads (head_dim + 1 + running_max)",
        elsewhere=(
            "transformers: compressed_sparse_attention, heavily_compressed_attention (deepseek_v4)"
        ),
    )
    declared_only: ClassVar[bool] = True

    heads: int = integer(4, "number of heads H")
    head_dim: int = integer(64, "numbers of an entry, which is key and value of every head")
    ratio: int = integer(4, "tokens per compressed entry")
    topk: int = integer(0, "entries read, chosen by the indexer; 0: all")
    index_heads: int = integer(0, "query heads of the indexer; 0 without one")
    index_dim: int = integer(0, "numbers of the indexer's key per entry; 0 without one")
    size: int = integer(128, "tokens of the uncompressed window, the token itself included")
    overlap: bool = flag(False, "whether an entry also takes in the tokens of the entry before")
    rope: bool = flag(False, "whether queries and entries are rotated by their places (RoPE)")
    rope_base: int = integer(10_000, "base of the rotation's angles (rope_theta)")
    rope_dim: int | None = integer(
        None, "rotated numbers of a query or entry; all if not given", alters=True
    )
    rope_scaling: str | None = rotation_scaling(ROPE_SCALING)
    positions: str = positions_field()

    def _check(self) -> None:
        if bool(self.topk) != bool(self.index_dim):
            raise SizeError(
                f"compressed: topk={self.topk} and index_dim={self.index_dim}; an indexer needs"
                " both, no indexer needs both 0"
            )
        if self.rotation is not None and self.rotation.dims > self.head_dim:
            raise SizeError(
                f"compressed: rope_dim={self.rope_dim} is more than head_dim={self.head_dim}"
            )

    @property
    def rotation(self) -> Rotation | None:
        if not self.rope:
            return None
        return Rotation(self.rope_base, self.rope_dim or self.head_dim, self.rope_scaling)

    @property
    def inner_width(self) -> int:
        return self.heads * self.head_dim

    def _entries(self, t: int) -> Bits:
        return Bits.of(t // self.ratio * (self.head_dim + self.index_dim), self.p)

    def _near(self, t: int) -> Bits:
        """The raw window, and content and gate of the tokens that wait for their entry (twice as
        wide, and one entry back, with overlap).
        """
        waiting = min(t, (2 * self.ratio if self.overlap else self.ratio) - 1)
        wide = (2 if self.overlap else 1) * (self.head_dim + self.index_dim)
        return Bits.of(min(t, self.size) * self.head_dim + waiting * 2 * wide, self.p)

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (CacheItem("kv", self._entries(t)), CacheItem("window", self._near(t)))

    def read_bits(self) -> int:
        """k (1 + d) numbers, the score at the accumulators' width, where an indexer chooses;
        else H (d + 1) p, + 1 with a running maximum.
        """
        if self.topk:
            return self.topk * (self.accumulator_bits + self.head_dim * self.p)
        return self.heads * (self.head_dim + 1 + self.running_max) * self.accumulator_bits

    def open_bits(self, t: int) -> int:
        return self._near(t).total

    def flops(self, t: int) -> int:
        entries = t // self.ratio
        seen = (min(entries, self.topk) if self.topk else entries) + min(t, self.size)
        return (
            2 * self.index_heads * self.index_dim * entries + 4 * self.heads * self.head_dim * seen
        )

    def assumptions(self) -> tuple[str, ...]:
        return (self.sums_assumed,)

    @property
    def cache_stride(self) -> int:
        return self.ratio

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"topk": "topk"} if self.topk else {}
