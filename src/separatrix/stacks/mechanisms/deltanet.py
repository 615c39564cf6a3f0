"""DeltaNet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.stacks.mechanisms.base import Facts, Slots, flag
from separatrix.stacks.mechanisms.matrix_state import MATRIX, NEGATIVE, MatrixState


@dataclass(frozen=True, kw_only=True)
class DeltaNet(MatrixState):
    """DeltaNet: S_i = S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T, y_i = S_i q_i, with k_i of
    unit length.
    """

    name: ClassVar[str] = "deltanet"
    title: ClassVar[str] = "DeltaNet"
    symbol: ClassVar[str] = "d"
    source: ClassVar[str] = "Schlag, Irie, Schmidhuber 2021; Yang et al. 2024, arXiv 2406.06484"
    delta_rule: ClassVar[bool] = True
    another_recurrence: ClassVar[tuple[str, ...]] = ("negative",)
    facts: ClassVar[Facts] = Facts(
        carried=MATRIX,
        elsewhere="fla: DeltaNet",
    )
    operations: ClassVar[int] = 6

    negative: bool = flag(False, NEGATIVE, alters=True)

    @property
    def _reflections(self) -> int:
        return int(self.negative)

    @property
    def slots(self) -> Slots | None:
        return self._overwritten
