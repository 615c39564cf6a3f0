"""Recurrences whose state is a matrix per head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.growth import Growth
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    CacheItem,
    Slots,
    Turning,
    Varied,
    choice,
    convolution,
    integer,
)
from separatrix.stacks.mechanisms.heads import Heads
from separatrix.stacks.mechanisms.recurrent_state import Stateful


class Matrices(NamedTuple):
    """A state of one matrix per head, and how many heads share queries and keys."""

    heads: int
    key_heads: int
    key_dim: int
    value_dim: int


MATRIX = "heads head_dim value_dim"
"""The numbers of one matrix per head, as tables write them."""
NEGATIVE = (
    "whether b_i lies in (0, 2) instead of (0, 1), so that I - b_i k_i k_i^T has eigenvalues down"
    " to -1 (arXiv 2411.12537)"
)


@dataclass(frozen=True, kw_only=True)
class MatrixState(Stateful, Heads):
    """A state of d x d_v numbers per head, with an optional short convolution on q, k, v."""

    operations: ClassVar[int] = 5
    """Operations per number of the state and token: outer product and read 2 each, decay 1,
    delta rule 2.
    """

    delta_rule: ClassVar[bool] = False
    """Whether a token overwrites what its key finds, as far as its b in [0, 1] says."""

    key_heads: int | None = integer(None, "number of query-key heads; heads if not given")
    gate: str = choice(
        "none",
        ("none", "norm", "silu", "sigmoid"),
        "what follows each head, position-wise: nothing, an RMS norm, or the norm times silu or"
        " sigmoid of a map of x",
        alters=True,
    )

    @property
    def qk(self) -> int:
        return self.heads if self.key_heads is None else self.key_heads

    def _check(self) -> None:
        if self.heads % self.qk:
            raise SizeError(
                f"{self.name}: key_heads={self.qk} does not divide heads={self.heads}; choose a"
                " divisor"
            )

    @property
    def matrices(self) -> Matrices:
        return Matrices(self.heads, self.qk, self.head_dim, self.dv)

    @property
    def state_numbers(self) -> int:
        """Numbers in the recurrent state."""
        return self.heads * self.head_dim * self.dv

    @property
    def _channels(self) -> int:
        return 2 * self.qk * self.head_dim + self.heads * self.dv

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (self._state(self.state_numbers), self._convolution(t))

    def work(self) -> Growth:
        return Growth(self.operations * self.state_numbers + 2 * self.conv * self._channels)

    @property
    def turning(self) -> Turning | None:
        reflections = self._reflections
        if not reflections or not self.formats <= EXACT_FORMATS:
            return None
        bare = not self.conv and self.gate == "none"
        return Turning(reflections, self.qk, self.head_dim, self.dv, bare)

    @property
    def _reflections(self) -> int:
        """Updates of a token that can be reflections: of the delta rule, with b_i up to 2."""
        return 0

    @property
    def _handed_on(self) -> int:
        return self.dv

    @property
    def _overwritten(self) -> Slots | None:
        """Its slots where its update is the delta rule: a key of length 1, with b = 1."""
        return Slots(self.head_dim, self.dv) if self.plain else None

    @property
    def latched(self) -> int:
        # one key for all tokens: b = 1 overwrites, and b = 0 with a decay of 1 keeps
        known = self.delta_rule and self.formats <= EXACT_FORMATS
        return self.heads * self.dv if known else 0

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"state": "head_dim"}

    def resized(self, **sizes: Any) -> Self:
        """At other sizes; another key dimension leaves the dimension of the values as it was."""
        if sizes.get("head_dim", self.head_dim) != self.head_dim:
            sizes = {"value_dim": self.dv} | sizes
        return super().resized(**sizes)

    def _convolution(self, t: int) -> CacheItem:
        return convolution(self._channels, self.conv, t, self.p)
