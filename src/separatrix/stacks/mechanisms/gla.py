"""Gated linear attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.stacks.mechanisms.base import Facts
from separatrix.stacks.mechanisms.matrix_state import MATRIX, MatrixState


@dataclass(frozen=True, kw_only=True)
class GLA(MatrixState):
    """Gated linear attention: S_i = S_{i-1} diag(a_i) + v_i k_i^T with data-dependent decay per
    key dimension, y_i = S_i q_i.
    """

    name: ClassVar[str] = "gla"
    title: ClassVar[str] = "gated linear attention"
    symbol: ClassVar[str] = "q"
    source: ClassVar[str] = "Yang et al. 2023, arXiv 2312.06635"
    facts: ClassVar[Facts] = Facts(
        carried=MATRIX,
        elsewhere="fla: GatedLinearAttention",
    )
    diagonal: ClassVar[bool] = True
    monotone: ClassVar[bool] = True
