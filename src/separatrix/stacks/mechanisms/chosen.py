"""Attention to a cached latent per token, to what an indexer with keys of its own chooses, to
compressed entries, or to blocks of tokens that keys choose, pooled once and stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from separatrix.core.errors import SizeError
from separatrix.core.numbers.formats import NumberFormat, summed_in
from separatrix.core.numbers.growth import NOTHING, Growth, tokens
from separatrix.core.numbers.rotary import Rotation
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    Head,
    Heads,
    Mechanism,
    OpenedBlocks,
    Stores,
    TokenChoice,
    Varied,
    choice,
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
    def convolved(self) -> int:
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
        return tokens() * (2 * self.heads * numbers) + Growth(2 * self.conv * self.convolved)

    def assumptions(self) -> tuple[str, ...]:
        said = (
            "latent attention accumulates values or latents, the larger of the two counted"
            f" ({max(self.dv, self.latent):,} numbers per head)"
        )
        return (*super().assumptions(), said)

    @cached_property
    def retrieval_head(self) -> Head | None:
        head = Head(self.head_dim, self.dv, self.format, self.latent)
        return head if self.formats <= EXACT_FORMATS else None


@dataclass(frozen=True, kw_only=True)
class Chosen(LatentCache):
    """Latent attention to the `topk` tokens that an indexer chose."""

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
        return chosen + Growth(2 * self.conv * self.convolved)

    def fetched(self) -> Growth:
        """Of the latents, only the chosen ones."""
        return self.kept() + (tokens(self.topk) - tokens()) * (self.kv_numbers * self.p)

    @property
    def normed(self) -> bool:
        # the latent of queries has a norm
        return self.query_latent is not None


@dataclass(frozen=True, kw_only=True)
class SharedChoice(Chosen, row="dsa_shared"):
    """DeepSeek sparse attention to the tokens that an earlier layer's indexer chose (GLM-5.2): its
    latents are its own, and of the indexer it keeps nothing.
    """


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
        turned, asking = 0 if self.rotation is None else self.rope_dim, self.query_latent
        head = Head(self.head_dim, self.dv, self.format, self.latent)
        told = 0 < turned <= (asking or turned)
        return TokenChoice(self.topk, (self.index_dim - turned) // 2, head, asking, told)


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
        """One choice for all heads of single tokens; of blocks each head of the indexer has its
        own, for a group of heads.
        """
        choices = 1 if self.block == 1 else -(-self.index_heads // self.kv)
        return tokens(choices * self.topk * self.block)

    def assumptions(self) -> tuple[str, ...]:
        one = self.block == 1 or self.index_heads == 1
        who = (
            "one choice for all heads"
            if one
            else f"{self.index_heads:,} choices for groups of heads"
        )
        said = (
            f"the indexer chooses {self.topk:,}"
            f" {'tokens' if self.block == 1 else f'blocks of {self.block:,} tokens'}; {who}"
        )
        return (*super().assumptions(), said)

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


@dataclass(frozen=True, kw_only=True)
class Pooled(Softmax):
    """Attention to the blocks whose pooled keys score highest."""

    block: int = integer(32, "tokens per block B")
    topk: int = integer(4, "blocks read in full per head, k")

    def message_bits(self) -> int:
        """c of Theorem II: one compressed key and value per head, in bits."""
        return self.kv_numbers * self.p

    def read_bits(self) -> int:
        """H ((d_v + 1) + k (d_v + 2)) p: compressed accumulator, then score and partial sum of the
        k best blocks (theory.md, section 1); one number more in each with a running maximum.
        """
        carried = self.dv + 1 + self.running_max
        return self.heads * (carried + self.topk * (carried + 1)) * self.accumulator_bits

    @property
    def opened_blocks(self) -> OpenedBlocks | None:
        """Rotation and gates change nothing: messages may depend on the place of their block, and
        gates on the query's token only. A convolution lets them depend on the block before.
        """
        if self.conv:
            return None
        window = self.sizes().get("window", 0)
        return OpenedBlocks(self.heads, self.block, self.topk, self.message_bits(), window)

    @property
    def rounded_to(self) -> str | None:
        return self.format if self.p < NumberFormat(summed_in(self.format)).bits else None

    def drift(self, t: int) -> str | None:
        if self.rounded_to is None or t // self.block <= self.topk:
            return None
        return (
            f"blocks are chosen by pooled keys, stored in {self.rounded_to}, and where two score"
            " nearly alike another one is read"
        )

    def assumptions(self) -> tuple[str, ...]:
        if self.rounded_to is None:
            return super().assumptions()
        said = (
            f"step-by-step decoding: what a block is pooled to is stored in {self.rounded_to};"
            f" a parallel form that carries it in {summed_in(self.format)} is another model"
        )
        return (*super().assumptions(), said)


@dataclass(frozen=True, kw_only=True)
class Sparse(Pooled, row="sparse"):
    """(B, k)-sparse attention: every full block of B tokens is compressed to one key and value per
    head; the k best blocks and the open block are read in full; y = lambda y_compressed + (1 -
    lambda) y_selected. Options: NSA's window as a third branch, and gates.
    """

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

    def open_bits(self, t: int) -> int:
        """The open block and the window: the last tokens, as many as the longer of the two
        holds.
        """
        return self._keys_values(min(t, max(self.block - 1, self.window))).total

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


@dataclass(frozen=True, kw_only=True)
class MoBA(Pooled, row="moba"):
    """Mixture of block attention: every full block of B tokens has its mean key; the k blocks whose
    mean key scores highest and the open block are read in full, in one softmax. The paper counts
    the own block among its k, here it comes beside them.
    """

    topk: int = integer(4, "blocks read in full per head beside its own, k")

    def stores(self) -> Stores:
        whole = super().stores()
        means = (tokens(every=self.block) * (self.kv * self.head_dim), self.p)
        return {**whole, "kv": [*whole["kv"], means]}

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


@dataclass(frozen=True, kw_only=True)
class NSA(Pooled, row="nsa"):
    """Native sparse attention: three branches, to compressed blocks, to the blocks of tokens that
    compressed scores select for a group of heads, and to a window, each with a gate.
    """

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
        return self._pooled().at(t)

    def stores(self) -> Stores:
        all_ = (tokens() + self._pooled()) * self.kv_numbers
        near = ((self._near()) * self.kv_numbers, self.p)
        return {
            "kv": [(all_, self.p)],
            "window": [near],
            "convolution": [(self._buffer, self.p)],
        }

    @property
    def kv_sets(self) -> int:
        """Sets of keys and values that a token has."""
        return 1 if self.shared else 3

    @property
    def convolved(self) -> int:
        return self.heads * self.head_dim + self.kv_sets * self.kv_numbers

    def open_bits(self, t: int) -> int:
        """Windows, blocks not yet full, and selected blocks whose scores a later compressed block
        may still change. Where heads share a choice, everything: the sum of their shares depends on
        what each head finds later, and with it which blocks of a prefix are best.
        """
        if self.kv < self.heads:
            return self.cache_bits(t)
        near = self._keys_values(min(t, max(self.block + self.selected - 2, self.window)))
        return (near + self._keys_values(self._near().at(t))).total

    def seen(self) -> Growth:
        """Compressed blocks, the selected ones and the window."""
        return self._pooled() + tokens(self.topk * self.selected) + tokens(self.window)

    def held(self) -> Growth:
        return tokens() + self._pooled() + self._near()

    def _near(self) -> Growth:
        """The window's own, and what waits for its compressed block."""
        return NOTHING if self.shared else tokens(self.window) + tokens(self.block - 1)

    def _pooled(self) -> Growth:
        return tokens(every=self.stride, first=self.block)

    @property
    def opened_blocks(self) -> OpenedBlocks | None:
        """Where compressed and selected blocks are the same ones: messages are compressed keys and
        values, and the choice of a group of heads is a function of them and the query.
        """
        if self.conv or not self.block == self.stride == self.selected:
            return None
        return OpenedBlocks(self.kv, self.block, self.topk, self.message_bits(), self.window)

    def drift(self, t: int) -> str | None:
        if t // self.selected <= self.topk:
            return None
        return super().drift(t * (self.topk + 1) * self.block)

    def assumptions(self) -> tuple[str, ...]:
        return (
            *super().assumptions(),
            "blocks are ranked as exact numbers would rank their shares of compressed attention",
        )
