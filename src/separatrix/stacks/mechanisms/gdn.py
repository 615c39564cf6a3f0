"""Gated DeltaNet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.stacks.mechanisms.base import Facts, Slots, flag
from separatrix.stacks.mechanisms.matrix_state import MATRIX, NEGATIVE, MatrixState


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNet(MatrixState):
    """Gated DeltaNet: S_i = a_i S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T, y_i = S_i q_i, with
    k_i of unit length.
    """

    name: ClassVar[str] = "gdn"
    title: ClassVar[str] = "Gated DeltaNet"
    symbol: ClassVar[str] = "g"
    source: ClassVar[str] = "Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464"
    delta_rule: ClassVar[bool] = True
    another_recurrence: ClassVar[tuple[str, ...]] = ("negative",)
    facts: ClassVar[Facts] = Facts(
        carried=MATRIX,
        elsewhere=(
            "transformers: linear_attention of qwen3_next, qwen3_5, olmo_hybrid; fla: GatedDeltaNet"
        ),
    )
    operations: ClassVar[int] = 7

    negative: bool = flag(False, NEGATIVE, alters=True)

    @property
    def _reflections(self) -> int:
        return int(self.negative)

    @property
    def slots(self) -> Slots | None:
        return self._overwritten

    @property
    def counted_bits(self) -> int:
        # one head counts while another is emptied, and a third stays for other uses
        return self._counted_bits() if self.heads >= 3 else 0
