"""Bounds for the weight of a key that ties with others in a softmax: 1/(1 + c) for c matches."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.softmax import growth, off_target

_FEW = 32


@dataclass(frozen=True, kw_only=True)
class Tie:
    """A softmax over at most `keys` keys, one of which is counted with: its score, and those of the
    matches, are the same number, which is not rounded; all others lose by `gap` at least.

    Sums of c matches pass c roundings; what else they take in makes them larger by twice its own
    mass at most (softmax.py).
    """

    keys: int
    gap: Fraction
    arithmetic: Arithmetic = FP32

    @property
    def mass(self) -> Fraction:
        """What all others weigh, relative to the one."""
        return off_target(self.keys, self.gap, self.arithmetic)

    def least(self, matches: int) -> Fraction:
        """A lower bound of the computed weight of the one with exactly so many matches."""
        lost = growth(matches + _FEW, self.arithmetic)
        others = 2 * self.mass * growth(self.keys, self.arithmetic)
        return (1 - self._rounded()) / (lost**2 * (1 + matches + others))

    def most(self, matches: int) -> Fraction:
        """An upper bound of it with so many matches or more."""
        lost = growth(matches + _FEW, self.arithmetic)
        return (1 + self._rounded()) * lost**2 / (1 + matches)

    def _rounded(self) -> Fraction:
        """Of a weight that is stored: its relative error."""
        return 2 * self.arithmetic.stored if self.arithmetic.narrowed else Fraction(0)
