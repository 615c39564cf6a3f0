"""Numbers too large for floats, kept as their natural logarithms."""

from __future__ import annotations

from math import log
from typing import TypeAlias

import numpy as np

from separatrix.theory.search.integers import Floats

Amount: TypeAlias = "Logs | int"

_LARGE = 23.0
"""The logarithm from which on numbers are taken for integers, which floats cannot tell."""


class Logs:
    """Numbers of at least 0, elementwise, as the arrays of their natural logarithms.

    They take part in the formulas that exact integers are put into, and in sums with these.
    """

    def __init__(self, ln: Floats) -> None:
        self.ln = ln

    @classmethod
    def of(cls, n: int) -> Logs:
        """One integer of any size."""
        return cls(np.array([_ln(n)]))

    def __add__(self, other: Amount) -> Logs:
        return Logs(np.logaddexp(self.ln, _ln(other)))

    def __radd__(self, other: int) -> Logs:
        return self + other

    def __sub__(self, other: Amount) -> Logs:
        # where nothing is left, or less, the result is 0
        share = np.exp(np.minimum(_ln(other) - self.ln, 0))
        with np.errstate(divide="ignore"):
            return Logs(self.ln + np.log1p(-share))

    def __mul__(self, other: Amount) -> Logs:
        return Logs(self.ln + _ln(other))

    def __rmul__(self, other: int) -> Logs:
        return self * other

    def __truediv__(self, other: Amount) -> Logs:
        return Logs(self.ln - _ln(other))

    def capped(self, most: Amount) -> Logs:
        """The smaller of both, elementwise."""
        return Logs(np.minimum(self.ln, _ln(most)))

    def floored(self) -> Logs:
        """Rounded down to integers; large ones are as good as integers."""
        # what is an integer but for rounding stays
        integers = np.floor(np.exp(np.minimum(self.ln, _LARGE)) * (1 + 1e-12))
        return Logs(np.where(self.ln < _LARGE, np.log(integers), self.ln))

    def bits(self) -> Logs:
        """Their logarithms to base 2; those of numbers below 1 are 0."""
        return Logs(np.log(np.maximum(self.ln, 0) / np.log(2)))

    def nearest(self) -> int:
        """The integer of at least 1 nearest to the only number there is, but for rounding."""
        return max(1, Logs(np.logaddexp(self.ln, np.log(0.5))).whole())

    def whole(self) -> int:
        """The only number there is, rounded down to an integer; of large ones, the first digits
        are right.
        """
        twos = float(self.ln[0]) / log(2)
        # a float holds 53 binary digits; a shift makes the others
        shift = max(0, int(twos) - 52)
        return int(2 ** (twos - shift)) << shift


def _ln(amount: Amount) -> Floats | float:
    if isinstance(amount, Logs):
        return amount.ln
    return log(amount) if amount > 0 else -np.inf
