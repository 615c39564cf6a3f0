"""A card's lines in short: each question in a few words, its answer, and the number that decides
it; of an OPEN one, what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from separatrix.cards.question import CardLine
from separatrix.core.errors import UnknownNameError
from separatrix.core.evidence.records import Status, Verdict
from separatrix.core.numbers.accuracy import percent
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.forgetting import masks
from separatrix.tasks import parse_task
from separatrix.theory.fails.a_accuracy import held_by_state
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
_LAYERS = ("layer", "first", "second")
_STEPS = re.compile(r"(?:L <= |from )?(\d+)(?: to (\d+))? steps?$|L <= (\d+)$")


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
        if last is not None and THOUGHT in line.question and _alike(last, line):
            found[-1] = replace(found[-1], thought=True, lines=(last, line))
            continue
        cited = "" if line.status == "SOLVABLE" and line.theorem != "S" else line.theorem
        said = decided(architecture, line)
        cited = "" if cited == "none" or said == FAR else cited
        found.append(Row(line.key, asks(line), line.status, said, cited, (line,)))
    return tuple(found)


def opened(asked: str) -> str:
    """The name of a question or a topic, `ALL` or `MEASURED`, that `--why` opens. Raises
    UnknownNameError.
    """
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


def steps_of(line: CardLine) -> tuple[int, int]:
    """The numbers of steps that a line of composition is about."""
    found = _STEPS.search(line.question)
    if found is None:
        raise ValueError(f"no number of steps in {line.question!r}")
    first, last, most = found.groups()
    if most or "L <=" in line.question:
        return 1, int(most or first)
    return int(first), int(last or first)


def asks(line: CardLine) -> str:
    """The question in a few words, with its steps where it is about several."""
    if line.key != "composition":
        text = ASKED.get(line.key, line.question)
        return f"{text} {THOUGHT}" if THOUGHT in line.question else text
    first, last = steps_of(line)
    if "L <=" in line.question:
        text = f"compose up to {counted_as(last, 'step')}"
    elif last > first:
        text = f"compose {first} to {last} steps"
    else:
        text = f"compose {counted_as(last, 'step')}"
    if THOUGHT in line.question:
        return f"  up to {last:,}, {THOUGHT.removeprefix('with ')}"
    return text


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
    """How long prompts of that n are, where n counts something else than their tokens and is not
    far beyond the context.
    """
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
    verdict = line.verdict
    if verdict is None:
        return line.text
    numbers = {**verdict.numbers} | {
        name: verdict.numbers[name] + 1 for name in _LAYERS if name in verdict.numbers
    }
    if line.theorem == "S":
        return _multiplied(architecture, verdict, numbers)
    if line.theorem == "question-first":
        numbers["bits"] = numbers["key_bits"] + numbers["answer_bits"] + 1
    words = SOLVED.get(line.theorem)
    if words is None:
        return line.text
    return words.format_map(numbers).replace("its 1 full layers", "its one full layer")


def _multiplied(architecture: Architecture, verdict: Verdict, numbers: dict[str, int]) -> str:
    if "channels" in numbers:
        return f"one full layer (layer {numbers['layer']}) counts"
    said = f"{numbers['layers']} of {len(architecture)} layers, product {numbers['letters']:,}"
    return said if numbers["width_stated"] else f"{said}; MLP assumed"
