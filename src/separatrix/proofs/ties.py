"""Bounds for the weight of a key that ties with others in a softmax: 1/(1 + c) for c matches."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from separatrix.core.errors import CheckFailed
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.machine import above
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


@dataclass(frozen=True)
class Share:
    """The weight of a key that ties with others: 1/k up to a relative error, k keys tying."""

    mass: Fraction
    """What all others weigh, relative to one that ties."""
    off: float


def exact_share(keys: int, gap: Fraction, arithmetic: Arithmetic) -> Share:
    """The weight of one of k keys of the same score, which is not rounded, among so many whose
    others lose by `gap`, where exp(0) is 1: each that ties weighs exactly 1, and a partial sum of
    some of these and of others is rounded to the number of the former.

    Raises CheckFailed where the others weigh too much for that, or so many ones are not counted.
    """
    tie = Tie(keys=keys, gap=gap, arithmetic=arithmetic)
    u = arithmetic.summed
    others = 2 * tie.mass * growth(keys, arithmetic)
    # numbers above 1 are 2 u apart
    if others >= u or keys * u > 1:
        raise CheckFailed(
            f"{keys:,} keys: sums of ones may be rounded in {arithmetic.name}; use a smaller n"
        )
    # a product with the value, a quotient or a reciprocal and a product; a weight that is stored
    few = 4 * u + (2 * arithmetic.stored if arithmetic.narrowed else 0)
    return Share(tie.mass, above(few))
