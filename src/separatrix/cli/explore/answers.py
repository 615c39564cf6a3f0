"""What the page asks, answered in parts, each as soon as it is known: the card's own JSON, and its
answers as HTML.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any

from separatrix.cards import CardFacts, CardLine, card_facts, memory
from separatrix.cards.facts import ASKED, in_turn, rows_of
from separatrix.cli.report.card import card_json, folds, topics
from separatrix.cli.report.compare import compared_page
from separatrix.core.document import Document, Part
from separatrix.core.errors import SeparatrixError, first_line
from separatrix.core.numbers.amounts import DEFAULT_CONTEXT, bytes_of, format_bytes, parse_context
from separatrix.stacks.architecture import MECHANISMS, Architecture
from separatrix.stacks.architecture.released import PRESETS, preset_named
from separatrix.stacks.architecture.resolve import preset, resolve
from separatrix.stacks.architecture.spec import worded

Said = dict[str, Any]
MOST_TILES = 128


@dataclass(frozen=True)
class Question:
    """Stacks as the page names them, a context as people write one ("" for the models' own), and
    files that were given at the start.
    """

    stacks: tuple[str, ...]
    context: str = ""
    given: tuple[str, ...] = ()


def start() -> Said:
    """What may be chosen: presets, and mechanisms by name with title, group and names of sizes."""
    kinds = {
        name: [kind.title, kind.group, [one.name for one in fields(kind)]]
        for name, kind in MECHANISMS.items()
    }
    return {"presets": list(PRESETS), "mechanisms": kinds}


def answers(question: Question) -> Iterator[Said]:
    """The parts of an answer: of each stack its layers and memory, then the card, row by row, or
    what separates two of them, as HTML; last that it is whole. Or an error.
    """
    stacks: list[Architecture] = []
    for place, text in enumerate(question.stacks):
        try:
            stacks.append(architecture(text, question.given))
        except SeparatrixError as error:
            yield {"stack": place, "error": str(error)}
    if len(stacks) < len(question.stacks):
        return
    own = min((one.context for one in stacks if one.context is not None), default=DEFAULT_CONTEXT)
    alone = len(stacks) == 1
    try:
        context = parse_context(question.context) if question.context else own
        cards: list[CardFacts] = []
        for place, stack in enumerate(stacks):
            yield {"stack": place, **_begun(stack, context)}
            lines: list[CardLine] = []
            for key, found in groupby(in_turn(stack, context), attrgetter("key")):
                rows = rows_of(stack, fresh := [*found])
                lines += fresh
                yield _html(folds(rows)) if alone else {"state": f"asked: {ASKED[key]} …"}
            cards.append(card_facts(stack, context, lines=lines))
            yield {"stack": place, "card": card_json(cards[-1])}
    except SeparatrixError as error:
        yield {"error": str(error)}
        return
    yield _html(topics(*cards) if alone else compared_page(cards))
    yield {"answered": True}


def _html(parts: Iterable[Part]) -> Said:
    return {"html": Document(*parts).html()}


def told(question: Question) -> Iterator[Said]:
    """The same, where an error of this program is the last part: the next question is answered."""
    try:
        yield from answers(question)
    except Exception as error:
        traceback.print_exc()
        yield {"error": f"an error of this program: {type(error).__name__}: {first_line(error)}"}


@lru_cache(maxsize=64)
def _read(text: str) -> Architecture:
    known = preset_named(text)
    if known is not None:
        return preset(known)
    # never a path: a link is not to name what stands on this machine
    return resolve(text) if text.startswith("{") else Architecture.parse(text)


def architecture(text: str, given: Sequence[str]) -> Architecture:
    """The stack that the page names: a preset, a spec, a config.json written out, or a file that
    was given at the start. Raises what `resolve` raises.
    """
    return resolve(text) if text in given else _read(text.strip())


def tiles(stack: Architecture) -> Said:
    """The layers as a period, how often it stands there, and how many of its layers follow; no
    period where even that is too long to be shown.
    """
    words, common = worded(stack.layers)
    size = next(p for p in range(1, len(words) + 1) if words[p:] == words[: len(words) - p])
    shown = words[:size] if size <= MOST_TILES else []
    times, rest = divmod(len(words), size)
    return {"period": shown, "times": times, "rest": rest, "settings": common}


def _begun(stack: Architecture, context: int) -> Said:
    """A card before anything is asked."""
    facts = card_facts(stack, context, lines=())
    kept = [
        {
            "kind": row.kind,
            "title": memory.KINDS[row.kind],
            "bytes": bytes_of(row.bits),
            "said": format_bytes(row.bits),
            "grows": "" if row.limit is not None else row.growth,
        }
        for row in facts.memory
    ]
    return {
        "card": card_json(facts),
        "bytes": format_bytes(facts.bits),
        "memory": kept,
        "spec": stack.spec,
        "tiles": tiles(stack),
        "groups": {part.symbol: part.group for layer, _ in stack.counted() for part in layer},
    }
