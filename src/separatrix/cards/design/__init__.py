"""The inverse problem: given tasks, a context and a cache budget, which layouts can do it, and
which provably do?
"""

from __future__ import annotations

from separatrix.cards.design.candidates import Choices, space_of, task_for_context
from separatrix.cards.design.search import DesignResult, Neighbour, Point, design, ladder
from separatrix.cards.design.space import PLACES, Arrangement, Cost, Layout, Place, Space

__all__ = [
    "PLACES",
    "Arrangement",
    "Choices",
    "Cost",
    "DesignResult",
    "Layout",
    "Neighbour",
    "Place",
    "Point",
    "Space",
    "design",
    "ladder",
    "space_of",
    "task_for_context",
]
