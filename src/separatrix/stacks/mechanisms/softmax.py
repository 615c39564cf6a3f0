"""Softmax attention over stored keys and values, whatever it reads of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from separatrix.core.errors import SizeError
from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.formats import NumberFormat, summed_in
from separatrix.core.numbers.growth import Growth, tokens
from separatrix.core.numbers.rotary import Rotation
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    CacheItem,
    CacheKind,
    Head,
    Heads,
    HeadShape,
    Mechanism,
    Reach,
    Stores,
    choice,
    flag,
    integer,
    number_format,
    positions_field,
    rotation_scaling,
)


@dataclass(frozen=True, kw_only=True)
class Accumulating(Mechanism):
    """Numerators, denominator and running maximum of a softmax.

    The defaults are what this project's mixers and FlashAttention do;
    `tests/contract/test_accumulators.py` holds the two together.
    """

    accumulator: str | None = number_format(
        None, "number format of the softmax accumulators; fp32, or format if wider, if not given"
    )
    running_max: bool = flag(True, "whether the accumulator also carries a running maximum")

    @property
    def accumulator_format(self) -> str:
        """The number format in which the softmax sums."""
        return self.accumulator or summed_in(self.format)

    @property
    def accumulator_bits(self) -> int:
        """Bits per number of the accumulators."""
        return NumberFormat(self.accumulator_format).bits

    @cached_property
    def formats(self) -> frozenset[str]:
        return super().formats | {self.accumulator_format}

    def assumptions(self) -> tuple[str, ...]:
        what = "numerators, denominator and running maximum"
        if not self.running_max:
            what = "numerators and denominator"
        text = f"softmax accumulators ({what}) hold {self.accumulator_bits} bits per number"
        usual = NumberFormat(summed_in(self.format)).bits
        if self.accumulator_bits < usual or not self.running_max:
            text += (
                "; this is less than the mixers here and FlashAttention keep"
                f" ({usual} bits and a running maximum)"
            )
        own = self._assumes.format(**self.sizes())
        return (text, own) if own else (text,)


@dataclass(frozen=True, kw_only=True)
class Rotated(Accumulating):
    """Softmax attention whose queries and keys may be turned by their places."""

    rope: bool = flag(
        False, "whether queries and keys are rotated by their places (RoPE)", alters=True
    )
    rope_base: int = integer(10_000, "base of the rotation's angles (rope_theta)")
    rope_dim: int | None = integer(
        None, "rotated numbers of a query or key, the first ones; all if not given", alters=True
    )
    rope_scaling: str | None = rotation_scaling()
    positions: str = positions_field()

    def _check(self) -> None:
        if self.rotation is not None and self.rotation.dims > self._turnable:
            raise SizeError(
                f"{self.name}: rope_dim={self.rope_dim} is more than head_dim={self._turnable}"
            )

    @property
    def _turnable(self) -> int:
        """Numbers of a query or key."""
        return self.sizes()["head_dim"]

    @cached_property
    def rotation(self) -> Rotation | None:
        if not self.rope:
            return None
        dims = self._turnable if self.rope_dim is None else self.rope_dim
        return Rotation(self.rope_base, dims, self.rope_scaling)


SINK = "whether every softmax has one learned score more per head, of a value of 0 (attention sink)"


@dataclass(frozen=True, kw_only=True)
class Softmax(Rotated, Heads):
    """Grouped softmax attention; which tokens are seen is up to the subclass."""

    kv_heads: int | None = integer(None, "number of key-value heads (GQA); heads if not given")
    softcap: int = integer(
        0, "scores are softcap tanh(score / softcap) (Gemma 2); 0: not capped", alters=True
    )
    bounded: bool = flag(
        False,
        "whether scores are bounded whatever the weights: queries and keys are clipped (DBRX), or"
        " scaled to one length that is not learned (nanochat)",
        alters=True,
    )

    @property
    def kv(self) -> int:
        return self.heads if self.kv_heads is None else self.kv_heads

    def _check(self) -> None:
        self._must_divide("kv_heads", self.kv, self.heads)
        super()._check()

    @property
    def free_scores(self) -> bool:
        return not self.softcap and not self.bounded

    @property
    def head_shape(self) -> HeadShape:
        return HeadShape(self.heads, self.head_dim, self.kv)

    @property
    def head(self) -> Head:
        """The room of one head."""
        return Head(self.head_dim, self.dv, self.format)

    @property
    def kv_numbers(self) -> int:
        """Numbers of keys and values per token."""
        return self.kv * (self.head_dim + self.dv)

    def _keys_values(self, tokens: int) -> Bits:
        return Bits.of(tokens * self.kv_numbers, self.p)

    @property
    def convolved(self) -> int:
        return self.heads * self.head_dim + self.kv_numbers

    @property
    def span(self) -> int | None:
        """Tokens of a window or chunk; None where every token is seen."""
        return self.sizes().get("size")

    @property
    def reach(self) -> Reach | None:
        found = super().reach
        return found and found._replace(window=(self.span or 1) - 1)

    def seen(self) -> Growth:
        """Keys that a query meets, each with a value. In a chunk, those at its end: right after a
        border fewer matter, but caches are allotted for a whole one.
        """
        return tokens(self.span)

    def held(self) -> Growth:
        """Keys with values that are kept for each head: those that are seen, unless a class says
        otherwise.
        """
        return self.seen()

    def opened(self) -> Growth:
        """Keys with values that are read for each head of them, whichever query heads ask."""
        return self.seen()

    def work(self) -> Growth:
        """Scores and weighted values, and the convolution."""
        scored = self.seen() * (2 * self.heads * (self.head_dim + self.dv))
        return scored + Growth(2 * self.conv * self.convolved)

    def stores(self) -> Stores:
        kept = (self.held() * self.kv_numbers, self.p)
        kind: CacheKind = "window" if self.group == "windowed" else "kv"
        return {kind: [kept], "convolution": [(self._buffer, self.p)]}

    def fetched(self) -> Growth:
        """Beside what is kept: only those that are opened."""
        return self.kept() + (self.opened() - self.held()) * (self.kv_numbers * self.p)


NORMS = ("none", "head", "each", "all", "other")
GATES = ("none", "sigmoid", "head")


@dataclass(frozen=True, kw_only=True)
class GatedSoftmax(Softmax):
    """Softmax attention with QK-norm and an output gate, where they are asked for."""

    qk_norm: str = choice(
        "none",
        NORMS,
        "RMS norm of queries and keys before rotation: none, of each head with one vector of"
        " weights for all (Qwen3), of each head with weights of its own, or of all heads together"
        " (OLMo 2); other: a layer norm, or a norm behind the rotation (HunYuan)",
        alters=True,
    )
    gate: str = choice(
        "none",
        GATES,
        "what multiplies the heads' outputs: nothing, sigmoid of a map of x for every number"
        " (Qwen3-Next), or one for every head",
        alters=True,
    )

    @property
    def free_scores(self) -> bool:
        # a norm that takes the mean away, or meets keys of unlike roundings, is not worked out
        return super().free_scores and self.qk_norm != "other"

    @property
    def normed(self) -> bool:
        return self.qk_norm != "none"

    def read_bits(self) -> int:
        """H (d_v + 1) p; with a running maximum H (d_v + 2) p (theory.md, section 1): what one
        query returns, once decays are fixed (FoX), and whoever made the keys.
        """
        if not self.reading:
            return 0
        return self.heads * (self.dv + 1 + self.running_max) * self.accumulator_bits

    @property
    def settles_after(self) -> int | None:
        """Of a window, which then sees one token only, unless places tell them apart. None for a
        learned sink, which section 10 leaves out.
        """
        placed = self.rotation is not None or self.positions in ("alibi", "unknown")
        if placed or self.span is None or self.sizes().get("sink"):
            return None
        return self.span + max(1, self.conv) - 2


@dataclass(frozen=True, kw_only=True)
class Full(GatedSoftmax, row="full"):
    """Full causal softmax attention: y_i = sum_j a_ij V x_j, a_ij = exp(<Q x_i, K x_j>) / sum_j'
    exp(<Q x_i, K x_j'>).
    """

    sink: bool = flag(False, SINK, alters=True)
    causal: bool = flag(
        True,
        "whether tokens see no later ones; false: every token sees the whole prompt, as in an"
        " encoder: it has no cache, and of theorems `encoder` alone is about it",
        alters=True,
    )

    @property
    def left_to_right(self) -> bool:
        return self.causal

    @property
    def counts(self) -> bool:
        """Whether it adds up in 32 bits or more, in formats whose rounding is worked out."""
        return self.formats <= EXACT_FORMATS and self.accumulator_bits >= 32

    @property
    def averages(self) -> bool:
        """Whether it is shown to weigh all tokens so far alike, and counts."""
        plain = self.causal and not self.normed and self.rotation is None and self.free_scores
        return plain and self.counts and self.format != "fp16"

    def _must_be_causal(self, asked: str) -> None:
        """Raises SizeError where tokens see later ones."""
        if not self.causal:
            raise SizeError(
                f"{self.name}: causal=false: every token sees the whole prompt, so that there is no"
                f" {asked}"
            )

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        self._must_be_causal("cache")
        return super().cache(t)

    def read_bits(self) -> int:
        self._must_be_causal("prefix that a later token reads")
        return super().read_bits()

    @cached_property
    def retrieval_head(self) -> Head | None:
        # what a cap or a bound leaves of a lead is not worked out
        known = self.causal and self.free_scores and self.formats <= EXACT_FORMATS
        return self.head if known else None


@dataclass(frozen=True, kw_only=True)
class Window(GatedSoftmax, row="window"):
    """Softmax attention to the last `size` tokens (the token itself included)."""

    size: int = integer(128, "tokens seen, the token itself included")
    sink: bool = flag(False, SINK, alters=True)
    shared: bool = flag(
        False, "whether one vector per head is key and value at once, stored once (DeepSeek-V4)"
    )

    def _check(self) -> None:
        super()._check()
        if self.shared and self.dv != self.head_dim:
            raise SizeError(
                f"window: value_dim={self.dv} and head_dim={self.head_dim}; a key that is the value"
                " too has one dimension"
            )

    @property
    def kv_numbers(self) -> int:
        return self.kv * self.head_dim if self.shared else super().kv_numbers

    def within(self, tokens: int) -> Mechanism:
        return self if tokens > self.size or self.shared else _unbounded(self)

    @property
    def _handed_on(self) -> int:
        # keys must tell places and values bits: one vector cannot be both
        return self.dv if self.size >= 2 and not self.shared and self.free_scores else 0


@dataclass(frozen=True, kw_only=True)
class Chunked(Softmax, row="chunked"):
    """Softmax attention within consecutive chunks of `size` tokens; nothing is seen across a
    border between chunks.
    """

    size: int = integer(128, "tokens per chunk")

    @property
    def reach(self) -> Reach:
        return Reach(before=max(0, self.conv - 1), chunk=self.size)

    def within(self, tokens: int) -> Mechanism:
        return self if tokens > self.size else _unbounded(self)


def _unbounded(part: Softmax) -> Full:
    return Full(**{k: v for k, v in part.sizes().items() if k not in ("size", "shared")})


@dataclass(frozen=True, kw_only=True)
class Fox(GatedSoftmax, row="fox"):
    """Forgetting attention: full attention whose score of an earlier token falls by the logarithms
    of the forget gates of all tokens since then.
    """

    gate_format: str | None = number_format(
        None,
        "number format of stored forget gates, as logarithms; fp32, or format if wider, if not"
        " given",
    )

    @property
    def gate_bits(self) -> int:
        """Bits per stored forget gate."""
        return NumberFormat(self.gate_format or summed_in(self.format)).bits

    @cached_property
    def formats(self) -> frozenset[str]:
        return super().formats | {self.gate_format or summed_in(self.format)}

    def stores(self) -> Stores:
        whole = super().stores()
        return {**whole, "kv": [*whole["kv"], (tokens() * self.heads, self.gate_bits)]}

    def fed_bits(self, t: int) -> int:
        """And one sum of log gates per head: what a token takes of an earlier one depends on the
        gates between them, through their sum alone (docs/theory.md, section 1).
        """
        return super().fed_bits(t) + self.heads * self.accumulator_bits * bool(t)

    def work(self) -> Growth:
        """As full attention, and a sum of gates and one addition per score."""
        return super().work() + tokens() * (2 * self.heads)

    def assumptions(self) -> tuple[str, ...]:
        said = (
            "forget gates enter scores as sums of their logarithms, one number of"
            f" {self.accumulator_bits} bits per head"
        )
        return (*super().assumptions(), said)

    @cached_property
    def retrieval_head(self) -> Head | None:
        # gates of exactly 1 make it full attention: softplus of a bias below -104 is 0 in fp32
        return self.head if self.free_scores and self.formats <= EXACT_FORMATS else None


@dataclass(frozen=True, kw_only=True)
class Reusing(GatedSoftmax):
    """Queries of its own over the keys and values of an earlier layer: it keeps nothing."""

    sink: bool = flag(False, SINK, alters=True)

    def stores(self) -> Stores:
        return {}

    def fetched(self) -> Growth:
        return self.opened() * (self.kv_numbers * self.p)


@dataclass(frozen=True, kw_only=True)
class Reused(Reusing, row="reused"):
    """Full softmax attention over the keys and values of an earlier layer: queries are its own,
    and it keeps nothing.
    """


@dataclass(frozen=True, kw_only=True)
class ReusedWindow(Reusing, row="reused_window"):
    """Sliding-window attention over the keys and values that an earlier window keeps: whatever it
    sees of a prefix is in that layer's cache, whose own reach is in what comes in here, too.
    """

    size: int = integer(128, "tokens seen, the token itself included")
