"""A finding: what an experiment measured that bears on a question of a card, how far the card's
stack lies beyond it, and what does not follow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from separatrix.practice.table import Row
from separatrix.practice.words import beyond


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What training found, beside an answer of the card. It proves nothing and is no part of any
    verdict.
    """

    question: str
    """The question of the line that it stands next to."""
    experiment: str
    measured: str
    """What was measured, with the experiment and its size."""
    brief: str
    """What was measured, in few words, for a cell of a comparison."""
    result: str
    """What it would be here, if it went on so; "" where nothing is said."""
    distances: dict[str, Fraction] = field(default_factory=dict)
    """In what -> how many times this stack or context lies beyond the largest that was measured."""
    caution: str
    """What a designer should not conclude, in a clause."""
    explain: str
    """The same in two sentences of plain English."""
    rows: tuple[Row, ...]
    """What it was read from."""
    numbers: dict[str, Fraction | int] = field(default_factory=dict)
    """What the sentences say, for machines."""

    @property
    def extrapolated(self) -> str:
        """How far beyond the measured range the stack lies, and what it would come to: "700,000 x
        in numbers: 98,000 facts"; "" where nothing is carried further.
        """
        far = beyond(self.distances)
        if not far:
            return f"within what was measured: {self.result}" if self.result else ""
        return f"{far}: {self.result}" if self.result else far
