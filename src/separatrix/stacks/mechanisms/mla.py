"""Multi-head latent attention (MLA): full attention whose cache holds one latent per token for
all heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.growth import Growth, tokens
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    CacheItem,
    Facts,
    Head,
    LayerKind,
    convolution,
)
from separatrix.stacks.mechanisms.latent_cache import LatentCache


@dataclass(frozen=True, kw_only=True)
class Latent(LatentCache):
    """MLA: k_j = (W_k c_j, r_j), v_j = W_v c_j from a cached latent c_j and a shared rotated key
    r_j; full causal softmax attention.
    """

    name: ClassVar[str] = "mla"
    title: ClassVar[str] = "multi-head latent attention"
    symbol: ClassVar[str] = "a"
    group: ClassVar[LayerKind] = "full"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "DeepSeek-AI 2024 (DeepSeek-V2), arXiv 2405.04434"
    facts: ClassVar[Facts] = Facts(
        carried="(latent + rope_dim) t",
        read="heads (max(value_dim, latent) + 1 + running_max)",
        elsewhere="transformers: deepseek_v2, deepseek_v3; fla: MultiheadLatentAttention",
    )

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (
            CacheItem("kv", Bits.of(t * self.kv_numbers, self.p)),
            convolution(self._channels, self.conv, t, self.p),
        )

    def read_bits(self) -> int:
        """H (max(d_v, latent) + 1) p, or + 2 with a running maximum: kernels accumulate values,
        or latents that are mapped to values later.
        """
        return (
            self.heads * (max(self.dv, self.latent) + 1 + self.running_max) * self.accumulator_bits
        )

    def work(self) -> Growth:
        """As decoding does it: scores against latents and rotated keys, latents summed, and the
        convolution.
        """
        return self._scored(2 * self.latent + self.rope_dim)

    def prefill_work(self) -> Growth:
        """Over keys and values made of the latents, once for each token."""
        return self._scored(self.head_dim + self.rope_dim + self.dv)

    def _scored(self, numbers: int) -> Growth:
        return tokens() * (2 * self.heads * numbers) + Growth(2 * self.conv * self._channels)

    def kept(self) -> Growth:
        return tokens() * (self.kv_numbers * self.p) + self._buffered(self.conv)

    def assumptions(self) -> tuple[str, ...]:
        return (
            self.sums_assumed,
            (
                "latent attention accumulates values or latents, the larger of the two counted"
                f" ({max(self.dv, self.latent):,} numbers per head)"
            ),
        )

    @property
    def retrieval_head(self) -> Head | None:
        head = Head(self.head_dim, self.dv, self.format, self.latent)
        return head if self.formats <= EXACT_FORMATS else None
