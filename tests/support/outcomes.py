"""Outcomes of tests that ask for one answer in each prompt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from separatrix.core.evidence.outcome import Outcome


def singly(changed: Outcome | None = None, **values: Any) -> Outcome:
    """An outcome, or a changed one, whose answers are right as often as its prompts."""
    made = Outcome(**values) if changed is None else replace(changed, **values)
    due = tuple(made.tested for _ in made.longer)
    counts = {"right": made.correct, "due": made.tested, "longer_right": made.longer}
    return replace(made, **counts | {"longer_due": due} | values)
