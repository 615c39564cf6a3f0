"""What is proved of a stack on a task, to stand beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from separatrix.core.errors import Undecided
from separatrix.core.evidence.records import Status
from separatrix.core.numbers.accuracy import WHOLE
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge
from separatrix.theory.fails.a_accuracy import trained_ceiling


@dataclass(frozen=True)
class Proved:
    """The strongest verdict, and Theorem A's ceiling for a model trained here."""

    status: Status
    theorem: str
    """The key of the theorem behind the verdict."""
    statement: str
    ceiling: int | None
    """Millionths of random questions that no weights answer more of; None where no theorem says
    so, or where all may be right.
    """


@cache
def proved(architecture: str, task: str) -> Proved:
    """Raises what reading the texts raises."""
    stack = Architecture.parse(architecture)
    parsed = parse_task(task)
    verdict = judge(stack, parsed)[0]
    try:
        found = trained_ceiling(stack, parsed)
    except Undecided:
        found = None
    ceiling = None if found is None or found.at_most == WHOLE else found.at_most
    return Proved(verdict.status, verdict.theorem, verdict.statement, ceiling)
