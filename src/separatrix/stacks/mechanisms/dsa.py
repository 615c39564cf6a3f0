"""DeepSeek sparse attention (DSA)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.growth import Growth, tokens
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    CacheItem,
    Facts,
    Head,
    LayerKind,
    TokenChoice,
    Varied,
    convolution,
    integer,
)
from separatrix.stacks.mechanisms.latent_cache import LatentCache


@dataclass(frozen=True, kw_only=True)
class DSA(LatentCache):
    """DeepSeek sparse attention: latent attention to the `topk` tokens that a lightning indexer
    with its own small key per token scores best.
    """

    name: ClassVar[str] = "dsa"
    title: ClassVar[str] = "DeepSeek sparse attention"
    symbol: ClassVar[str] = "D"
    group: ClassVar[LayerKind] = "indexed"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = (
        "DeepSeek-AI 2025 (DeepSeek-V3.2), arXiv 2512.02556; theory.md, section 1: top-k token"
        " selection shared over heads"
    )
    facts: ClassVar[Facts] = Facts(
        carried="(latent + rope_dim + index_dim) t",
        read="topk (1 + latent + rope_dim)",
        elsewhere="transformers: deepseek_v32, glm_moe_dsa; indexed_attention",
    )

    query_latent: int | None = integer(
        None, "numbers of a latent that queries come from (q_lora_rank); none if not given"
    )
    index_heads: int = integer(1, "query heads of the indexer")
    index_dim: int = integer(64, "numbers of the indexer's key per token")
    topk: int = integer(64, "tokens read")

    def _check(self) -> None:
        super()._check()
        if self.rope and self.rope_dim > self.index_dim:
            raise SizeError(
                f"dsa: index_dim={self.index_dim} is less than rope_dim={self.rope_dim}, which"
                " turns the indexer's keys too"
            )

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (
            CacheItem("kv", Bits.of(t * (self.kv_numbers + self.index_dim), self.p)),
            convolution(self._channels, self.conv, t, self.p),
        )

    def read_bits(self) -> int:
        """k (1 + d_c) numbers, scores at the accumulators' width: one choice for all heads
        (theory.md, section 1).
        """
        return self.topk * (self.accumulator_bits + self.kv_numbers * self.p)

    def work(self) -> Growth:
        """The indexer scores every token; scores against latents and rotated keys, and sums of
        latents, take the chosen ones.
        """
        chosen = tokens(self.topk) * (2 * self.heads * (2 * self.latent + self.rope_dim))
        indexed = tokens() * (2 * self.index_heads * self.index_dim)
        return chosen + indexed + Growth(2 * self.conv * self._channels)

    def kept(self) -> Growth:
        return self._with(tokens())

    def fetched(self) -> Growth:
        return self._with(tokens(self.topk))

    def _with(self, latents: Growth) -> Growth:
        """Bits of so many latents, of all keys of the indexer, and of the convolution."""
        keys = tokens() * (self.index_dim * self.p)
        return latents * (self.kv_numbers * self.p) + keys + self._buffered(self.conv)

    @property
    def normed(self) -> bool:
        # the latent of queries has a norm
        return self.query_latent is not None

    @property
    def token_choice(self) -> TokenChoice | None:
        """Bits stand beside their negatives in dimensions that no rotation turns: keys of mean 0
        and one length, which a LayerNorm scales alike.
        """
        if not self.formats <= EXACT_FORMATS:
            return None
        still = self.index_dim - (0 if self.rotation is None else self.rope_dim)
        head = Head(self.head_dim, self.dv, self.format, self.latent)
        return TokenChoice(self.topk, still // 2, head, self.query_latent)

    def assumptions(self) -> tuple[str, ...]:
        return (
            self.sums_assumed,
            f"the indexer chooses {self.topk:,} tokens; one choice for all heads",
        )

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"topk": "topk"}
