"""Full softmax attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.growth import Growth, tokens
from separatrix.stacks.mechanisms.base import EXACT_FORMATS, CacheItem, Facts, Head, LayerKind, flag
from separatrix.stacks.mechanisms.gated_softmax import GatedSoftmax
from separatrix.stacks.mechanisms.softmax import KEYS_VALUES, SINK


@dataclass(frozen=True, kw_only=True)
class Full(GatedSoftmax):
    """Full causal softmax attention: y_i = sum_j a_ij V x_j, a_ij = exp(<Q x_i, K x_j>) / sum_j'
    exp(<Q x_i, K x_j'>).
    """

    name: ClassVar[str] = "full"
    title: ClassVar[str] = "full attention"
    symbol: ClassVar[str] = "f"
    group: ClassVar[LayerKind] = "full"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "Vaswani et al. 2017; [Ye26] section 2"
    facts: ClassVar[Facts] = Facts(
        carried=f"{KEYS_VALUES} t",
        read="heads (value_dim + 1 + running_max)",
        elsewhere="transformers: full_attention, attention; fla: Attention",
    )

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

    def _must_be_causal(self, asked: str) -> None:
        """Raises SizeError where tokens see later ones."""
        if not self.causal:
            raise SizeError(
                f"{self.name}: causal=false: every token sees the whole prompt, so that there is no"
                f" {asked}"
            )

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        self._must_be_causal("cache")
        return (CacheItem("kv", self._keys_values(t)), self._convolution(t))

    def read_bits(self) -> int:
        """H (d_v + 1) p; with a running maximum H (d_v + 2) p (theory.md, section 1)."""
        self._must_be_causal("prefix that a later token reads")
        return self.heads * (self.dv + 1 + self.running_max) * self.accumulator_bits

    def seen(self) -> Growth:
        return tokens()

    @property
    def card_title(self) -> str:
        return "full"

    @property
    def retrieval_head(self) -> Head | None:
        # what a cap or a bound leaves of a lead is not worked out
        known = self.causal and self.free_scores and self.formats <= EXACT_FORMATS
        return self.head if known else None
