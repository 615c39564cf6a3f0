"""Facts that a state holds: bits that trained layers learned per number, carried on to a stack
without a layer that reads.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from separatrix.architecture import Architecture
from separatrix.cards.found.finding import Finding
from separatrix.numbers.accuracy import facts_that_fit
from separatrix.practice.capacity import Held, held
from separatrix.practice.shape import Shape, title
from separatrix.practice.words import FEWEST_SEEDS, about, about_at_most, bits

_KEPT = {"recurrent": "state", "windowed": "window"}
"""Groups of layers, and the kind of memory in which one holds facts."""
_CAUTION = "that such layers hold no more, or that as much is learned at this size"


class _Memory(NamedTuple):
    """The memory of all layers of a kind."""

    held: Held
    numbers: int
    """Of the state, all layers together; of a window, of the largest layer, since all of them see
    the same last tokens.
    """
    tokens: int | None
    """Of a window; None for a state."""

    def facts(self, per_number: Fraction, values: int) -> int:
        """Facts held at so many bits per number; a window holds at most one for each token."""
        fitting = facts_that_fit(values, int(per_number * self.numbers))
        return fitting if self.tokens is None else min(fitting, self.tokens)


def held_facts(
    architecture: Architecture, context: int, values: int, question: str
) -> Finding | None:
    """How many facts of so many values trained layers of these kinds would hold at a context, if
    they learned as much per number; None where a layer reads, or a kind was not measured.
    """
    shape = Shape.of(architecture)
    if shape is None or shape.full:
        return None
    memories: dict[str, _Memory] = {}
    for kind in shape.kinds:
        memory = _memory(architecture, kind, context)
        if memory is None:
            return None
        memories[kind] = memory
    estimate = {
        name: _facts(architecture, context, values, list(memories.values()), name)
        for name in ("low", "best", "high")
    }
    found = [memory.held for memory in memories.values()]
    here = context - 1
    best = f"{about(estimate['best']):,}"
    ends = [f"{about(estimate['low']):,}", f"{about_at_most(estimate['high']):,}"]
    # rounding to two digits may leave nothing of the interval
    result = f"{best} facts" if set(ends) == {best} else f"{best} [{', '.join(ends)}] facts"
    if estimate["low"] >= here:
        result += f", more than the {here:,} of this context"
    return Finding(
        question=question,
        experiment="capacity",
        measured=_measured(memories),
        brief=f"{' and '.join(bits(memory.held) for memory in memories.values())} bits per number",
        result=result,
        distances={
            "numbers": max(Fraction(m.numbers, m.held.numbers) for m in memories.values()),
            "values": Fraction(values, min(max(one.values) for one in found)),
        },
        caution=_CAUTION,
        explain=(
            "The bits are a lower bound of what the best of several trained models kept of"
            " independent facts; another training may keep more, up to the bound. That layers of a"
            " stack add up, that facts of many values cost log2 of their number, and that short"
            " convolutions hold nothing of account is taken for granted and was not measured."
        ),
        rows=tuple(one.row for one in found),
        numbers={
            "facts": estimate["best"],
            "facts_low": estimate["low"],
            "facts_high": estimate["high"],
            **{f"{kind}.numbers": memory.numbers for kind, memory in memories.items()},
            **{f"{kind}.bits_per_number": memory.held.best for kind, memory in memories.items()},
            **{f"{kind}.bits_per_number_low": memory.held.low for kind, memory in memories.items()},
            **{
                f"{kind}.bits_per_number_high": memory.held.high
                for kind, memory in memories.items()
            },
        },
    )


def _memory(architecture: Architecture, kind: str, context: int) -> _Memory | None:
    """None for a kind that was not measured or learned nothing for sure, and for one that keeps
    facts in no state or window.
    """
    found = held(kind)
    if found is None or found.seeds < FEWEST_SEEDS or found.low <= 0:
        return None
    alike = [
        (part, times)
        for layer, times in architecture.counted()
        for part in layer
        if part.measured_as == kind
    ]
    group = alike[0][0].group
    if group not in _KEPT:
        return None
    each = [
        (sum(item.bits.numbers for item in part.cache(context) if item.kind == _KEPT[group]), times)
        for part, times in alike
    ]
    if group == "recurrent":
        return _Memory(found, sum(numbers * times for numbers, times in each), None)
    seen = max(getattr(part, part.varied_sizes()["window"]) for part, _ in alike)
    return _Memory(found, max(numbers for numbers, _ in each), min(seen, context))


def _facts(
    architecture: Architecture, context: int, values: int, memories: list[_Memory], end: str
) -> int:
    facts = sum(memory.facts(getattr(memory.held, end), values) for memory in memories)
    # what is carried on from small states must not go beyond what any weights can hold
    return min(facts, facts_that_fit(values, architecture.cache_bits(context)))


def _measured(memories: dict[str, _Memory]) -> str:
    rates: list[str] = []
    for kind, memory in memories.items():
        kept = "state" if memory.tokens is None else "window"
        learned = " learned at least" if not rates else ""
        unit = " bits" if not rates else ""
        rates.append(
            f"{title(kind)} layers{learned} {bits(memory.held)}{unit} per number of {kept}"
        )
    sizes = " and ".join(f"{memory.held.numbers:,}" for memory in memories.values())
    return f"trained {', '.join(rates)} (capacity experiment, up to {sizes} numbers)"
