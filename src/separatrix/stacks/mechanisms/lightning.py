"""Lightning attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.stacks.mechanisms.base import Facts, flag
from separatrix.stacks.mechanisms.matrix_state import MATRIX, MatrixState


@dataclass(frozen=True, kw_only=True)
class Lightning(MatrixState):
    """Lightning attention: S_i = a S_{i-1} + v_i k_i^T with one fixed decay a per head, y_i =
    S_i q_i.
    """

    name: ClassVar[str] = "lightning"
    title: ClassVar[str] = "Lightning attention"
    symbol: ClassVar[str] = "y"
    source: ClassVar[str] = (
        "Qin et al. 2024, arXiv 2401.04658; MiniMax 2025 (MiniMax-01), arXiv 2501.08313"
    )
    another_recurrence: ClassVar[tuple[str, ...]] = ("rotated",)
    facts: ClassVar[Facts] = Facts(
        carried=MATRIX,
        elsewhere="transformers: linear_attention of minimax; fla: LightningAttention",
    )
    diagonal: ClassVar[bool] = True

    rotated: bool = flag(
        False,
        "whether queries and keys are rotated by their places (Ring-linear)",
        alters=True,
    )

    @property
    def is_monotone(self) -> bool:
        # rotated keys add unlike things for equal tokens, as in retention
        return not self.rotated
