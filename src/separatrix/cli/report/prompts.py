"""Prompts laid over one another token by token, long stretches where nothing happens folded
away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SHOWN_WHOLE = 72
"""Prompts up to this many tokens are shown whole."""
_HEAD = 6
_TAIL = 4
_AROUND = 3
_MOST_DIFFERENCES = 32


@dataclass(frozen=True)
class Place:
    """One position: the token of each prompt there (None past its end)."""

    position: int
    tokens: tuple[int | None, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.tokens)) > 1


@dataclass(frozen=True)
class Fold:
    """Positions left out: how many, and at how many of them the prompts differ."""

    positions: int
    differing: int


def align(prompts: Sequence[Sequence[int]]) -> list[Place | Fold]:
    """The prompts position by position. Beyond 72 tokens only the ends and the surroundings of
    the first 32 differences are kept.
    """
    length = max((len(prompt) for prompt in prompts), default=0)
    places = [
        Place(i, tuple(prompt[i] if i < len(prompt) else None for prompt in prompts))
        for i in range(length)
    ]
    if length <= SHOWN_WHOLE:
        return list(places)
    differing = [place.position for place in places if place.differs][:_MOST_DIFFERENCES]
    kept = {*range(_HEAD), *range(length - _TAIL, length)}
    for i in differing:
        kept.update(range(max(0, i - _AROUND), min(length, i + _AROUND + 1)))
    return _fold(places, kept)


def differences(prompts: Sequence[Sequence[int]]) -> int:
    """At how many positions the prompts differ."""
    length = max((len(prompt) for prompt in prompts), default=0)
    return sum(
        len({prompt[i] if i < len(prompt) else None for prompt in prompts}) > 1
        for i in range(length)
    )


def _fold(places: list[Place], kept: set[int]) -> list[Place | Fold]:
    result: list[Place | Fold] = []
    hidden: list[Place] = []
    for place in [*places, None]:
        if place is not None and place.position not in kept:
            hidden.append(place)
            continue
        if len(hidden) > 2:
            result.append(Fold(len(hidden), sum(p.differs for p in hidden)))
        else:
            result += hidden
        hidden = []
        if place is not None:
            result.append(place)
    return result
