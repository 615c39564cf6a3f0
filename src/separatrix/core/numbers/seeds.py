"""How something lies over seeds, and which of several learning rates is the best of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How something lies over seeds."""

    median: Fraction
    least: Fraction
    most: Fraction

    @classmethod
    def of(cls, values: Sequence[Fraction]) -> Spread | None:
        """None of no values."""
        if not values:
            return None
        return cls(median=median(values), least=min(values), most=max(values))


def best_rate(accuracies: Mapping[float, Sequence[Fraction]]) -> float | None:
    """The learning rate with the highest median accuracy over its seeds; of equals the one with
    the highest mean, and of those the smallest. A rate without seeds is none, and None of none.
    """

    def merit(rate: float) -> tuple[Fraction, Fraction, float]:
        found = accuracies[rate]
        return median(found), sum(found, Fraction(0)) / len(found), -rate

    return max((rate for rate in accuracies if accuracies[rate]), key=merit, default=None)
