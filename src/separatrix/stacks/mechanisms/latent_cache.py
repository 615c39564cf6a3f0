"""Attention whose keys and values come from one cached latent per token, for all heads."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.errors import SizeError
from separatrix.core.numbers.growth import Growth, tokens
from separatrix.core.numbers.rotary import Rotation
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    Head,
    Heads,
    Stores,
    TokenChoice,
    flag,
    integer,
    positions_field,
    rotation_scaling,
)
from separatrix.stacks.mechanisms.softmax import ROPE_SCALING, Accumulating


@dataclass(frozen=True, kw_only=True)
class LatentCache(Heads, Accumulating):
    """A latent c_j and a rotated key r_j that all heads share; k_j = (W_k c_j, r_j), v_j = W_v
    c_j.
    """

    latent: int = integer(512, "numbers of the cached latent per token (kv_lora_rank)")
    rope_dim: int = integer(0, "numbers of the rotated key that all heads share (qk_rope_head_dim)")
    rope: bool = flag(True, "whether the shared key of rope_dim numbers is rotated by its place")
    rope_base: int = integer(10_000, "base of the rotation's angles (rope_theta)")
    rope_scaling: str | None = rotation_scaling(ROPE_SCALING)
    positions: str = positions_field()

    def _check(self) -> None:
        if self.rope_dim % 2:
            raise SizeError(
                f"{self.name}: rope_dim={self.rope_dim} is odd; rotation turns pairs of dimensions"
            )

    @property
    def rotation(self) -> Rotation | None:
        if not self.rope or not self.rope_dim:
            return None
        return Rotation(self.rope_base, self.rope_dim, self.rope_scaling)

    @property
    def rounded_again(self) -> bool:
        # queries may be maps of a latent behind a norm (DeepSeek-V3), which costs what QK-norm does
        return True

    @property
    def kv_numbers(self) -> int:
        """Numbers cached per token, for all heads together."""
        return self.latent + self.rope_dim

    @property
    def _channels(self) -> int:
        return self.heads * (self.head_dim + self.rope_dim) + self.kv_numbers

    def stores(self) -> Stores:
        latents = (tokens() * self.kv_numbers, self.p)
        return {"kv": [latents], "convolution": [(self._buffer, self.p)]}


@dataclass(frozen=True, kw_only=True)
class Latent(LatentCache, row="mla"):
    """MLA: k_j = (W_k c_j, r_j), v_j = W_v c_j from a cached latent c_j and a shared rotated key
    r_j; full causal softmax attention.
    """

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


@dataclass(frozen=True, kw_only=True)
class DSA(LatentCache, row="dsa"):
    """DeepSeek sparse attention: latent attention to the `topk` tokens that a lightning indexer
    with its own small key per token scores best.
    """

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

    def stores(self) -> Stores:
        whole = super().stores()
        return {**whole, "kv": [*whole["kv"], (tokens() * self.index_dim, self.p)]}

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

    def fetched(self) -> Growth:
        """Of the latents, only the chosen ones."""
        return self.kept() + (tokens(self.topk) - tokens()) * (self.kv_numbers * self.p)

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
