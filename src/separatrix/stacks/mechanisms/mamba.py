"""Mamba."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.growth import Growth
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    CacheItem,
    Facts,
    Varied,
    convolution,
    flag,
    integer,
)
from separatrix.stacks.mechanisms.recurrent_state import Stateful


@dataclass(frozen=True, kw_only=True)
class Mamba(Stateful):
    """Mamba: h_i = exp(D_i A) h_{i-1} + D_i B_i x_i, y_i = C_i h_i, `state` numbers for each of
    `width` channels.
    """

    name: ClassVar[str] = "mamba"
    title: ClassVar[str] = "Mamba"
    symbol: ClassVar[str] = "b"
    source: ClassVar[str] = "Gu, Dao 2023, arXiv 2312.00752"
    facts: ClassVar[Facts] = Facts(
        carried="width state",
        elsewhere=("transformers: linear_attention of jamba, falcon_mamba; mamba; fla: Mamba"),
    )
    diagonal: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    width: int = integer(256, "channels (d_inner)")
    state: int = integer(16, "state size N per channel")
    conv: int = integer(0, "kernel size of the short convolution on x; 0 for none")
    rank: int | None = integer(
        None, "numbers that the step size comes from (dt_rank); model width / 16 if not given"
    )
    norms: bool = flag(
        False,
        "whether B, C and what the step size comes from are RMS-normed (Falcon Mamba, Jamba)",
        alters=True,
    )

    @property
    def inner_width(self) -> int:
        return self.width

    @property
    def state_numbers(self) -> int:
        """Numbers in the recurrent state."""
        return self.width * self.state

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (self._state(self.state_numbers), convolution(self.width, self.conv, t, self.p))

    def work(self) -> Growth:
        return Growth(5 * self.state_numbers + 2 * self.conv * self.width)

    @property
    def counted_bits(self) -> int:
        # one channel counts while another is emptied, and others stay for other uses
        return self._counted_bits() if self.width >= 3 else 0

    @property
    def brought(self) -> int:
        # beside the state: SiLU leaves 0 and 128 as they are
        return self.latched if self.conv >= 2 else 0

    @property
    def latched(self) -> int:
        # a step of 0 keeps, and a large one forgets all before it
        return self.width if self.formats <= EXACT_FORMATS else 0

    @property
    def _handed_on(self) -> int:
        return self.width

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"state": "state"}
