"""What a stack loses of its first tokens: windows forget them, and only states pass (theory.md,
section 12, Theorem R).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

from separatrix.core.numbers.first_size import first_size
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.spec import Layer
from separatrix.stacks.mechanisms import Mechanism
from separatrix.stacks.mechanisms.base import Reach

_FAR = 1 << 62
"""Tokens by which a state that grows has grown."""


class Forgetting(NamedTuple):
    """How what the tokens up to a cut say is lost behind it."""

    cut: int
    beyond: int
    """Outputs at later tokens than this one are a function of the tokens behind the cut and of the
    states that are handed over.
    """
    handed: int
    """The last token after which a state is handed over; the cut where none is."""
    bits: int
    """Bits of all these states."""

    @property
    def reach(self) -> int:
        """G: tokens behind the cut after which only the states have passed."""
        return self.beyond - self.cut


class _Part(NamedTuple):
    mechanism: Mechanism
    reach: Reach
    bits: int | None
    """Bits of its state; None where they grow."""

    def passed(self, t: int) -> int:
        return self.mechanism.handed_over(t).total if self.bits is None else self.bits


class _Step(NamedTuple):
    """A layer: what convolutions beside its heads add, and the heads."""

    beside: int
    parts: tuple[_Part, ...]


@dataclass(frozen=True)
class Lags:
    """How the lag behind a cut grows from layer to layer."""

    steps: tuple[_Step, ...]

    @classmethod
    def of(cls, architecture: Architecture, *, before: int | None = None) -> Self | None:
        """Those of the layers before layer `before`, or of all; None where one of them reads every
        token.
        """
        if before is None and architecture.reading:
            return None
        layers = architecture.layers[:before]
        # real stacks repeat a few layers many times
        kinds = {layer: _step(layer) for layer in dict.fromkeys(layers)}
        found = [kinds[layer] for layer in layers]
        steps = tuple(step for step in found if step is not None)
        return cls(steps) if len(steps) == len(found) else None

    def at(self, cut: int) -> Forgetting:
        """What is lost of the first `cut` tokens. Each layer is cut where what it reads depends on
        nothing before the cut, and its state counts there; of heads side by side the slowest
        counts.
        """
        start = self.everywhere
        if start is None:
            return self._walked(cut)
        return Forgetting(cut, cut + start.beyond, cut + start.handed, start.bits)

    @cached_property
    def everywhere(self) -> Forgetting | None:
        """What is lost at a cut before the first token, where that is the same at every cut."""
        parts = [part for step in self.steps for part in step.parts]
        moves = any(part.reach.chunk or part.bits is None for part in parts)
        return None if moves else self._walked(0)

    def _walked(self, cut: int) -> Forgetting:
        """The same, layer by layer."""
        place = handed = cut
        bits = 0
        for beside, parts in self.steps:
            place += beside
            end = place
            for part in parts:
                after = part.reach.handed(place)
                passed = part.passed(after)
                if passed:
                    bits += passed
                    handed = max(handed, after)
                end = max(end, part.reach.beyond(place))
            place = end
        return Forgetting(cut, place, handed, bits)

    def latest(
        self, *, every: int, most: int, beyond: int, handed: Callable[[int], int]
    ) -> Forgetting | None:
        """What is lost at the latest cut behind 1, ..., `most` times `every` tokens with which
        outputs are free of it behind token `beyond`, and states are handed over by the token that
        `handed` names for the cut; None where there is none.
        """

        def too_late(times: int) -> bool:
            found = self.at(times * every)
            return found.beyond > beyond or found.handed > handed(found.cut)

        # all lags are the same at every cut, but for borders of chunks
        guess = max(1, min(most, (beyond - self.at(0).beyond) // every + 1))
        late = first_size(too_late, 1, limit=most, near=guess)
        times = most if late is None else late - 1
        return self.at(times * every) if times else None


def _step(layer: Layer) -> _Step | None:
    beside = 0
    parts: list[_Part] = []
    for part in layer:
        reach = part.reach
        if reach is None:
            return None
        if part.group == "convolution":
            # files list so what stands before or behind the other heads
            beside += reach.before
            continue
        state = part.handed_over(1).total
        same = state == part.handed_over(_FAR).total
        parts.append(_Part(part, reach, state if same else None))
    return _Step(beside, tuple(parts))


def masks(architecture: Architecture) -> tuple[int, ...]:
    """The windows of its layers as their kernels mask, in tokens, the token itself included."""
    reaches = [part.reach for layer, _ in architecture.counted() for part in layer]
    return tuple(sorted({reach.window + 1 for reach in reaches if reach and reach.window}))
