"""Block-sparse attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.growth import Growth, tokens
from separatrix.stacks.mechanisms.base import (
    CacheItem,
    Facts,
    LayerKind,
    OpenedBlocks,
    Varied,
    flag,
    integer,
)
from separatrix.stacks.mechanisms.pooled import Pooled
from separatrix.stacks.mechanisms.softmax import KEYS_VALUES


@dataclass(frozen=True, kw_only=True)
class Sparse(Pooled):
    """(B, k)-sparse attention: every full block of B tokens is compressed to one key and value per
    head; the k best blocks and the open block are read in full; y = lambda y_compressed + (1 -
    lambda) y_selected. Options: NSA's window as a third branch, and gates.
    """

    name: ClassVar[str] = "sparse"
    title: ClassVar[str] = "block-sparse attention"
    symbol: ClassVar[str] = "s"
    group: ClassVar[LayerKind] = "indexed"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "Yuan et al. 2025 (NSA), arXiv 2502.11089; [Ye26] section 2"
    facts: ClassVar[Facts] = Facts(
        carried=f"{KEYS_VALUES} (t + t // block)",
        read="heads (value_dim + 1 + running_max + topk (value_dim + 2 + running_max))",
        elsewhere="transformers: minimax_m3_sparse; fla: NativeSparseAttention",
    )
    compresses_blocks: ClassVar[bool] = True

    window: int = integer(
        0,
        "tokens of a third branch that reads the last ones, the token itself included; 0 for none",
        alters=True,
    )
    gates: bool = flag(
        False,
        "whether a gate per head and token weighs each branch, instead of one learned share per"
        " head",
        alters=True,
    )

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        compressed = Bits.of(t // self.block * self.kv_numbers, self.p)
        return (
            CacheItem("kv", self._keys_values(t) + compressed),
            self._convolution(t),
        )

    def read_bits(self) -> int:
        """H ((d_v + 1) + k (d_v + 2)) p: compressed accumulator, then score and partial sum of the
        k best blocks (theory.md, section 1); one number more in each with a running maximum.
        """
        carried = self.dv + 1 + self.running_max
        return self.heads * (carried + self.topk * (carried + 1)) * self.accumulator_bits

    def open_bits(self, t: int) -> int:
        """The open block and the window: the last tokens, as many as the longer of the two
        holds.
        """
        return self._keys_values(min(t, max(self.block - 1, self.window))).total

    def message_bits(self) -> int:
        """c of Theorem II: one compressed key and value per head, in bits."""
        return self.kv_numbers * self.p

    def seen(self) -> Growth:
        """All compressed blocks, then the k best in full, the open block at its longest and the
        window.
        """
        return self._branches(self.topk)

    def held(self) -> Growth:
        return tokens() + tokens(every=self.block)

    def opened(self) -> Growth:
        """Each query head of a group may choose blocks of its own."""
        return self._branches(self.heads // self.kv * self.topk)

    def _branches(self, chosen: int) -> Growth:
        near = tokens((chosen + 1) * self.block) + tokens(self.window)
        return tokens(every=self.block) + near

    @property
    def cache_stride(self) -> int:
        return self.block

    @property
    def opened_blocks(self) -> OpenedBlocks | None:
        """Rotation and gates change nothing: messages may depend on the place of their block, and
        gates on the query's token only. A convolution lets them depend on the block before.
        """
        if self.conv:
            return None
        return OpenedBlocks(self.heads, self.block, self.topk, self.message_bits(), self.window)

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"block": "block", "topk": "topk"}
