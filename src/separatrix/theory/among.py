"""Which theorems `judge` may be asked to confine itself to."""

from __future__ import annotations

from separatrix.theory.base import Theorem


def answers_at_once(theorem: Theorem) -> bool:
    """Whether a theorem speaks of models that answer without writing anything down before."""
    return theorem.at_once


def answers_after_thought(theorem: Theorem) -> bool:
    """Whether a theorem speaks of models that write intermediate steps before they answer."""
    return theorem.after_thought


def solves_at_once(theorem: Theorem) -> bool:
    """Whether a theorem shows what models that answer at once can compute."""
    return theorem.at_once and "SOLVABLE" in theorem.shows


def fails_at_once(theorem: Theorem) -> bool:
    """Whether a theorem shows what models that answer at once cannot compute."""
    return theorem.at_once and "FAILS" in theorem.shows


def solves_after_thought(theorem: Theorem) -> bool:
    """Whether a theorem shows what models can compute that write intermediate steps."""
    return theorem.after_thought and "SOLVABLE" in theorem.shows


def grades(theorem: Theorem) -> bool:
    """Whether a theorem says how many random questions are answered at the most."""
    return theorem.grades
