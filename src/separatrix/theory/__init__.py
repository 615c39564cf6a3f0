"""Theorems, applied to exact numbers: what fails, what is solvable, what is open."""

from __future__ import annotations

from separatrix.theory.base import Theorem
from separatrix.theory.judge import THEOREMS, judge, recheck

__all__ = ["THEOREMS", "Theorem", "judge", "recheck"]
