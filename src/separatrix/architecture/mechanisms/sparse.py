"""Attention that reads few tokens or blocks of a growing cache: block-sparse, indexed, compressed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.architecture.mechanisms._base import CacheItem, LayerKind, Mechanism, flag, integer, number_format
from separatrix.architecture.mechanisms.softmax import Softmax
from separatrix.bits import Bits, NumberFormat
from separatrix.errors import SizeError


@dataclass(frozen=True, kw_only=True)
class Sparse(Softmax):
    """(B, k)-sparse attention: every full block of B tokens is compressed to one key and value per head; the k best blocks and the
    open block are read in full; y = lambda y_compressed + (1 - lambda) y_selected. Options: NSA's window as a third branch, and gates."""

    name: ClassVar[str] = "sparse"
    title: ClassVar[str] = "block-sparse attention"
    symbol: ClassVar[str] = "s"
    group: ClassVar[LayerKind] = "indexed"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "Yuan et al. 2025 (NSA), arXiv 2502.11089; [Ye26] section 2"

    block: int = integer(32, "tokens per block B")
    topk: int = integer(4, "blocks read in full per head, k")
    window: int = integer(0, "tokens of a third branch that reads the last ones, the token itself included; 0 for none", alters=True)
    gates: bool = flag(False, "whether a gate per head and token weighs each branch, instead of one learned share per head", alters=True)

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        compressed = Bits.of(t // self.block * self.kv_numbers, self.p)
        return (CacheItem("kv", self._keys_values(t) + compressed), self._convolution(self._channels, t))

    def read_bits(self) -> int:
        """H ((d_v + 1) + k (d_v + 2)) p: compressed accumulator, then score and partial sum of the k best blocks (theory.md, section 1);
        one number more in each with a running maximum."""
        carried = self.dv + 1 + self.running_max
        return self.heads * (carried + self.topk * (carried + 1)) * self.accumulator_bits

    def open_block_bits(self, t: int) -> int:
        """Bits of the block that is not yet full after t tokens: they count as cache at a cut (theory.md, section 1)."""
        return self._keys_values(t % self.block).total

    def open_bits(self, t: int) -> int:
        """The open block and the window: the last tokens, as many as the longer of the two holds."""
        return self._keys_values(min(t, max(self.block - 1, self.window))).total

    def message_bits(self) -> int:
        """c of Theorem II: one compressed key and value per head, in bits."""
        return self.kv_numbers * self.p

    def flops(self, t: int) -> int:
        """All compressed blocks, then the k best in full, the open block at its longest and the window."""
        return self._attend(t // self.block + min(t, (self.topk + 1) * self.block) + min(t, self.window), t)


@dataclass(frozen=True, kw_only=True)
class MoBA(Softmax):
    """Mixture of block attention: every full block of B tokens has its mean key; the k blocks whose mean key scores highest and the open
    block are read in full, in one softmax. The paper counts the own block among its k, here it comes beside them."""

    name: ClassVar[str] = "moba"
    title: ClassVar[str] = "mixture of block attention"
    symbol: ClassVar[str] = "j"
    group: ClassVar[LayerKind] = "indexed"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "Lu et al. 2025 (MoBA), arXiv 2502.13189"

    block: int = integer(32, "tokens per block B")
    topk: int = integer(4, "blocks read in full per head beside its own, k")

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        means = Bits.of(t // self.block * self.kv * self.head_dim, self.p)
        return (CacheItem("kv", self._keys_values(t) + means), self._convolution(self._channels, t))

    def read_bits(self) -> int:
        """H k (d_v + 2) p: score, numerators and denominator of the k best blocks of the prefix (a later block may displace any of them);
        one number more of each with a running maximum. That of sparse attention without its compressed accumulator (theory.md, section 1)."""
        return self.heads * self.topk * (self.dv + 2 + self.running_max) * self.accumulator_bits

    def open_bits(self, t: int) -> int:
        return self._keys_values(min(t, self.block - 1)).total

    def message_bits(self) -> int:
        """c of Theorem II: one mean key per key-value head, in bits."""
        return self.kv * self.head_dim * self.p

    def flops(self, t: int) -> int:
        """A score per mean key, then the k best blocks and the open block at its longest."""
        return 2 * self.heads * self.head_dim * (t // self.block) + self._attend(min(t, (self.topk + 1) * self.block), t)


@dataclass(frozen=True, kw_only=True)
class Indexed(Softmax):
    """Indexed attention: an indexer with its own small key per token scores the past, and attention reads the `topk` best tokens
    (DeepSeek Sparse Attention) or blocks (MiniMax-M3), the open block always."""

    name: ClassVar[str] = "indexed"
    title: ClassVar[str] = "indexed attention"
    symbol: ClassVar[str] = "i"
    group: ClassVar[LayerKind] = "indexed"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "DeepSeek-AI 2025 (DeepSeek-V3.2-Exp); theory.md, section 1: top-k token selection shared over heads"

    latent: int | None = integer(
        None, "numbers cached per token and shared by all heads (MLA); keys and values of all kv heads if not given"
    )
    index_heads: int = integer(1, "query heads of the indexer")
    index_dim: int = integer(64, "numbers of the indexer's key per token")
    topk: int = integer(64, "tokens (or blocks) read")
    block: int = integer(1, "tokens per unit that the indexer chooses; 1: single tokens")

    @property
    def read_numbers(self) -> int:
        """Numbers that reading one token takes: d_c of theory.md."""
        return self.kv_numbers if self.latent is None else self.latent

    def _stored(self, tokens: int) -> Bits:
        return Bits.of(tokens * (self.read_numbers + self.index_dim), self.p)

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (CacheItem("kv", self._stored(t)), self._convolution(self._channels, t))

    def read_bits(self) -> int:
        """k (1 + d_c) numbers, scores at the accumulators' width, for single tokens chosen for all heads at once; for blocks
        H k (d_v + 3): score, partial sum, denominator and maximum of the k best of each head (theory.md, section 1)."""
        if self.block == 1:
            return self.topk * (self.accumulator_bits + self.read_numbers * self.p)
        value = self.dv if self.latent is None else max(self.dv, self.latent)
        return self.heads * self.topk * (value + 3) * self.accumulator_bits

    def open_bits(self, t: int) -> int:
        return self._stored(min(t, self.block - 1)).total

    def flops(self, t: int) -> int:
        """The indexer scores every token, attention reads the chosen ones."""
        seen = min(t, self.topk * self.block)
        attend = self._attend(seen if self.latent is None else 0, t)
        attend += 0 if self.latent is None else 4 * self.heads * self.latent * seen
        return 2 * self.index_heads * self.index_dim * t + attend

    def assumptions(self) -> tuple[str, ...]:
        who = "one choice for all heads" if self.block == 1 else "each head may choose its own blocks"
        return (
            *super().assumptions(),
            f"the indexer chooses {self.topk:,} {'tokens' if self.block == 1 else f'blocks of {self.block:,} tokens'}; {who}",
        )


@dataclass(frozen=True, kw_only=True)
class Compressed(Mechanism):
    """Compressed attention (DeepSeek-V4): every `ratio` tokens leave one entry that is key and value at once; attention reads the `topk`
    entries that an indexer chooses, or all of them (topk = 0), and the last `size` tokens uncompressed."""

    name: ClassVar[str] = "compressed"
    title: ClassVar[str] = "compressed attention"
    symbol: ClassVar[str] = "z"
    group: ClassVar[LayerKind] = "indexed"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "DeepSeek-AI 2026 (DeepSeek-V4): compressed sparse and heavily compressed attention; cache as in transformers"

    heads: int = integer(4, "number of heads H")
    head_dim: int = integer(64, "numbers of an entry, which is key and value of every head")
    ratio: int = integer(4, "tokens per compressed entry")
    topk: int = integer(0, "entries read, chosen by the indexer; 0: all")
    index_heads: int = integer(0, "query heads of the indexer; 0 without one")
    index_dim: int = integer(0, "numbers of the indexer's key per entry; 0 without one")
    size: int = integer(128, "tokens of the uncompressed window, the token itself included")
    overlap: bool = flag(False, "whether an entry also takes in the tokens of the entry before")
    accumulator: str | None = number_format(None, "number format of the softmax accumulators; format if not given")
    running_max: bool = flag(False, "whether the accumulator also carries a running maximum")

    def _check(self) -> None:
        if bool(self.topk) != bool(self.index_dim):
            raise SizeError(f"compressed: topk={self.topk} and index_dim={self.index_dim}; an indexer needs both, no indexer needs both 0")

    @property
    def accumulator_bits(self) -> int:
        return NumberFormat(self.accumulator or self.format).bits

    @property
    def inner_width(self) -> int:
        return self.heads * self.head_dim

    def _entries(self, t: int) -> Bits:
        return Bits.of(t // self.ratio * (self.head_dim + self.index_dim), self.p)

    def _near(self, t: int) -> Bits:
        """The raw window, and content and gate of the tokens that wait for their entry (twice as wide, and one entry back, with overlap)."""
        waiting = min(t, (2 * self.ratio if self.overlap else self.ratio) - 1)
        wide = (2 if self.overlap else 1) * (self.head_dim + self.index_dim)
        return Bits.of(min(t, self.size) * self.head_dim + waiting * 2 * wide, self.p)

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (CacheItem("kv", self._entries(t)), CacheItem("window", self._near(t)))

    def read_bits(self) -> int:
        """k (1 + d) numbers, the score at the accumulators' width, where an indexer chooses; else H (d + 1) p, + 1 with a running maximum."""
        if self.topk:
            return self.topk * (self.accumulator_bits + self.head_dim * self.p)
        return self.heads * (self.head_dim + 1 + self.running_max) * self.accumulator_bits

    def open_bits(self, t: int) -> int:
        return self._near(t).total

    def flops(self, t: int) -> int:
        entries = t // self.ratio
        seen = (min(entries, self.topk) if self.topk else entries) + min(t, self.size)
        return 2 * self.index_heads * self.index_dim * entries + 4 * self.heads * self.head_dim * seen

    def assumptions(self) -> tuple[str, ...]:
        what = "numerators, denominator and running maximum" if self.running_max else "numerators and denominator"
        return (f"softmax accumulators ({what}) hold {self.accumulator_bits} bits per number",)
