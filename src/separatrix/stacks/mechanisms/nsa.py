"""Native sparse attention (NSA)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.growth import NOTHING, Growth, tokens
from separatrix.stacks.mechanisms.base import (
    CacheItem,
    Facts,
    LayerKind,
    OpenedBlocks,
    Varied,
    choice,
    flag,
    integer,
)
from separatrix.stacks.mechanisms.pooled import Pooled
from separatrix.stacks.mechanisms.softmax import KEYS_VALUES


@dataclass(frozen=True, kw_only=True)
class NSA(Pooled):
    """Native sparse attention: three branches, to compressed blocks, to the blocks of tokens that
    compressed scores select for a group of heads, and to a window, each with a gate.
    """

    name: ClassVar[str] = "nsa"
    title: ClassVar[str] = "native sparse attention"
    symbol: ClassVar[str] = "N"
    group: ClassVar[LayerKind] = "indexed"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "Yuan et al. 2025 (NSA), arXiv 2502.11089"
    facts: ClassVar[Facts] = Facts(
        carried=(
            f"{KEYS_VALUES} (t + max(0, (t - block) // stride + 1) + (1 - shared) (min(t, window) +"
            " min(t, block - 1)))"
        ),
        read="heads (value_dim + 1 + running_max + topk (value_dim + 2 + running_max))",
        elsewhere="fla: NativeSparseAttention",
    )

    block: int = integer(32, "tokens per compressed block l")
    stride: int = integer(16, "tokens from one compressed block to the next, d")
    selected: int = integer(64, "tokens per selected block l'")
    topk: int = integer(16, "selected blocks n, those that are always read among them")
    first: int = integer(1, "blocks at the start that are always read")
    near: int = integer(2, "last blocks that are always read, the token's own among them")
    window: int = integer(512, "tokens of the window, the token itself included")
    pool: str = choice(
        "mlp",
        ("mlp", "mean"),
        "what makes one key and value of a block: an MLP with places inside the block, or the mean",
        alters=True,
    )
    shared: bool = flag(
        False,
        "whether all branches take the same keys and values, stored once (flash-linear-attention)",
        alters=True,
    )

    def _check(self) -> None:
        super()._check()
        for name, size in (("block", self.block), ("selected", self.selected)):
            if size % self.stride:
                raise SizeError(
                    f"nsa: {name}={size} is no multiple of stride={self.stride}; choose a divisor"
                )
        if self.topk < self.first + self.near:
            raise SizeError(
                f"nsa: topk={self.topk} is less than the first={self.first} and near={self.near}"
                " blocks that are always read"
            )

    def compressed(self, t: int) -> int:
        """Compressed blocks that t tokens have completed."""
        return max(0, (t - self.block) // self.stride + 1)

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        # the window's own, and what waits for its compressed block
        near = 0 if self.shared else min(t, self.window) + min(t, self.block - 1)
        return (
            CacheItem("kv", self._keys_values(t + self.compressed(t))),
            CacheItem("window", self._keys_values(near)),
            self._convolution(t),
        )

    @property
    def kv_sets(self) -> int:
        """Sets of keys and values that a token has."""
        return 1 if self.shared else 3

    @property
    def _channels(self) -> int:
        return self.heads * self.head_dim + self.kv_sets * self.kv_numbers

    def read_bits(self) -> int:
        """As sparse attention: the compressed accumulator, then score and partial sum of the k
        best blocks.
        """
        carried = self.dv + 1 + self.running_max
        return self.heads * (carried + self.topk * (carried + 1)) * self.accumulator_bits

    def open_bits(self, t: int) -> int:
        """Windows, blocks not yet full, and selected blocks whose scores a later compressed block
        may still change. Where heads share a choice, everything: the sum of their shares depends on
        what each head finds later, and with it which blocks of a prefix are best.
        """
        if self.kv < self.heads:
            return self.cache_bits(t)
        near = self._keys_values(min(t, max(self.block + self.selected - 2, self.window)))
        own = (
            Bits()
            if self.shared
            else self._keys_values(min(t, self.window) + min(t, self.block - 1))
        )
        return (near + own).total

    def seen(self) -> Growth:
        """Compressed blocks, the selected ones and the window."""
        return self._pooled() + tokens(self.topk * self.selected) + tokens(self.window)

    def held(self) -> Growth:
        near = NOTHING if self.shared else tokens(self.window) + tokens(self.block - 1)
        return tokens() + self._pooled() + near

    def _pooled(self) -> Growth:
        return tokens(every=self.stride, first=self.block)

    @property
    def cache_stride(self) -> int:
        return self.stride

    @property
    def opened_blocks(self) -> OpenedBlocks | None:
        """Where compressed and selected blocks are the same ones: messages are compressed keys and
        values, and the choice of a group of heads is a function of them and the query.
        """
        if self.conv or not self.block == self.stride == self.selected:
            return None
        message = self.kv_numbers * self.p
        return OpenedBlocks(self.kv, self.block, self.topk, message, self.window)

    def drift(self, t: int) -> str | None:
        if t // self.selected <= self.topk:
            return None
        return super().drift(t * (self.topk + 1) * self.block)

    def assumptions(self) -> tuple[str, ...]:
        return (
            *super().assumptions(),
            "blocks are ranked as exact numbers would rank their shares of compressed attention",
        )

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"topk": "topk"}
