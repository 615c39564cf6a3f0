"""Theorems, applied to exact numbers: what fails, what is solvable, what is open."""

from __future__ import annotations

from separatrix.theory._base import Theorem
from separatrix.theory.card import CardLine, card
from separatrix.theory.judge import THEOREMS, judge, recheck

__all__ = ["THEOREMS", "CardLine", "Theorem", "card", "judge", "recheck"]
