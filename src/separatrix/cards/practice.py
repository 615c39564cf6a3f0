"""What training found of stacks like the one on a card, beside its answers: measured and, with the
distance, extrapolated; never proved. Where nothing was measured, nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence

from separatrix.architecture import Architecture
from separatrix.cards.card import DEFAULT_VOCABULARY
from separatrix.cards.found.capacity import held_facts
from separatrix.cards.found.depth import steps_found
from separatrix.cards.found.finding import Finding
from separatrix.cards.found.layouts import mixed, standing
from separatrix.cards.found.tracking import followed
from separatrix.cards.line import CardLine
from separatrix.practice.shape import Shape

__all__ = ["Finding", "practice"]

_TRACKED = {"parity of bits": "parity", "permutation tracking": "S5"}
"""How a question about tracking begins, and the group whose products were followed."""


def practice(
    architecture: Architecture, context: int, lines: Sequence[CardLine]
) -> tuple[Finding, ...]:
    """What experiments found that bears on the lines of a card, in the order of the lines."""
    shape = Shape.of(architecture)
    if shape is None:
        return ()
    values = max(2, architecture.vocabulary or DEFAULT_VOCABULARY)
    found: list[Finding | None] = []
    asked: set[str] = set()
    for line in lines:
        kind = _kind(line.question)
        # one line of several about steps
        if kind in asked:
            continue
        asked.add(kind)
        question = line.question
        if kind == "recall":
            found.append(held_facts(architecture, context, values, question))
        if kind == "composition":
            found.append(steps_found(shape, context, question))
        if kind in ("recall", "composition"):
            found.append(mixed(shape, kind, context, question))
            found.append(standing(shape, kind, context, question))
        if kind in ("parity", "S5"):
            found.append(followed(shape, kind, context, question))
    return tuple(finding for finding in found if finding is not None)


def _kind(question: str) -> str:
    """What a question asks, in the words of experiments; "" for what none asks."""
    if "chain of thought" in question:
        return ""
    for start, group in _TRACKED.items():
        if question.startswith(start):
            return group
    return question.split()[0].rstrip(",")
