"""What a theorem's verdict names."""

from __future__ import annotations

from typing import Any

from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.theory.arguments import Sizes
from separatrix.theory.fails.i_bounded_caches import TheoremI


def threshold(architecture: Architecture, task: Task) -> int | None:
    """The smallest n of the task's family at which Theorem I bites; None where it names none."""
    found = TheoremI().judge(architecture, task)
    return None if found is None else found.n


def holds(theorem: Any, parameters: Any, sizes: Sizes) -> bool:
    """Whether a theorem about reading layers shows failure with these parameters, certified."""
    return theorem.holds(sizes, parameters)
