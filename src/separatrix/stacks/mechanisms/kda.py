"""Kimi Delta Attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.stacks.mechanisms.base import Facts, flag
from separatrix.stacks.mechanisms.matrix_state import MATRIX, NEGATIVE, MatrixState


@dataclass(frozen=True, kw_only=True)
class KDA(MatrixState):
    """Kimi Delta Attention: S_i = S_{i-1} diag(a_i) (I - b_i k_i k_i^T) + b_i v_i k_i^T with
    decay per key dimension, y_i = S_i q_i.
    """

    name: ClassVar[str] = "kda"
    title: ClassVar[str] = "Kimi Delta Attention"
    symbol: ClassVar[str] = "k"
    source: ClassVar[str] = "Kimi Team 2025 (Kimi Linear), arXiv 2510.26692"
    delta_rule: ClassVar[bool] = True
    another_recurrence: ClassVar[tuple[str, ...]] = ("negative",)
    facts: ClassVar[Facts] = Facts(
        carried=MATRIX,
        elsewhere="transformers: linear_attention of kimi_linear; fla: KimiDeltaAttention",
    )
    operations: ClassVar[int] = 7

    negative: bool = flag(False, NEGATIVE, alters=True)

    @property
    def _reflections(self) -> int:
        return int(self.negative)

    @property
    def counted_bits(self) -> int:
        # one head counts while another is emptied, and a third stays for other uses
        return self._counted_bits() if self.heads >= 3 else 0
