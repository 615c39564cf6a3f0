"""RWKV-6 and -7."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.bits import Bits
from separatrix.stacks.mechanisms.base import CacheItem, Facts, Reach, integer
from separatrix.stacks.mechanisms.matrix_state import MATRIX, MatrixState


@dataclass(frozen=True, kw_only=True)
class RWKV(MatrixState):
    """RWKV-6 and -7: S_i = S_{i-1} A_i + v_i k_i^T, A_i diagonal (6) or diagonal plus rank one
    (7); token shifts mix in the last input.
    """

    name: ClassVar[str] = "rwkv"
    title: ClassVar[str] = "RWKV"
    symbol: ClassVar[str] = "v"
    source: ClassVar[str] = "Peng et al. 2024, arXiv 2404.05892; 2025, arXiv 2503.14456"
    another_recurrence: ClassVar[tuple[str, ...]] = ("version",)
    facts: ClassVar[Facts] = Facts(
        carried=f"{MATRIX} + shifts width",
        elsewhere="fla: RWKV6Attention, RWKV7Attention",
    )
    operations: ClassVar[int] = 7

    width: int | None = integer(
        None, "width D of a token shift; heads x head dimension if not given"
    )
    version: int = integer(7, "generation: 6 or 7", alters=True)
    shifts: int = integer(
        1,
        "token shifts: 1 of time mixing; 2 with that of the layer's channel mixing, which remembers"
        " a token too",
    )

    def _check(self) -> None:
        super()._check()
        if self.version not in (6, 7):
            raise SizeError(f"rwkv: version is {self.version}; it must be 6 or 7")

    @property
    def model_width(self) -> int:
        """What its token shift holds is the model's own input."""
        return self.inner_width if self.width is None else self.width

    @property
    def is_diagonal(self) -> bool:
        return self.version == 6

    @property
    def is_monotone(self) -> bool:
        # A_i of generation 7 has a part of rank one, as in the delta rule
        return self.version == 6

    @property
    def tokens_mixed(self) -> int:
        # the token shift comes before the convolution
        return super().tokens_mixed + 1

    @property
    def settles_after(self) -> int | None:
        after = super().settles_after
        # channel mixing reads the last token's output of time mixing, too
        return None if after is None else after + max(0, self.shifts - 1)

    @property
    def reach(self) -> Reach:
        return super().reach._replace(after=max(0, self.shifts - 1))

    def handed_over(self, t: int) -> Bits:
        # the shifts hold a token, as a convolution does
        return self._state(self.state_numbers).bits

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        shifted = Bits.of(self.shifts * self.model_width * min(t, 1), self.p)
        return (CacheItem("state", self.handed_over(t) + shifted), self._convolution(t))
