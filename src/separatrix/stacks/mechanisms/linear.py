"""Linear attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.stacks.mechanisms.base import Facts, choice, flag
from separatrix.stacks.mechanisms.matrix_state import MatrixState


@dataclass(frozen=True, kw_only=True)
class Linear(MatrixState):
    """Linear attention: S_i = S_{i-1} + V x_i (x) phi(K x_i), Z_i = Z_{i-1} + phi(K x_i), y_i =
    S_i phi(Q x_i) / <phi(Q x_i), Z_i>.
    """

    name: ClassVar[str] = "linear"
    title: ClassVar[str] = "linear attention"
    symbol: ClassVar[str] = "l"
    source: ClassVar[str] = "Katharopoulos et al. 2020; [Ye26] Lemma 2.2"
    facts: ClassVar[Facts] = Facts(
        carried="heads feature_dim (value_dim + normaliser)",
        elsewhere=("transformers: linear_attention; fla: LinearAttention, BasedLinearAttention"),
    )
    diagonal: ClassVar[bool] = True
    monotone: ClassVar[bool] = True
    operations: ClassVar[int] = 4

    feature: str = choice(
        "elu",
        ("elu", "relu", "identity", "taylor"),
        "feature map phi: elu(x)+1, relu(x), x, or (1, x, x (x) x / sqrt 2)",
    )
    normaliser: bool = flag(True, "whether the state carries the normaliser Z")

    @property
    def feature_dim(self) -> int:
        """d_phi."""
        return 1 + self.head_dim + self.head_dim**2 if self.feature == "taylor" else self.head_dim

    @property
    def state_numbers(self) -> int:
        """H d_phi (d + 1), or H d_phi d without normaliser [Ye26, Lemma 2.2]."""
        return self.heads * self.feature_dim * (self.dv + self.normaliser)

    @property
    def adds_up(self) -> bool:
        return self.plain and not self.normaliser and self.feature in ("identity", "relu")
