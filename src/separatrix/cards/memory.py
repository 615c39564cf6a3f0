"""The memory of an architecture at a context, how it grows, and its layers by kind: the numbers
that a capability card shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.outline import Outline, Part
from separatrix.stacks.mechanisms import Mechanism
from separatrix.stacks.mechanisms.base import ATTENTION

KINDS = {
    "state": "recurrent state",
    "convolution": "convolution buffers",
    "window": "windows",
    "kv": "keys and values",
}
FAR = 1 << 62
"""Tokens by which every window and convolution buffer is full."""
_FAR = 10**13


@dataclass(frozen=True)
class Row:
    """One kind of memory: bits at the context, bits at any length (None if it grows without
    bound), and growth in bits.
    """

    kind: str
    bits: int
    limit: int | None
    per_token: Fraction
    per_doubling: int

    @property
    def title(self) -> str:
        """The kind in words."""
        return KINDS[self.kind]


def rows(architecture: Architecture, context: int) -> list[Row]:
    """A row for every kind of memory the architecture has. Raises SizeError for a negative
    context.
    """
    here, far, twice = (architecture.cache(t) for t in (context, FAR, 2 * FAR))
    found = []
    for kind in KINDS:
        if not far.get(kind) or not far[kind].total:
            continue
        bits, at, later = (cache[kind].total for cache in (here, far, twice))
        per_token = _per_token(architecture) if kind == "kv" else Fraction(0)
        doubling = later - at if kind == "state" else 0
        found.append(Row(kind, bits, None if per_token or doubling else at, per_token, doubling))
    return found


def _per_token(architecture: Architecture) -> Fraction:
    """Bits of keys and values per token; compressed blocks count by their share."""
    # after a common multiple every cache has grown by whole blocks
    period = lcm(*(part.cache_stride for part in _parts(architecture)))
    # far beyond the first block, which may be longer than the stride
    far = _FAR * period
    kept = (architecture.cache(t)["kv"].total for t in (far, far + period))
    return Fraction(-next(kept) + next(kept), period)


def _parts(architecture: Architecture) -> Iterator[Mechanism]:
    return (part for layer, _ in architecture.counted() for part in layer)


def layer_counts(architecture: Architecture | Outline) -> dict[str, int]:
    """Layers by kind; a layer with attention and recurrence counts in both and in `parallel`."""
    counts: dict[str, int] = dict.fromkeys(
        ("full", "windowed", "indexed", "recurrent", "convolution", "parallel", "other"), 0
    )
    for layer, times in architecture.counted():
        kinds = {part.group for part in layer}
        for kind in kinds:
            counts[kind] += times
        counts["parallel"] += times * ("recurrent" in kinds and bool(kinds & ATTENTION))
    return {"total": len(architecture), **counts}


def symbol(layer: tuple[Part, ...]) -> str:
    """One character for a layer: its mechanism's own, or h for heads of several mechanisms."""
    own = {part.symbol for part in layer}
    return own.pop() if len(own) == 1 else "h"


def symbols(architecture: Architecture | Outline) -> tuple[str, ...]:
    """One symbol per layer, first layer first."""
    return tuple(symbol(layer) for layer in architecture)


def largest_numbers(architecture: Architecture, kind: str, t: int) -> dict[str, int]:
    """The most numbers of that kind of memory that a layer holds after t tokens, by mechanism;
    mechanisms without any are left out.
    """
    largest: dict[str, int] = {}
    for part in _parts(architecture):
        numbers = sum(item.bits.numbers for item in part.cache(t) if item.kind == kind)
        if numbers:
            largest[part.name] = max(numbers, largest.get(part.name, 0))
    return dict(sorted(largest.items()))
