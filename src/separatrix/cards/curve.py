"""How many of random facts stacks recall at the most, over contexts: the curve of `compare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from separatrix.cards.card import recall
from separatrix.cards.question import grade
from separatrix.core.numbers.accuracy import WHOLE
from separatrix.core.numbers.amounts import LONGEST_CONTEXT
from separatrix.stacks.architecture import Architecture
from separatrix.theory.base import Theorem
from separatrix.theory.judge import judge

_BEYOND = 5
"""Doublings that are shown beyond the context at which the last stack begins to fail."""
_ROWS = 6
"""About how many contexts a table has, beside the one asked."""
_PER_DOUBLING = 12
"""Points of a drawn curve."""


@dataclass(frozen=True)
class Point:
    """A stack at a context; accuracies in millionths."""

    context: int
    at_most: int | None
    """What no weights exceed, rounded up; None where nothing is known to be out of reach."""
    stored: int
    """What storing as many facts as fit and guessing the others reaches, rounded down."""


Curve = tuple[Point, ...]
"""The points of one stack, at growing contexts."""


def few_contexts(architectures: Sequence[Architecture], context: int) -> tuple[int, ...]:
    """The context asked and powers of two around those at which stacks begin to fail; empty where
    none does.
    """
    powers = _powers(architectures)
    chosen = powers[:: -(-len(powers) // _ROWS) or 1]
    return tuple(sorted({context, *(1 << power for power in chosen)})) if powers else ()


def many_contexts(architectures: Sequence[Architecture]) -> tuple[int, ...]:
    """The same contexts, close enough to each other to draw a curve through."""
    powers = _powers(architectures)
    if not powers:
        return ()
    ends = (_PER_DOUBLING * powers[0], _PER_DOUBLING * powers[-1])
    return tuple(round(2 ** (step / _PER_DOUBLING)) for step in range(ends[0], ends[1] + 1))


def recall_curve(architecture: Architecture, contexts: Sequence[int]) -> Curve:
    """What no weights of a stack exceed at these contexts, with as many values as the model has
    tokens.
    """
    return tuple(_point(architecture, context) for context in contexts)


def _powers(architectures: Sequence[Architecture]) -> range:
    begins = [n for n in map(_begins, architectures) if n is not None]
    if not begins:
        return range(0)
    last = min(max(begins).bit_length() + _BEYOND, LONGEST_CONTEXT.bit_length() - 1)
    return range(min(max(1, min(begins).bit_length() - 2), last), last + 1)


def _begins(architecture: Architecture) -> int | None:
    """The number of facts from which recall fails; None where no theorem names one."""
    asked = recall(architecture, 2)
    found = judge(architecture, asked.least or asked.task, among=Theorem.fails_at_once)
    return next((verdict.n for verdict in found if verdict.n is not None), None)


def _point(architecture: Architecture, context: int) -> Point:
    found = grade(architecture, recall(architecture, context).task)
    if found is None:
        return Point(context, None, WHOLE)
    return Point(context, found.ceiling, found.verdict.numbers["stored_millionths"])
