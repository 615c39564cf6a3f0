"""Mamba-2 (SSD)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.growth import Growth
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    CacheItem,
    Facts,
    Varied,
    convolution,
    integer,
)
from separatrix.stacks.mechanisms.matrix_state import Matrices
from separatrix.stacks.mechanisms.recurrent_state import Stateful


@dataclass(frozen=True, kw_only=True)
class Mamba2(Stateful):
    """Mamba-2 (SSD): one scalar decay per head, a state of head_dim x `state` numbers per head."""

    name: ClassVar[str] = "mamba2"
    title: ClassVar[str] = "Mamba-2"
    symbol: ClassVar[str] = "m"
    source: ClassVar[str] = "Dao, Gu 2024, arXiv 2405.21060"
    facts: ClassVar[Facts] = Facts(
        carried="heads head_dim state",
        elsewhere=(
            "transformers: mamba, linear_attention of nemotron_h, bamba, zamba2; mamba2; fla:"
            " Mamba2"
        ),
    )
    diagonal: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    heads: int = integer(4, "number of heads H")
    head_dim: int = integer(64, "channels per head")
    state: int = integer(128, "state size N per channel")
    groups: int = integer(1, "groups G of heads that share B and C")
    conv: int = integer(0, "kernel size of the short convolution on x, B, C; 0 for none")

    def _check(self) -> None:
        if self.heads % self.groups:
            raise SizeError(
                f"{self.name}: groups={self.groups} does not divide heads={self.heads}; choose a"
                " divisor"
            )

    @property
    def inner_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def matrices(self) -> Matrices:
        """B is the key and C the query, shared by the heads of a group; x is the value."""
        return Matrices(self.heads, self.groups, self.state, self.head_dim)

    @property
    def state_numbers(self) -> int:
        """Numbers in the recurrent state."""
        return self.heads * self.head_dim * self.state

    @property
    def _channels(self) -> int:
        return self.heads * self.head_dim + 2 * self.groups * self.state

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (self._state(self.state_numbers), convolution(self._channels, self.conv, t, self.p))

    def work(self) -> Growth:
        return Growth(5 * self.state_numbers + 2 * self.conv * self._channels)

    @property
    def counted_bits(self) -> int:
        # one head counts while another is emptied, and a third stays for other uses
        return self._counted_bits() if self.heads >= 3 else 0

    @property
    def latched(self) -> int:
        # a step of 0 keeps, and a large one forgets all before it
        return self.heads * self.head_dim if self.formats <= EXACT_FORMATS else 0

    @property
    def _handed_on(self) -> int:
        return self.head_dim

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"state": "state"}
