"""The inverse problem: given tasks, a context and a cache budget, which layouts can do it, and which provably do?"""

from __future__ import annotations

from separatrix.theory.design.candidates import Choices, space_of
from separatrix.theory.design.costs import Cost
from separatrix.theory.design.explain import Neighbour
from separatrix.theory.design.ladder import ladder
from separatrix.theory.design.search import DesignResult, Point, design
from separatrix.theory.design.space import PLACES, Family, Layout, Place, Space
from separatrix.theory.design.tasks import check_context, task_for_context

__all__ = [
    "PLACES",
    "Choices",
    "Cost",
    "DesignResult",
    "Family",
    "Layout",
    "Neighbour",
    "Place",
    "Point",
    "Space",
    "check_context",
    "design",
    "ladder",
    "space_of",
    "task_for_context",
]
