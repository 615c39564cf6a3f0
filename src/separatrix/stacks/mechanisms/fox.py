"""Forgetting attention (FoX)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.formats import NumberFormat, summed_in
from separatrix.core.numbers.growth import Growth, tokens
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    CacheItem,
    Facts,
    Head,
    LayerKind,
    number_format,
)
from separatrix.stacks.mechanisms.gated_softmax import GatedSoftmax
from separatrix.stacks.mechanisms.softmax import KEYS_VALUES


@dataclass(frozen=True, kw_only=True)
class Fox(GatedSoftmax):
    """Forgetting attention: full attention whose score of an earlier token falls by the logarithms
    of the forget gates of all tokens since then.
    """

    name: ClassVar[str] = "fox"
    title: ClassVar[str] = "forgetting attention"
    symbol: ClassVar[str] = "F"
    group: ClassVar[LayerKind] = "full"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "Lin et al. 2025 (FoX), arXiv 2503.02130"
    facts: ClassVar[Facts] = Facts(
        carried=f"({KEYS_VALUES} + heads) t",
        read="heads (value_dim + 1 + running_max)",
        elsewhere="fla: ForgettingAttention",
    )

    gate_format: str | None = number_format(
        None,
        "number format of stored forget gates, as logarithms; fp32, or format if wider, if not"
        " given",
    )

    @property
    def gate_bits(self) -> int:
        """Bits per stored forget gate."""
        return NumberFormat(self.gate_format or summed_in(self.format)).bits

    @property
    def formats(self) -> frozenset[str]:
        return super().formats | {self.gate_format or summed_in(self.format)}

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        gates = Bits.of(t * self.heads, self.gate_bits)
        return (CacheItem("kv", self._keys_values(t) + gates), self._convolution(t))

    def read_bits(self) -> int:
        """As full attention, once query and decay are fixed: H (d_v + 2) p."""
        return self.heads * (self.dv + 1 + self.running_max) * self.accumulator_bits

    def fed_bits(self, t: int) -> int:
        """And one sum of log gates per head: what a token takes of an earlier one depends on the
        gates between them, through their sum alone (docs/theory.md, section 1).
        """
        return super().fed_bits(t) + self.heads * self.accumulator_bits * bool(t)

    def seen(self) -> Growth:
        return tokens()

    def work(self) -> Growth:
        """As full attention, and a sum of gates and one addition per score."""
        return super().work() + tokens() * (2 * self.heads)

    def kept(self) -> Growth:
        return super().kept() + tokens() * (self.heads * self.gate_bits)

    def fetched(self) -> Growth:
        return self.kept()

    def assumptions(self) -> tuple[str, ...]:
        return (
            *super().assumptions(),
            (
                "forget gates enter scores as sums of their logarithms, one number of"
                f" {self.accumulator_bits} bits per head"
            ),
        )

    @property
    def card_title(self) -> str:
        return "forgetting"

    @property
    def retrieval_head(self) -> Head | None:
        # gates of exactly 1 make it full attention: softplus of a bias below -104 is 0 in fp32
        return self.head if self.free_scores and self.formats <= EXACT_FORMATS else None
