"""Everything a capability card says of one architecture at one context, gathered once: what is
printed, compared or written as JSON reads it here and asks nothing else. Its lines say what the
model can and cannot do, each with the theorem that says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from separatrix.cards import memory
from separatrix.cards.composition import composition
from separatrix.cards.costs import Costs, Serving, costs
from separatrix.cards.question import CardLine
from separatrix.cards.questions import questions, values_of
from separatrix.core.errors import SizeError, UnknownNameError
from separatrix.core.evidence.records import Status, Verdict
from separatrix.core.numbers.accuracy import percent
from separatrix.core.numbers.amounts import check_context
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.forgetting import masks
from separatrix.tasks import parse_task
from separatrix.theory.base import number
from separatrix.theory.fails.a_accuracy import held_by_state
from separatrix.theory.fails.p_parity import STEPS, UNPLACED
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

SOLVED = {
    "retrieval": "one full layer (layer {layer})",
    "composition": "by its {full_layers} full layers",
    "thought": "one full layer (layer {layer})",
    "match2": "one full layer (layer {layer}), {dimensions} key dimensions",
    "pairs": "two full layers (layers {first} and {second})",
    "equality": "two full layers (layers {first} and {second})",
    "lookup": "two layers (layers {first} and {second})",
    "copying": "two layers (layers {first} and {second})",
    "block-retrieval": "one sparse layer (layer {layer}), blocks of {block}",
    "question-first": "{bits} bits of state, whatever n",
    "state-tracking": "one layer (layer {layer}), whatever n",
}
"""Construction -> the number that decides; layers are counted from one."""
_LAYER = re.compile(r"layer(_\d+)?|first|second|counter|stack|flag")
"""Numbers of a verdict that are places of layers, counted from 0."""


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

    def to_json(self) -> dict[str, Any]:
        """Plain data, without the lines."""
        return {name: value for name, value in asdict(self).items() if name != "lines"}


def rows_of(architecture: Architecture, lines: Sequence[CardLine]) -> tuple[Row, ...]:
    """The rows of a card; a line that says with a chain of thought what the one before says without
    is one with it.
    """
    found: list[Row] = []
    for line in lines:
        last = found[-1].lines[-1] if found else None
        if last is not None and line.thought and _alike(last, line):
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
    if asked == MEASURED:
        return MEASURED
    named = {name.casefold(): name for name in (*ASKED, *TOPICS, ALL)}
    named |= {text.casefold(): key for key, text in ASKED.items()}
    begun = {key for name, key in named.items() if folded and name.startswith(folded)}
    if folded in named or len(begun) == 1:
        return named.get(folded) or begun.pop()
    known = (*ASKED, *TOPICS, ALL, MEASURED)
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
    if line.status == "FAILS":
        record = line.record
        if line.key == "needle" and record is not None and "reach" in record.numbers:
            return f"lost behind {record.numbers['reach']:,} tokens of filler"
        best = "" if line.grade is None else f"; here {percent(line.grade.ceiling)} at best"
        return f"{line.where}{_in_tokens(line)}{best}{_declared(line)}"
    if line.bound is None:
        return line.missing
    if line.bound.out_of_reach:
        return FAR if len(architecture.reading) > 1 else "bound beyond 10^12 tokens"
    if not line.where:
        return line.bound.said
    return f"fails {line.where}{_in_tokens(line)}{_declared(line)}"


def forgets(architecture: Architecture, lines: Iterable[CardLine]) -> str:
    """What passes on beyond the reach of a stack's layers, where Theorem R speaks; "" elsewhere."""
    record = next((line.record for line in lines if line.theorem == "R" and line.record), None)
    if record is None or not record.numbers["reach"]:
        return ""
    bits = record.numbers["state_bits"]
    left = f"all but {bits:,} bits of state" if bits else "everything"
    said = f"{left} after {record.numbers['reach']:,} tokens"
    windows = " and ".join(f"{size:,}" for size in masks(architecture))
    return f"{said}, if the kernel masks at {windows}" if windows else said


