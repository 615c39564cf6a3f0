"""Attention to a cached latent per token, to what an indexer with keys of its own chooses, or to
compressed entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.growth import Growth, tokens
from separatrix.core.numbers.rotary import Rotation
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    Head,
    Heads,
    Mechanism,
    Stores,
    TokenChoice,
    Varied,
    flag,
    integer,
)
from separatrix.stacks.mechanisms.softmax import Rotated, Softmax


@dataclass(frozen=True, kw_only=True)
class LatentCache(Rotated, Heads):
    """A latent c_j and a rotated key r_j that all heads share; k_j = (W_k c_j, r_j), v_j = W_v
    c_j.
    """

    latent: int = integer(512, "numbers of the cached latent per token (kv_lora_rank)")
    rope_dim: int = integer(0, "numbers of the rotated key that all heads share (qk_rope_head_dim)")
    rope: bool = flag(True, "whether the shared key of rope_dim numbers is rotated by its place")

    @property
    def _turnable(self) -> int:
        return self.rope_dim

    @cached_property
    def rotation(self) -> Rotation | None:
        return super().rotation if self.rope_dim else None

    @property
    def rounded_again(self) -> bool:
        # queries may be maps of a latent behind a norm (DeepSeek-V3), which costs what QK-norm does
        return True

    @property
    def kv_numbers(self) -> int:
        """Numbers cached per token, for all heads together."""
        return self.latent + self.rope_dim

    @property
    def channels(self) -> int:
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
        return tokens() * (2 * self.heads * numbers) + Growth(2 * self.conv * self.channels)

    def assumptions(self) -> tuple[str, ...]:
        return (
            *super().assumptions(),
            (
                "latent attention accumulates values or latents, the larger of the two counted"
                f" ({max(self.dv, self.latent):,} numbers per head)"
            ),
        )

    @cached_property
    def retrieval_head(self) -> Head | None:
        head = Head(self.head_dim, self.dv, self.format, self.latent)
        return head if self.formats <= EXACT_FORMATS else None


@dataclass(frozen=True, kw_only=True)
class Chosen(LatentCache):
    """Latent attention to the `topk` tokens that an indexer chose."""

    chooser: ClassVar[str] = "the indexer"
    """Who chose them, in words."""
    query_latent: int | None = integer(
        None, "numbers of a latent that queries come from (q_lora_rank); none if not given"
    )
    topk: int = integer(64, "tokens read")

    def read_bits(self) -> int:
        """k (1 + d_c) numbers, scores at the accumulators' width: one choice for all heads
        (theory.md, section 1).
        """
        return self.topk * (self.accumulator_bits + self.kv_numbers * self.p)

    def work(self) -> Growth:
        """Scores against latents and rotated keys, and sums of latents, take the chosen ones."""
        chosen = tokens(self.topk) * (2 * self.heads * (2 * self.latent + self.rope_dim))
        return chosen + Growth(2 * self.conv * self.channels)

    def fetched(self) -> Growth:
        """Of the latents, only the chosen ones."""
        return self.kept() + (tokens(self.topk) - tokens()) * (self.kv_numbers * self.p)

    @property
    def normed(self) -> bool:
        # the latent of queries has a norm
        return self.query_latent is not None

    def assumptions(self) -> tuple[str, ...]:
        return (
            *super().assumptions(),
            f"{self.chooser} chooses {self.topk:,} tokens; one choice for all heads",
        )


@dataclass(frozen=True, kw_only=True)
class SharedChoice(Chosen, row="dsa_shared"):
    """DeepSeek sparse attention to the tokens that an earlier layer's indexer chose (GLM-5.2): its
    latents are its own, and of the indexer it keeps nothing.
    """

    chooser = "an earlier layer's indexer"


@dataclass(frozen=True, kw_only=True)
class Indexer(Mechanism):
    """An indexer with a small key of its own for each token, which scores all of them."""

    index_heads: int = integer(1, "query heads of the indexer")
    index_dim: int = integer(64, "numbers of the indexer's key per token")

    def stores(self) -> Stores:
        whole = super().stores()
        return {**whole, "kv": [*whole["kv"], (tokens() * self.index_dim, self.p)]}

    def work(self) -> Growth:
        """And the indexer's scores of every token."""
        return super().work() + tokens() * (2 * self.index_heads * self.index_dim)


@dataclass(frozen=True, kw_only=True)
class DSA(Indexer, Chosen, row="dsa"):
    """DeepSeek sparse attention: latent attention to the `topk` tokens that a lightning indexer
    with its own small key per token scores best.
    """

    def _check(self) -> None:
        super()._check()
        if self.rope and self.rope_dim > self.index_dim:
            raise SizeError(
                f"dsa: index_dim={self.index_dim} is less than rope_dim={self.rope_dim}, which"
                " turns the indexer's keys too"
            )

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


