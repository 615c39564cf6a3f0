"""Everything a capability card says of one architecture at one context, gathered once: what is
printed, compared or written as JSON reads it here and asks nothing else. Its lines say what the
model can and cannot do, each with the theorem that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from operator import attrgetter
from typing import Any

from separatrix.cards import memory
from separatrix.cards.composition import composition
from separatrix.cards.costs import Costs, Serving, costs
from separatrix.cards.question import CardLine
from separatrix.cards.questions import questions, values_of
from separatrix.core.errors import SizeError, UnknownNameError
from separatrix.core.evidence.records import Status
from separatrix.core.numbers.accuracy import percent
from separatrix.core.numbers.amounts import check_context
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.forgetting import masks
from separatrix.stacks.architecture.resolve import Stack, stack_of
from separatrix.tasks import parse_task
from separatrix.theory import THEOREMS
from separatrix.theory.base import OF_THE_MODEL, number
from separatrix.theory.fails.a_accuracy import held_by_state
from separatrix.theory.fails.p_parity import STEPS, UNPLACED
from separatrix.theory.solves.room import brief, from_one
from separatrix.theory.words import counted_as

ASKED = {
    "recall": "one of n facts of 1 token",
    "recall-2": "one of n facts of 2 tokens",
    "question-first": "question before the facts",
    "needle": "a needle amid filler",
    "needles": "all of n facts in turn",
    "copy": "copy n tokens",
    "induction": "continue after 2 tokens",
    "hops": "follow 8 hops",
    "composition": "compose",
    "2sum": "2-Sum with the last token",
    "pairs": "2-Sum of any pair",
    "equality": "two strings equal",
    "brackets": "nested brackets",
    "parity": "parity of bits",
    "s5": "track S_5",
}
"""A question's name, as `--why` takes it, and what it asks in a few words."""
TOPICS = ("memory", "costs", "assumptions")
"""What `--why` opens beside questions."""
ALL, MEASURED = "all", "measured"
FAR = "no theorem known at this size"
NOTHING_SPEAKS = (
    "No unconditional theorem known speaks about stacks with several full layers at this size."
)
"""Said once, in place of numbers that no prompt reaches."""
THOUGHT = "with chain of thought"
NEAR = 10
"""How many times the size at the context is near enough to be told in tokens."""
DECLARED = "as its author declares"


@dataclass(frozen=True)
class Row:
    """One row of the table: a question and its answer, and the lines behind it."""

    key: str
    asks: str
    status: Status
    decides: str
    theorem: str
    """The theorem of a bound, or of a failure; "" of a construction, and where there is none."""
    lines: tuple[CardLine, ...]
    thought: bool = False
    """Whether the same holds with a chain of thought."""

    @property
    def said(self) -> str:
        """What decides it, and by which theorem."""
        text = f"{self.decides}, also {THOUGHT}" if self.thought else self.decides
        return f"{text} ({self.theorem})" if self.theorem else text

    @property
    def answer(self) -> str:
        """The same with its status, in a few words: "SOLVABLE: one full layer (layer 4)"."""
        if self.decides == FAR:
            return self.status
        said = replace(self, thought=False).said
        return f"{self.status}{' ' if self.status == 'FAILS' else ': '}{said}"

    def to_json(self) -> dict[str, Any]:
        """Plain data, without the lines."""
        return {name: value for name, value in asdict(self).items() if name != "lines"}


def rows_of(architecture: Architecture, lines: Sequence[CardLine]) -> tuple[Row, ...]:
    """The rows of a card; a line that says with a chain of thought what the one before says without
    is one with it.
    """
    same = attrgetter("key", "status", "where")
    found: list[Row] = []
    for line in lines:
        last = found[-1].lines[-1] if found else None
        if last is not None and line.thought and same(last) == same(line):
            found[-1] = replace(found[-1], thought=True, lines=(last, line))
            continue
        cited = "" if line.status == "SOLVABLE" and line.theorem != "S" else line.theorem
        said = decided(architecture, line)
        cited = "" if cited == "none" or said == FAR else cited
        found.append(Row(line.key, asks(line), line.status, said, cited, (line,)))
    return tuple(found)


def opened(asked: str) -> str:
    """The question or topic, `ALL` or `MEASURED`, that `--why` opens. Raises UnknownNameError."""
    folded = asked.strip().casefold()
    known = (*ASKED, *TOPICS, ALL, MEASURED)
    named = {name: name for name in known} | {text.casefold(): key for key, text in ASKED.items()}
    begun = {key for name, key in named.items() if folded and name.startswith(folded)}
    if folded in named or len(begun) == 1:
        return named.get(folded) or begun.pop()
    raise UnknownNameError.of("question", asked.strip(), known, where=" of --why")


def asks(line: CardLine) -> str:
    """The question in a few words, with its steps where it is about several."""
    first, last = line.steps
    if not last:
        text = ASKED.get(line.key, line.question)
        return f"{text} {THOUGHT}" if line.thought else text
    if line.thought:
        return f"  up to {last:,}, {THOUGHT.removeprefix('with ')}"
    if 0 < first < last:
        return f"compose {first} to {last} steps"
    return f"compose {'' if first else 'up to '}{counted_as(last, 'step')}"


