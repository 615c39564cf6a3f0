"""Indexed attention (DeepSeek sparse attention)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.growth import Growth, tokens
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    CacheItem,
    Facts,
    LayerKind,
    TokenChoice,
    Varied,
    integer,
)
from separatrix.stacks.mechanisms.softmax import KEYS_VALUES, Softmax


@dataclass(frozen=True, kw_only=True)
class Indexed(Softmax):
    """Indexed attention: an indexer with its own small key per token scores the past, and attention
    reads the `topk` best tokens or blocks (MiniMax-M3), the open block always. Over a latent: dsa.
    """

    name: ClassVar[str] = "indexed"
    title: ClassVar[str] = "indexed attention"
    symbol: ClassVar[str] = "i"
    group: ClassVar[LayerKind] = "indexed"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = (
        "DeepSeek-AI 2025 (DeepSeek-V3.2-Exp); theory.md, section 1: top-k token selection shared"
        " over heads"
    )
    facts: ClassVar[Facts] = Facts(
        carried=f"({KEYS_VALUES} + index_dim) t",
        read=f"topk (1 + {KEYS_VALUES})",
        elsewhere="transformers: minimax_m3_sparse; fla: ops.dsa",
    )

    index_heads: int = integer(1, "query heads of the indexer")
    index_dim: int = integer(64, "numbers of the indexer's key per token")
    topk: int = integer(64, "tokens (or blocks) read")
    block: int = integer(1, "tokens per unit that the indexer chooses; 1: single tokens")

    def _stored(self, tokens: int) -> Bits:
        return Bits.of(tokens * (self.kv_numbers + self.index_dim), self.p)

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (CacheItem("kv", self._stored(t)), self._convolution(t))

    def read_bits(self) -> int:
        """k (1 + d_c) numbers, scores at the accumulators' width, for single tokens chosen for all
        heads at once; for blocks H k (d_v + 3): score, partial sum, denominator and maximum of the
        k best of each head (theory.md, section 1).
        """
        if self.block == 1:
            return self.topk * (self.accumulator_bits + self.kv_numbers * self.p)
        return self.heads * self.topk * (self.dv + 3) * self.accumulator_bits

    def open_bits(self, t: int) -> int:
        return self._stored(min(t, self.block - 1)).total

    def seen(self) -> Growth:
        """The tokens that the indexer chooses."""
        return tokens(self.topk * self.block)

    def held(self) -> Growth:
        return tokens()

    def opened(self) -> Growth:
        """One choice for all heads of single tokens; of blocks each head may have its own."""
        heads = 1 if self.block == 1 else self.heads // self.kv
        return tokens(heads * self.topk * self.block)

    def work(self) -> Growth:
        """And the indexer's scores of every token."""
        return super().work() + tokens() * (2 * self.index_heads * self.index_dim)

    def kept(self) -> Growth:
        return super().kept() + tokens() * (self.index_dim * self.p)

    def fetched(self) -> Growth:
        return super().fetched() + tokens() * (self.index_dim * self.p)

    def assumptions(self) -> tuple[str, ...]:
        who = (
            "one choice for all heads" if self.block == 1 else "each head may choose its own blocks"
        )
        return (
            *super().assumptions(),
            (
                f"the indexer chooses {self.topk:,}"
                f" {'tokens' if self.block == 1 else f'blocks of {self.block:,} tokens'}; {who}"
            ),
        )

    @property
    def token_choice(self) -> TokenChoice | None:
        if self.block > 1 or not self.free_scores or not self.formats <= EXACT_FORMATS:
            return None
        return TokenChoice(self.topk, self.index_dim, self.head)

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"topk": "topk"} if self.block == 1 else {"topk": "topk", "block": "block"}
