"""The inverse problem: given tasks, a context and a cache budget, which layouts can do it, and
which provably do?
"""

from __future__ import annotations

from separatrix.design.candidates import Choices, space_of
from separatrix.design.costs import Cost
from separatrix.design.explain import Neighbour
from separatrix.design.ladder import ladder
from separatrix.design.search import DesignResult, Point, design
from separatrix.design.space import PLACES, Arrangement, Layout, Place, Space
from separatrix.design.tasks import task_for_context

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
