"""Mixture of block attention (MoBA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.growth import Growth, tokens
from separatrix.stacks.mechanisms.base import CacheItem, Facts, LayerKind, OpenedBlocks, integer
from separatrix.stacks.mechanisms.pooled import Pooled
from separatrix.stacks.mechanisms.softmax import KEYS_VALUES


@dataclass(frozen=True, kw_only=True)
class MoBA(Pooled):
    """Mixture of block attention: every full block of B tokens has its mean key; the k blocks whose
    mean key scores highest and the open block are read in full, in one softmax. The paper counts
    the own block among its k, here it comes beside them.
    """

    name: ClassVar[str] = "moba"
    title: ClassVar[str] = "mixture of block attention"
    symbol: ClassVar[str] = "j"
    group: ClassVar[LayerKind] = "indexed"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "Lu et al. 2025 (MoBA), arXiv 2502.13189"
    facts: ClassVar[Facts] = Facts(
        carried=f"{KEYS_VALUES} t + kv_heads head_dim (t // block)",
        read="heads topk (value_dim + 2 + running_max)",
        elsewhere="fla: MoBA",
    )

    topk: int = integer(4, "blocks read in full per head beside its own, k")

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        means = Bits.of(t // self.block * self.kv * self.head_dim, self.p)
        return (CacheItem("kv", self._keys_values(t) + means), self._convolution(t))

    def read_bits(self) -> int:
        """H k (d_v + 2) p: score, numerators and denominator of the k best blocks of the prefix (a
        later block may displace any of them); one number more of each with a running maximum. That
        of sparse attention without its compressed accumulator (theory.md, section 1).
        """
        return self.heads * self.topk * (self.dv + 2 + self.running_max) * self.accumulator_bits

    def open_bits(self, t: int) -> int:
        return self._keys_values(min(t, self.block - 1)).total

    def message_bits(self) -> int:
        """c of Theorem II: one mean key per key-value head, in bits."""
        return self.kv * self.head_dim * self.p

    def seen(self) -> Growth:
        """The k best blocks and the open block at its longest."""
        return tokens((self.topk + 1) * self.block)

    def held(self) -> Growth:
        return tokens()

    def opened(self) -> Growth:
        """Each query head of a group may choose blocks of its own."""
        return tokens((self.heads // self.kv * self.topk + 1) * self.block)

    def work(self) -> Growth:
        """And a score per mean key."""
        return super().work() + tokens(every=self.block) * (2 * self.heads * self.head_dim)

    def kept(self) -> Growth:
        return super().kept() + self._means()

    def fetched(self) -> Growth:
        return super().fetched() + self._means()

    def _means(self) -> Growth:
        return tokens(every=self.block) * (self.kv * self.head_dim * self.p)

    @property
    def cache_stride(self) -> int:
        return self.block

    @property
    def opened_blocks(self) -> OpenedBlocks | None:
        """As in sparse.py."""
        if self.conv:
            return None
        return OpenedBlocks(self.heads, self.block, self.topk, self.message_bits())
