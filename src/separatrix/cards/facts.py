"""Everything a capability card says of one architecture at one context, gathered once: what is
printed, compared or written as JSON reads it here and asks nothing else. Its lines say what the
model can and cannot do, each with the theorem that says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from separatrix.cards.composition import composition
from separatrix.cards.costs import Costs, Serving, costs
from separatrix.cards.memory import (
    FAR,
    Row,
    largest_numbers,
    layer_counts,
    positions_text,
    rows,
    symbols,
    taken_by_default,
)
from separatrix.cards.question import CardLine
from separatrix.cards.questions import questions, values_of
from separatrix.cards.short import Row as ShortRow
from separatrix.cards.short import forgets, holds, rows_of
from separatrix.core.errors import SizeError
from separatrix.core.numbers.amounts import check_context
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory.base import number
from separatrix.theory.fails.p_parity import STEPS, UNPLACED


def card(architecture: Architecture, context: int) -> list[CardLine]:
    """The card's lines at a context of that many tokens. Raises SizeError for a context beyond
    10^12.
    """
    return list(in_turn(architecture, context))


def in_turn(architecture: Architecture, context: int) -> Iterator[CardLine]:
    """The same lines, each question asked when its first line is taken."""
    if not architecture.causal:
        raise SizeError(
            f"'{architecture.spec}': cards are about models that read left to right, and with"
            " causal=false tokens see later ones; `construct` and `judge` take such stacks"
        )
    for key, question in questions(architecture, context).items() if context > 1 else ():
        lines = question.answer(architecture) if question else composition(architecture, context)
        yield from (replace(line, key=key) for line in lines)


_SAID_BY_NOTES = {
    "the recurrent state holds": "recurrent state",
    "softmax accumulators": "softmax accumulators",
}
"""How a mechanism's own assumption begins, and how a reader's note that says the same and more
does.
"""


@dataclass(frozen=True)
class CardFacts:
    """What a card says: the layers, the memory at `context` tokens, the verdicts, and what is
    taken for granted or not known.
    """

    name: str
    context: int
    context_from: str
    """Who chose the context, in words; "" for whoever asks."""
    values: int
    """Of a fact: as many as the model has tokens, or a number for those that do not say."""
    layers: dict[str, int]
    """Layers by kind, and `total`."""
    symbols: tuple[str, ...]
    """One for each layer, the first layer first."""
    titles: tuple[tuple[int, str], ...]
    """Layers by mechanism, most frequent first: (18, "RG-LRU"), (8, "windowed (2,048)")."""
    positions: str
    """Where tokens know their places from; "" without attention."""
    formats: str
    """Number formats in words: "bf16, recurrent state fp32 (assumed)"."""
    memory: tuple[Row, ...]
    recurrent_numbers: dict[str, int]
    """The most numbers in the state of one layer at the context, by mechanism."""
    convolution_numbers: dict[str, int]
    """The same for the buffers of short convolutions, once they are full."""
    costs: Costs
    """Operations, memory traffic and sequences at and around the context."""
    readers: int
    """Reading layers."""
    read_bits: int
    """Bits that one query takes of the past in the reading layer that gives it most."""
    lines: tuple[CardLine, ...]
    table: tuple[ShortRow, ...]
    """The lines in short."""
    forgets: str
    """What passes beyond the reach of the layers; "" where no theorem says."""
    holds: str
    """How many facts of one token fit into the recurrent states alone; "" without states."""
    defaults: tuple[str, ...]
    """Sizes that a spec leaves open, with the values taken."""
    assumptions: tuple[str, ...]
    unknown: tuple[str, ...]
    """Facts that the card would need and nobody gave."""

    @property
    def bits(self) -> int:
        """All memory at the context, in bits."""
        return sum(row.bits for row in self.memory)


def card_facts(
    architecture: Architecture,
    context: int,
    *,
    lines: Sequence[CardLine] | None = None,
    context_from: str = "",
    serving: Serving | None = None,
) -> CardFacts:
    """The facts of a card; `lines` in place of what the theory says, where they are known, who
    chose the context where nobody asked for it, and what the model is served with.

    Raises SizeError for a context that is none.
    """
    check_context(context)
    asked = tuple(card(architecture, context) if lines is None else lines)
    said = {"vocabulary": architecture.vocabulary, "context": architecture.context}
    return CardFacts(
        name=str(architecture),
        context=context,
        context_from=context_from,
        values=values_of(architecture),
        layers=layer_counts(architecture),
        symbols=symbols(architecture),
        titles=layer_titles(architecture),
        positions=positions_text(architecture),
        formats=_formats(architecture),
        memory=tuple(rows(architecture, context)),
        recurrent_numbers=largest_numbers(architecture, "state", context),
        convolution_numbers=largest_numbers(architecture, "convolution", FAR),
        costs=costs(architecture, context, serving or Serving()),
        readers=len(architecture.reading),
        read_bits=max((architecture.read_bits(i) for i in architecture.reading), default=0),
        lines=asked,
        table=rows_of(architecture, asked),
        forgets=forgets(architecture, asked),
        holds=holds(architecture, context, values_of(architecture)),
        defaults=taken_by_default(architecture),
        assumptions=(
            *_own(asked),
            *_spelling(architecture, asked),
            *_assumptions(architecture),
        ),
        unknown=tuple(name for name, value in said.items() if value is None),
    )


def layer_titles(architecture: Architecture) -> tuple[tuple[int, str], ...]:
    """How many layers there are of each set of mechanisms, most frequent first; full attention
    is counted where there is none.
    """
    counts = Counter(
        tuple(dict.fromkeys(part.card_title for part in layer)) for layer in architecture
    )
    titles = [(number, " | ".join(kinds)) for kinds, number in counts.most_common()]
    if not any(part.group == "full" for layer, _ in architecture.counted() for part in layer):
        titles.append((0, "full"))
    return tuple(titles)


def _formats(architecture: Architecture) -> str:
    mixing = [part for layer in architecture for part in layer if part.mixes_tokens]
    formats = sorted({part.format for part in mixing})
    states = sorted(
        {
            part.sizes()["state_format"] or part.format
            for part in mixing
            if "state_format" in part.sizes()
        }
    )
    assumed = any(
        note.startswith("recurrent state") and "(assumed)" in note for note in architecture.notes
    )
    words = ["/".join(formats)] if formats else []
    if states and states != formats:
        words.append(f"recurrent state {'/'.join(states)}{' (assumed)' if assumed else ''}")
    return ", ".join(words)


def _own(lines: Sequence[CardLine]) -> tuple[str, ...]:
    """The sources of positions that what is SOLVABLE rests on, and what Theorem P takes for granted
    of what FAILS.
    """
    said = [
        text
        for line in lines
        for text in (line.verdict.assumptions if line.verdict is not None else ())
        if (line.status == "SOLVABLE" and text.startswith("positions:"))
        or (line.status == "FAILS" and text in (UNPLACED, STEPS))
    ]
    return tuple(dict.fromkeys(said))


def _spelling(architecture: Architecture, lines: Sequence[CardLine]) -> tuple[str, ...]:
    ids = {
        line.question: parse_task(line.verdict.task).vocabulary
        for line in lines
        if line.verdict is not None
    }
    known = architecture.vocabulary
    if known is None or max(ids.values(), default=0) <= known:
        return ("one token per value",)
    more = "; ".join(f"{question}: {number(n)}" for question, n in ids.items() if n > known)
    return (
        f"one token per value, though the model has {known:,} tokens: with more values than that"
        f" they take several tokens, and prompts are longer ({more})",
    )


def _assumptions(architecture: Architecture) -> tuple[str, ...]:
    """What is taken for granted, each thing said once: a reader's note on a format stands for
    the mechanism's own words.
    """
    noted = [
        start
        for start in _SAID_BY_NOTES.values()
        if any(note.startswith(start) for note in architecture.notes)
    ]
    return tuple(
        text
        for text in architecture.assumptions
        if text in architecture.notes
        or not any(text.startswith(own) and start in noted for own, start in _SAID_BY_NOTES.items())
    )