@dataclass(frozen=True, kw_only=True)
class Indexed(Indexer, Softmax, row="indexed"):
    """Indexed attention: an indexer with its own small key per token scores the past, and attention
    reads the `topk` best tokens or blocks (MiniMax-M3), the open block always. Over a latent: dsa.
    """

    topk: int = integer(64, "tokens (or blocks) read")
    block: int = integer(1, "tokens per unit that the indexer chooses; 1: single tokens")

    def read_bits(self) -> int:
        """k (1 + d_c) numbers, scores at the accumulators' width, for single tokens chosen for all
        heads at once; for blocks H k (d_v + 3): score, partial sum, denominator and maximum of the
        k best of each head (theory.md, section 1).
        """
        if self.block == 1:
            return self.topk * (self.accumulator_bits + self.kv_numbers * self.p)
        return self.heads * self.topk * (self.dv + 3) * self.accumulator_bits

    def open_bits(self, t: int) -> int:
        return min(t, self.block - 1) * (self.kv_numbers + self.index_dim) * self.p

    def seen(self) -> Growth:
        """The tokens that the indexer chooses."""
        return tokens(self.topk * self.block)

    def held(self) -> Growth:
        return tokens()

    def opened(self) -> Growth:
        """One choice for all heads of single tokens; of blocks each head may have its own."""
        heads = 1 if self.block == 1 else self.heads // self.kv
        return tokens(heads * self.topk * self.block)

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


@dataclass(frozen=True, kw_only=True)
class Compressed(Rotated, row="compressed"):
    """Compressed attention (DeepSeek-V4): every `ratio` tokens leave one entry that is key and
    value at once; attention reads the `topk` entries that an indexer chooses, or all of them (topk
    = 0), and the last `size` tokens uncompressed.
    """

    heads: int = integer(4, "number of heads H")
    head_dim: int = integer(64, "numbers of an entry, which is key and value of every head")
    ratio: int = integer(4, "tokens per compressed entry")
    topk: int = integer(0, "entries read, chosen by the indexer; 0: all")
    index_heads: int = integer(0, "query heads of the indexer; 0 without one")
    index_dim: int = integer(0, "numbers of the indexer's key per entry; 0 without one")
    size: int = integer(128, "tokens of the uncompressed window, the token itself included")
    overlap: bool = flag(False, "whether an entry also takes in the tokens of the entry before")

    def _check(self) -> None:
        if bool(self.topk) != bool(self.index_dim):
            raise SizeError(
                f"compressed: topk={self.topk} and index_dim={self.index_dim}; an indexer needs"
                " both, no indexer needs both 0"
            )
        super()._check()

    @property
    def inner_width(self) -> int:
        return self.heads * self.head_dim

    def stores(self) -> Stores:
        """Entries; the raw window, and content and gate of the tokens that wait for their entry."""
        entries = self._every() * (self.head_dim + self.index_dim)
        # twice as wide, and one entry back, with overlap
        wide = (2 if self.overlap else 1) * (self.head_dim + self.index_dim)
        waiting = tokens((2 * self.ratio if self.overlap else self.ratio) - 1) * (2 * wide)
        near = tokens(self.size) * self.head_dim + waiting
        return {"kv": [(entries, self.p)], "window": [(near, self.p)]}

    def read_bits(self) -> int:
        """k (1 + d) numbers, the score at the accumulators' width, where an indexer chooses;
        else H (d + 1) p, + 1 with a running maximum.
        """
        if self.topk:
            return self.topk * (self.accumulator_bits + self.head_dim * self.p)
        return self.heads * (self.head_dim + 1 + self.running_max) * self.accumulator_bits

    def open_bits(self, t: int) -> int:
        return sum(grown.at(t) * width for grown, width in self._stores["window"])

    def work(self) -> Growth:
        """The indexer scores every entry; attention reads the chosen ones and the window."""
        scored = self._every() * (2 * self.index_heads * self.index_dim)
        return scored + self._seen() * (4 * self.heads * self.head_dim)

    def fetched(self) -> Growth:
        """The indexer's keys of all entries, the chosen entries and the window; what waits for its
        entry is not read.
        """
        keys = self._every() * (self.index_dim * self.p)
        return keys + self._seen() * (self.head_dim * self.p)

    def _every(self) -> Growth:
        return tokens(every=self.ratio)

    def _seen(self) -> Growth:
        chosen = tokens(self.topk, every=self.ratio) if self.topk else self._every()
        return chosen + tokens(self.size)

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"topk": "topk"} if self.topk else {}
