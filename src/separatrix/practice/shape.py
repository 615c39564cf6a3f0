"""How a stack is laid out, in the words that experiments label their rows with: how many layers are
full attention, of what kind the others are, and where the full ones stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from separatrix.architecture import MECHANISMS, Architecture

Beside = Literal["none", "before", "between", "after"]
"""Where the bounded layers of a stack stand: before the first full layer (and perhaps between and
after, too), else between two, else after the last.
"""
Place = Literal["none", "first", "middle", "last", "spread", "all", "elsewhere"]
"""Where the full layers stand: all together at the start, somewhere inside or at the end; spread;
or so unevenly that no experiment has the like.
"""
FULL = "full"
UNEVEN = 2
"""How many times as many layers a gap between full layers, or an end of the stack without any, may
have as another gap, and one more, where they still count as spread.
"""


@dataclass(frozen=True)
class Shape:
    """The layers that mix tokens, counted and placed."""

    layers: int
    full: int
    kinds: tuple[str, ...]
    """What the others are, as experiments name mechanisms, in order of first appearance."""
    beside: Beside
    place: Place

    @classmethod
    def of(cls, architecture: Architecture) -> Shape | None:
        """The shape of a stack; None where no experiment has the like: heads of several kinds in a
        layer, or layers that read the past in another way than full attention.
        """
        mixing = [layer for layer in architecture if any(part.mixes_tokens for part in layer)]
        if not mixing or any(len(layer) > 1 for layer in mixing):
            return None
        parts = [layer[0] for layer in mixing]
        if any(part.reading and part.name != FULL for part in parts):
            return None
        reads = [index for index, part in enumerate(parts) if part.reading]
        others = (part.measured_as for part in parts if not part.reading)
        return cls(
            layers=len(parts),
            full=len(reads),
            kinds=tuple(dict.fromkeys(others)),
            beside=_beside(reads, len(parts)),
            place=_place(reads, len(parts)),
        )

    @classmethod
    def of_text(cls, text: str) -> Shape | None:
        """The shape of a stack that a spec describes."""
        return cls.of(Architecture.parse(text))

    @property
    def bounded(self) -> int:
        """Layers that are not full attention."""
        return self.layers - self.full

    @property
    def kind(self) -> str | None:
        """What the bounded layers are, where all are of one kind; None for none or several."""
        return self.kinds[0] if len(self.kinds) == 1 else None

    @property
    def ratio(self) -> Fraction | None:
        """Bounded layers per full one; None without a full layer."""
        return Fraction(self.bounded, self.full) if self.full else None


def title(kind: str) -> str:
    """A kind in words: "Gated DeltaNet", "Gated DeltaNet (negative=true)"."""
    name, bracket, options = kind.partition("(")
    cls = MECHANISMS.get(name)
    said = name if cls is None else cls.title
    return f"{said} ({options}" if bracket else said


def _beside(reads: Sequence[int], layers: int) -> Beside:
    if not reads or len(reads) == layers:
        return "none"
    if reads[0] > 0:
        return "before"
    return "between" if reads[-1] - reads[0] >= len(reads) else "after"


def _place(reads: Sequence[int], layers: int) -> Place:
    if not reads:
        return "none"
    if len(reads) == layers:
        return "all"
    if reads[-1] - reads[0] < len(reads):
        if reads[0] == 0:
            return "first"
        return "last" if reads[-1] == layers - 1 else "middle"
    gaps = [right - left - 1 for left, right in pairwise(reads)]
    ends = (reads[0], layers - 1 - reads[-1])
    return "spread" if 0 < max(*gaps, *ends) <= UNEVEN * min(gaps) + 1 else "elsewhere"
