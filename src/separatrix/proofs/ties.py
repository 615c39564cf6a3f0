"""Bounds for the weight of a key that ties with others in a softmax: 1/(1 + c) for c matches."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from separatrix.proofs.float32 import averaging, off_target


@dataclass(frozen=True, kw_only=True)
class Tie:
    """A softmax over at most `keys` keys, one of which is counted with: its score, and those of the
    matches, are the same number, which is not rounded; all others lose by `gap` at least.
    """

    keys: int
    gap: Fraction

    @property
    def mass(self) -> Fraction:
        """What all others weigh, relative to the one."""
        return off_target(self.keys, self.gap)

    def least(self, matches: int) -> Fraction:
        """A lower bound of the computed weight of the one with exactly so many matches."""
        tau = averaging(self.keys)
        return (1 - tau) / ((1 + tau) * (1 + matches + self.mass))

    def most(self, matches: int) -> Fraction:
        """An upper bound of it with so many matches or more."""
        tau = averaging(self.keys)
        return (1 + tau) / ((1 - tau) * (1 + matches))
