"""Heads with keys and values: what most mechanisms declare."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.stacks.mechanisms.base import HeadShape, Mechanism, integer


@dataclass(frozen=True, kw_only=True)
class Heads(Mechanism):
    """Sizes of heads with keys, values and an optional short convolution on q, k, v."""

    heads: int = integer(4, "number of heads H")
    head_dim: int = integer(64, "dimension of queries and keys per head d")
    value_dim: int | None = integer(None, "dimension of values per head; head_dim if not given")
    conv: int = integer(
        0, "kernel size of the short convolution on q, k, v; 0 for none", alters=True
    )

    @property
    def dv(self) -> int:
        return self.head_dim if self.value_dim is None else self.value_dim

    @property
    def inner_width(self) -> int:
        return self.heads * max(self.head_dim, self.dv)

    @property
    def head_shape(self) -> HeadShape:
        return HeadShape(self.heads, self.head_dim)
