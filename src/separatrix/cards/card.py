"""The lines of a capability card: what a model of that architecture can and cannot do at a
context, each with the theorem that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from separatrix.cards.composition import composition
from separatrix.cards.line import CardLine
from separatrix.cards.question import Question
from separatrix.cards.questions import (
    equal_strings,
    looked_up,
    nested_brackets,
    one_of_facts,
    one_of_pairs,
    parity_of_bits,
    permutations,
    two_sum,
    with_way_out,
)
from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.theory.solves.recall import waits

DEFAULT_VOCABULARY = 50_000
SHORTEST = 12
"""Tokens that every question asked only here has room in."""
ROOM = {"2sum": 3}
"""The fewest tokens that have room for a question, where two do not."""


def card(architecture: Architecture, context: int) -> list[CardLine]:
    """The card's lines at a context of that many tokens. Raises SizeError for a context beyond
    10^12.
    """
    return [
        line
        for key, answer in _asked(architecture, context).items()
        for line in _keyed(key, answer())
    ]


def values_of(architecture: Architecture) -> int:
    """As many values of facts as the model has tokens."""
    return max(2, architecture.vocabulary or DEFAULT_VOCABULARY)


def recall(architecture: Architecture, context: int) -> Question:
    """The question of recall."""
    return one_of_facts(context, values_of(architecture))


def all_lines(architecture: Architecture, context: int) -> list[CardLine]:
    """The card's lines and, behind recall, facts of two tokens, a question that stands before the
    facts, and what else is looked up.
    """
    return list(in_turn(architecture, context))


def in_turn(architecture: Architecture, context: int) -> Iterator[CardLine]:
    """The same lines, each question asked when its first line is taken."""
    for key, answer in _asked(architecture, context).items():
        yield from _keyed(key, answer())
        if key == "recall" and context >= SHORTEST:
            for other, asked in _looked_up(architecture, context).items():
                yield from _keyed(other, asked.answer(architecture))


def _keyed(key: str, lines: Iterable[CardLine]) -> Iterator[CardLine]:
    return (replace(line, key=key) for line in lines)


def _asked(architecture: Architecture, context: int) -> dict[str, Callable[[], list[CardLine]]]:
    """The questions of a card that the context has room for."""
    if not architecture.causal:
        raise SizeError(
            f"'{architecture.spec}': cards are about models that read left to right, and with"
            " causal=false tokens see later ones; `construct` and `judge` take such stacks"
        )
    asked: dict[str, Callable[[], list[CardLine]]] = {
        "recall": lambda: with_way_out(
            architecture,
            values_of(architecture),
            recall(architecture, context).answer(architecture),
        ),
        "composition": lambda: composition(architecture, context),
        "2sum": lambda: two_sum(context, "query").answer(architecture),
        "pairs": lambda: two_sum(context, "decision").answer(architecture),
        "equality": lambda: equal_strings(context).answer(architecture),
        "brackets": lambda: nested_brackets(architecture, context).answer(architecture),
        "parity": lambda: parity_of_bits(architecture, context),
        "s5": lambda: permutations(architecture, context),
    }
    return {key: answer for key, answer in asked.items() if context >= ROOM.get(key, 2)}


def _looked_up(architecture: Architecture, context: int) -> dict[str, Question]:
    """What is looked up beside single facts."""
    values = values_of(architecture)
    found = {"recall-2": one_of_pairs(context, values, "last")}
    if waits(architecture, values) is not None:
        found["question-first"] = one_of_pairs(context, values, "first")
    return found | looked_up(context, values)
