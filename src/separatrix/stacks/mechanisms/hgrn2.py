"""HGRN-2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.stacks.mechanisms.base import Facts
from separatrix.stacks.mechanisms.matrix_state import MATRIX, MatrixState


@dataclass(frozen=True, kw_only=True)
class HGRN2(MatrixState):
    """HGRN-2: S_i = S_{i-1} diag(f_i) + v_i (1 - f_i)^T, y_i = S_i q_i; head_dim is the
    expansion, so D x expansion numbers.
    """

    name: ClassVar[str] = "hgrn2"
    title: ClassVar[str] = "HGRN-2"
    symbol: ClassVar[str] = "e"
    source: ClassVar[str] = "Qin et al. 2024, arXiv 2404.07904"
    facts: ClassVar[Facts] = Facts(
        carried=MATRIX,
        elsewhere="fla: HGRN2Attention",
    )
    diagonal: ClassVar[bool] = True
    monotone: ClassVar[bool] = True
