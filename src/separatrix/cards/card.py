"""The lines of a capability card: what a model of that architecture can and cannot do at a
context, each with the theorem that says so.
"""

from __future__ import annotations

from separatrix.architecture import Architecture
from separatrix.cards.brackets import NestedBrackets
from separatrix.cards.composition import composition
from separatrix.cards.equality import EqualStrings
from separatrix.cards.line import CardLine
from separatrix.cards.permutation import ParityOfBits, PermutationTracking
from separatrix.cards.recall import Recall
from separatrix.cards.two_sum import TwoSumOf
from separatrix.errors import SizeError

DEFAULT_VOCABULARY = 50_000


def card(architecture: Architecture, context: int) -> list[CardLine]:
    """The card's lines at a context of that many tokens. Raises SizeError for a context beyond
    10^12.
    """
    if not architecture.causal:
        raise SizeError(
            f"'{architecture.spec}': cards are about models that read left to right, and with"
            " causal=false tokens see later ones; `construct` and `judge` take such stacks"
        )
    return [
        *recall(architecture, context).answer(architecture),
        *composition(architecture, context),
        *TwoSumOf(context, "query").answer(architecture),
        *TwoSumOf(context, "decision").answer(architecture),
        *EqualStrings(context).answer(architecture),
        *NestedBrackets(context).answer(architecture),
        *ParityOfBits(context).answer(architecture),
        *PermutationTracking(context).answer(architecture),
    ]


def recall(architecture: Architecture, context: int) -> Recall:
    """The question of recall, with as many values as the model has tokens."""
    return Recall(context, max(2, architecture.vocabulary or DEFAULT_VOCABULARY))
