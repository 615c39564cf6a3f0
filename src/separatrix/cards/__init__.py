"""The lines of a capability card: what a model of that architecture can and cannot do at a
context, each with the theorem that says so.
"""

from __future__ import annotations

from separatrix.architecture import Architecture
from separatrix.cards.composition import composition
from separatrix.cards.line import CardLine
from separatrix.cards.others import dyck, equality, permutation, two_sum
from separatrix.cards.recall import recall

__all__ = ["DEFAULT_VOCABULARY", "CardLine", "card"]

DEFAULT_VOCABULARY = 50_000


def card(architecture: Architecture, context: int) -> list[CardLine]:
    """The card's lines at a context of that many tokens. Raises SizeError for a context beyond
    10^12.
    """
    values = max(2, architecture.vocabulary or DEFAULT_VOCABULARY)
    return [
        *recall(architecture, context, values),
        *composition(architecture, context),
        *two_sum(architecture, context),
        *equality(architecture, context),
        *dyck(architecture, context),
        permutation(architecture),
    ]
