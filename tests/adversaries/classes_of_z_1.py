"""Lemma C: contents of z_1 of one class that take many values at few places, found by search.

Source: theory.md, section 11.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from separatrix.protocols.one_reading import Entries

MOST_TRIED = 20_000
"""Sets of contents tried beyond the greedy ones."""

Classes = Mapping[Hashable, list[Entries]]
"""Contents of z_1 by the state that they lead to."""
Pick = Callable[[Classes], list[Entries]]


@dataclass(frozen=True)
class Spread:
    """Contents Z_1 of z_1 (its last t entries), x places T among these, and the values I_1 that
    the contents take there.
    """

    contents: tuple[Entries, ...]
    places: tuple[int, ...]

    @property
    def values(self) -> frozenset[int]:
        return frozenset(one[place] for one in self.contents for place in self.places)


def most_frequent_class(classes: Classes) -> list[Entries]:
    """The largest class, the first of equals."""
    return max(classes.values(), key=len)


def torn_class(classes: Classes) -> list[Entries]:
    """What no proof allows: one content of each class, in the order of the classes' sizes."""
    by_size = sorted(classes.values(), key=len, reverse=True)
    return [pool[0] for pool in by_size]


def spread_over(pool: Sequence[Entries], contents: int, x: int, y: int) -> Spread:
    """Up to `contents` of a pool and x places at which they take at least y values; where the
    search finds none, those that take most.
    """
    best = Spread((pool[0],), tuple(range(x)))
    options = list(combinations(range(len(pool[0])), x))
    for places in options:
        found = Spread(_greedy(pool, contents, places), places)
        if len(found.values) > len(best.values):
            best = found
    if len(best.values) >= y:
        return best
    # greedy choices may miss what is there
    if len(options) * comb(len(pool), min(contents, len(pool))) <= MOST_TRIED:
        for places in options:
            for chosen in combinations(pool, min(contents, len(pool))):
                found = Spread(chosen, places)
                if len(found.values) > len(best.values):
                    best = found
    return best


def _greedy(pool: Sequence[Entries], contents: int, places: tuple[int, ...]) -> tuple[Entries, ...]:
    """One content after the other, each with most values that the earlier ones lack."""
    chosen: list[Entries] = []
    taken: set[int] = set()
    rest = list(pool)
    while rest and len(chosen) < contents:
        best = max(rest, key=lambda one: len({one[place] for place in places} - taken))
        rest.remove(best)
        chosen.append(best)
        taken |= {best[place] for place in places}
    return tuple(chosen)