def holds(architecture: Architecture, context: int, values: int) -> str:
    """How many facts the recurrent states alone can tell, by kind of layer; "" without states."""
    found = [
        f"{facts:,}{'' if i else ' facts of 1 token'} in {counted_as(layers, f'{kind} state')}"
        for i, (kind, layers, facts) in enumerate(held_by_state(architecture, values, context))
    ]
    return f"at most {', '.join(found)}" if found else ""


def _in_tokens(line: CardLine) -> str:
    """How long prompts of that n are, where n counts something else and is near the context."""
    n, most = (line.n, inf) if line.bound is None else (line.bound.n, NEAR * line.bound.asked)
    if line.record is None or n is None or n > most:
        return ""
    length = parse_task(line.record.task).length
    return f", {length:,} tokens" if 2 * length > 3 * n else ""


def _declared(line: CardLine) -> str:
    record = line.record
    rests = record is not None and DECLARED in record.statement
    return f", if, {DECLARED}, it is monotone" if rests else ""


def _alike(one: CardLine, other: CardLine) -> bool:
    return (one.key, one.status, one.where) == (other.key, other.status, other.where)


def _solved(architecture: Architecture, line: CardLine) -> str:
    verdict, words = line.verdict, SOLVED.get(line.theorem)
    if verdict is None or (words is None and line.theorem != "S"):
        return line.text
    numbers = from_one(verdict.numbers)
    if words is None:
        return _multiplied(architecture, verdict, numbers)
    if line.theorem == "question-first":
        numbers["bits"] = numbers["key_bits"] + numbers["answer_bits"] + 1
    return words.format_map(numbers).replace("its 1 full layers", "its one full layer")


def from_one(numbers: Mapping[str, int]) -> dict[str, int]:
    """A verdict's numbers with its layers counted from 1, as they are wherever people read them."""
    return {name: number + bool(_LAYER.fullmatch(name)) for name, number in numbers.items()}


def _multiplied(architecture: Architecture, verdict: Verdict, numbers: dict[str, int]) -> str:
    if "channels" in numbers:
        return f"one full layer (layer {numbers['layer']}) counts"
    said = f"{numbers['layers']} of {len(architecture)} layers, product {numbers['letters']:,}"
    return said if numbers["width_stated"] else f"{said}; MLP assumed"


def card(architecture: Architecture, context: int) -> list[CardLine]:
    """The card's lines at a context. Raises SizeError for one beyond 10^12 tokens."""
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
"""How a mechanism's own assumption begins, and how a reader's note that says more does."""


@dataclass(frozen=True)
class CardFacts:
    """What a card says of layers, memory and tasks at `context` tokens, and what it rests on."""

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
    memory: tuple[memory.Row, ...]
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
        layers=memory.layer_counts(architecture),
        symbols=memory.symbols(architecture),
        titles=layer_titles(architecture),
        positions=memory.positions_text(architecture),
        formats=_formats(architecture),
        memory=tuple(memory.rows(architecture, context)),
        recurrent_numbers=memory.largest_numbers(architecture, "state", context),
        convolution_numbers=memory.largest_numbers(architecture, "convolution", memory.FAR),
        costs=costs(architecture, context, serving or Serving()),
        readers=len(architecture.reading),
        read_bits=max((architecture.read_bits(i) for i in architecture.reading), default=0),
        lines=asked,
        table=rows_of(architecture, asked),
        forgets=forgets(architecture, asked),
        holds=holds(architecture, context, values_of(architecture)),
        defaults=memory.taken_by_default(architecture),
        assumptions=(
            *_own(asked),
            *_spelling(architecture, asked),
            *_assumptions(architecture),
        ),
        unknown=tuple(name for name, value in said.items() if value is None),
    )


def layer_titles(architecture: Architecture) -> tuple[tuple[int, str], ...]:
    """Layers of each set of mechanisms, most frequent first; full attention also where it is 0."""
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
    """The positions that SOLVABLE lines rest on, and what Theorem P takes for granted of FAILS."""
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
    """What is taken for granted, once: a reader's note stands for the mechanism's own words."""
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
