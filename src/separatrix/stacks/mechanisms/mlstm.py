"""mLSTM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.stacks.mechanisms.base import Facts
from separatrix.stacks.mechanisms.matrix_state import MatrixState


@dataclass(frozen=True, kw_only=True)
class MLSTM(MatrixState):
    """mLSTM: C_i = f_i C_{i-1} + g_i v_i k_i^T, n_i = f_i n_{i-1} + g_i k_i, m_i the gates'
    running maximum; y_i = C_i q_i / max(|n_i q_i|, 1).
    """

    name: ClassVar[str] = "mlstm"
    title: ClassVar[str] = "mLSTM"
    symbol: ClassVar[str] = "x"
    source: ClassVar[str] = "Beck et al. 2024 (xLSTM), arXiv 2405.04517"
    facts: ClassVar[Facts] = Facts(
        carried="heads (head_dim value_dim + head_dim + 1)",
        elsewhere="transformers: xlstm",
    )
    diagonal: ClassVar[bool] = True
    monotone: ClassVar[bool] = True
    # the running maximum comes to rest first, and what it scales after it
    stages: ClassVar[int] = 2

    @property
    def state_numbers(self) -> int:
        """H (d d_v + d + 1): matrix, normaliser, maximum."""
        return self.heads * (self.head_dim * self.dv + self.head_dim + 1)
