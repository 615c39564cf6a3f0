"""Log-linear attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.growth import Growth, doublings
from separatrix.stacks.mechanisms.base import CacheItem, Facts, choice
from separatrix.stacks.mechanisms.matrix_state import MATRIX, MatrixState


@dataclass(frozen=True, kw_only=True)
class LogLinear(MatrixState):
    """Log-linear attention: Fenwick buckets over the past, one linear state each, at most
    floor(log2 t) + 1 of them after t tokens.
    """

    name: ClassVar[str] = "loglinear"
    title: ClassVar[str] = "log-linear attention"
    symbol: ClassVar[str] = "o"
    source: ClassVar[str] = "Guo et al. 2025, arXiv 2506.04761"
    another_recurrence: ClassVar[tuple[str, ...]] = ("base",)
    facts: ClassVar[Facts] = Facts(
        carried=f"{MATRIX} (floor(log2(t)) + 1)",
        elsewhere="fla: LogLinearMamba2",
    )

    base: str = choice(
        "linear",
        ("linear", "mamba2", "gdn"),
        "recurrence of every bucket's state: linear attention, Mamba-2 or Gated DeltaNet",
        alters=True,
    )
    feature: str = choice(
        "identity",
        ("elu", "relu", "identity"),
        "feature map of the linear states; base=linear only",
    )

    def _check(self) -> None:
        super()._check()
        if self.base != "linear" and self.feature != "identity":
            raise SizeError(
                f"loglinear: base={self.base} has no feature map; leave out feature={self.feature}"
            )

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        buckets = t.bit_length()  # floor(log2 t) + 1 for t >= 1
        return (self._state(buckets * self.state_numbers), self._convolution(t))

    def roundings(self, t: int) -> int:
        """A bucket of linear attention is rounded when it merges; one that decays or is
        overwritten, at every token.
        """
        return t.bit_length() if self.base == "linear" else t

    def work(self) -> Growth:
        buckets = doublings() * (self.operations * self.state_numbers)
        return buckets + Growth(2 * self.conv * self._channels)

    def kept(self) -> Growth:
        return doublings() * (self.state_numbers * self.state_p) + self._buffered(self.conv)