def decided(architecture: Architecture, line: CardLine) -> str:
    """The number that decides a line, in a few words."""
    if line.status == "SOLVABLE":
        return _solved(architecture, line)
    record, bound = line.record, line.bound
    if bound is None and line.status == "OPEN":
        return line.missing
    if bound is not None and bound.out_of_reach:
        return FAR if len(architecture.reading) > 1 else "bound beyond 10^12 tokens"
    if bound is not None and not line.where:
        return bound.said
    said = line.where if bound is None else f"fails {line.where}"
    if record is not None:
        if line.key == "needle" and bound is None and "reach" in record.numbers:
            return f"lost behind {record.numbers['reach']:,} tokens of filler"
        n, most = (line.n, inf) if bound is None else (bound.n, NEAR * bound.asked)
        length = parse_task(record.task).length
        if n is not None and n <= most and 2 * length > 3 * n:
            # it counts something else than tokens
            said += f", {length:,} tokens"
    if line.grade is not None:
        said += f"; here {percent(line.grade.ceiling)} at best"
    declared = record is not None and DECLARED in record.statement
    return f"{said}, if, {DECLARED}, it is monotone" if declared else said


def forgets(architecture: Architecture, context: int, lines: Iterable[CardLine]) -> str:
    """What passes on beyond the reach of a stack's layers, where Theorem R speaks; "" elsewhere,
    and where a window sees the whole context.
    """
    record = next((line.record for line in lines if line.theorem == "R" and line.record), None)
    if record is None or not record.numbers["reach"] or architecture.within(context).reading:
        return ""
    bits = record.numbers["state_bits"]
    left = f"all but {bits:,} bits of state" if bits else "everything"
    said = f"{left} after {record.numbers['reach']:,} tokens"
    windows = " and ".join(f"{size:,}" for size in masks(architecture))
    return f"{said}, if the kernel masks at {windows}" if windows else said


def holds(architecture: Architecture, context: int) -> str:
    """How many facts the recurrent states alone can tell, by kind of layer; "" without states."""
    states = held_by_state(architecture, values_of(architecture), context)
    found = [
        f"{facts:,}{'' if i else ' facts of 1 token'} in {counted_as(layers, f'{kind} state')}"
        for i, (kind, layers, facts) in enumerate(states)
    ]
    return f"at most {', '.join(found)}" if found else ""


def _solved(architecture: Architecture, line: CardLine) -> str:
    verdict = line.verdict
    if verdict is None:
        return line.text
    numbers = from_one(verdict.numbers)
    if line.theorem != "S":
        says = THEOREMS[line.theorem].says
        return brief(says, architecture, verdict.numbers) if says else line.text
    if "channels" in numbers:
        return f"one full layer (layer {numbers['layer']}) counts"
    said = f"{numbers['layers']} of {len(architecture)} layers, product {numbers['letters']:,}"
    return said if numbers["width_stated"] else f"{said}; MLP assumed"


def card(model: Stack, context: int) -> list[CardLine]:
    """The card's lines at a context. Raises SizeError for a context that is none."""
    return list(in_turn(stack_of(model), check_context(context)))


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


@dataclass(frozen=True)
class CardFacts:
    """What a card says of memory and tasks at `context` tokens, and what it rests on; of its layers
    see `memory`.
    """

    architecture: Architecture
    context: int
    context_from: str
    """Who chose the context, in words; "" for whoever asks."""
    memory: tuple[memory.Row, ...]
    costs: Costs
    """Operations, memory traffic and sequences at and around the context."""
    lines: tuple[CardLine, ...]
    table: tuple[Row, ...]
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
    def name(self) -> str:
        return str(self.architecture)

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
    asked = tuple(in_turn(architecture, context) if lines is None else lines)
    return CardFacts(
        architecture=architecture,
        context=context,
        context_from=context_from,
        memory=tuple(memory.rows(architecture, context)),
        costs=costs(architecture, context, serving or Serving()),
        lines=asked,
        table=rows_of(architecture, asked),
        forgets=forgets(architecture, context, asked),
        holds=holds(architecture, context),
        defaults=memory.taken_by_default(architecture),
        assumptions=_assumptions(architecture, asked),
        unknown=tuple(x for x in ("vocabulary", "context") if getattr(architecture, x) is None),
    )


_SAID_BY_NOTES = {
    "the recurrent state holds": "recurrent state",
    "softmax accumulators": "softmax accumulators",
}
"""How a mechanism's own assumption begins, and how a reader's note that says more does."""


def _assumptions(architecture: Architecture, lines: Sequence[CardLine]) -> tuple[str, ...]:
    """What is taken for granted, once: the positions that SOLVABLE lines rest on, what Theorem P
    takes for granted of FAILS, how values are spelt, and what the sizes say, unless a note of the
    file's reader says more.
    """
    own: list[str] = []
    longer: list[str] = []
    known = architecture.vocabulary
    for line in lines:
        if line.verdict is None:
            continue
        for text in line.verdict.assumptions:
            placed = line.status == "SOLVABLE" and text.startswith(OF_THE_MODEL)
            if placed or (line.status == "FAILS" and text in (UNPLACED, STEPS)):
                own.append(text)
        ids = parse_task(line.verdict.task).vocabulary
        if known is not None and ids > known:
            longer.append(f"{line.question}: {number(ids)}")
    spelt = "one token per value"
    if longer:
        spelt += (
            f", though the model has {known:,} tokens: with more values than that they take several"
            f" tokens, and prompts are longer ({'; '.join(longer)})"
        )
    sizes = architecture.assumptions
    for begins, noted in _SAID_BY_NOTES.items():
        if any(note.startswith(noted) for note in architecture.notes):
            said = architecture.notes
            sizes = tuple(t for t in sizes if t in said or not t.startswith(begins))
    return (*dict.fromkeys(own), spelt, *sizes)
