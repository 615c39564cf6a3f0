"""Attention to blocks of tokens, chosen by keys that are pooled once and stored."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.errors import SizeError
from separatrix.core.numbers.formats import NumberFormat, summed_in
from separatrix.core.numbers.growth import NOTHING, Growth, tokens
from separatrix.stacks.mechanisms.base import OpenedBlocks, Stores, choice, flag, integer
from separatrix.stacks.mechanisms.softmax import Softmax


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
        return (
            *super().assumptions(),
            (
                f"step-by-step decoding: what a block is pooled to is stored in {self.rounded_to};"
                f" a parallel form that carries it in {summed_in(self.format)} is another model"
            ),
        )


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
    def channels(self) -> int:
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
