"""Gated DeltaProduct."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.growth import Growth
from separatrix.stacks.mechanisms.base import Facts, flag, integer
from separatrix.stacks.mechanisms.matrix_state import MATRIX, NEGATIVE, MatrixState


@dataclass(frozen=True, kw_only=True)
class DeltaProduct(MatrixState):
    """Gated DeltaProduct: `householders` delta-rule updates per token, the decay a_i in the
    first of them; y_i = S_i q_i after the last.
    """

    name: ClassVar[str] = "deltaproduct"
    title: ClassVar[str] = "Gated DeltaProduct"
    symbol: ClassVar[str] = "p"
    source: ClassVar[str] = "Siems et al. 2025, arXiv 2502.10297"
    delta_rule: ClassVar[bool] = True
    another_recurrence: ClassVar[tuple[str, ...]] = ("householders", "negative")
    facts: ClassVar[Facts] = Facts(
        carried=MATRIX,
        elsewhere="fla: GatedDeltaProduct",
    )

    householders: int = integer(
        2, "delta-rule updates per token n_h, each with a key, a value and a b of its own"
    )
    negative: bool = flag(True, NEGATIVE, alters=True)

    @property
    def _reflections(self) -> int:
        return self.householders if self.negative else 0

    @property
    def _channels(self) -> int:
        return (
            self.qk * self.head_dim * (1 + self.householders)
            + self.householders * self.heads * self.dv
        )

    def work(self) -> Growth:
        """Decay 1 and read 2 per number of the state, and 4 for every update."""
        return Growth(
            (3 + 4 * self.householders) * self.state_numbers + 2 * self.conv * self._channels
        )
