"""Blocks of tokens with keys that are pooled once and stored: what the choice of blocks reads."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.numbers.formats import NumberFormat, summed_in
from separatrix.stacks.mechanisms.base import integer
from separatrix.stacks.mechanisms.softmax import Softmax


@dataclass(frozen=True, kw_only=True)
class Pooled(Softmax):
    """Attention to the blocks whose pooled keys score highest."""

    block: int = integer(32, "tokens per block B")
    topk: int = integer(4, "blocks read in full per head, k")

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
