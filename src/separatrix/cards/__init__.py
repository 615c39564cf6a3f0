"""Capability cards: what a model can and cannot do at a context, each line with its theorem."""

from __future__ import annotations

from separatrix.cards.facts import CardFacts, card, card_facts
from separatrix.cards.question import CardLine
from separatrix.cards.questions import DEFAULT_VOCABULARY

__all__ = ["DEFAULT_VOCABULARY", "CardFacts", "CardLine", "card", "card_facts"]
