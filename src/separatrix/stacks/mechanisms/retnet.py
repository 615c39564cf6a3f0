"""Retention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.stacks.mechanisms.base import Facts
from separatrix.stacks.mechanisms.matrix_state import MATRIX, MatrixState


@dataclass(frozen=True, kw_only=True)
class RetNet(MatrixState):
    """Retention: S_i = a S_{i-1} + v_i k_i^T with one fixed decay a per head and rotated q, k;
    y_i = S_i q_i.
    """

    name: ClassVar[str] = "retnet"
    title: ClassVar[str] = "retention"
    symbol: ClassVar[str] = "t"
    source: ClassVar[str] = "Sun et al. 2023, arXiv 2307.08621"
    facts: ClassVar[Facts] = Facts(
        carried=MATRIX,
        elsewhere="fla: MultiScaleRetention",
    )
    diagonal: ClassVar[bool] = True
    # not `monotone`: keys are rotated by their places, so that equal tokens add unlike things

    def _check(self) -> None:
        super()._check()
        if self.head_dim % 2:
            raise SizeError(
                f"retnet: head_dim={self.head_dim} is odd; its rotation turns pairs of dimensions"
            )
