"""The search for the parameters of Theorems VI and VII, over all choices of their flags (theory.md,
section 11).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from separatrix.theory.fails.many_proof import Choice, Parameters, Sizes, prices
from separatrix.theory.fails.many_relaxed import RelaxedSearch
from separatrix.theory.search.driver import at_size, nearby, shortest

MOST_READERS = 6
"""Beyond so many reading layers nothing is looked for: sizes have 300 digits here already."""
_SHALLOW = 3
"""Up to so many reading layers every flag is tried."""
_COUNTED = 2048
"""Beyond so many bits that w receives, answers of more bits are not written down."""
_CLOSE = 0.1
"""Choices of flags whose lengths first differ by less (as logarithms) are both looked at."""
Flags = tuple[int, ...]


@dataclass(frozen=True)
class ManyLayersSearch:
    """Where parameters of Theorem VI (`ahead` = 0) or VII (1) are looked for; with a `size`, the m
    and n_l of a task, at this size only.
    """

    ahead: int
    s: Sizes
    size: tuple[int, ...] | None = None

    @property
    def readers(self) -> int:
        """How many reading layers there are."""
        return len(self.s.h)

    @property
    def L(self) -> int:
        """How many functions the argument composes."""
        return self.readers + 1 - self.ahead

    def holds(self, parameters: Parameters) -> bool:
        """Whether every condition certainly holds."""
        return self.with_flags(parameters.flags).holds(parameters)

    def with_flags(self, flags: Flags) -> RelaxedSearch:
        """The search with these flags."""
        return RelaxedSearch(self.ahead, self.s, flags, self.size)

    @property
    def tokens(self) -> int:
        """The entries of all functions at the search's own size."""
        entries = 1
        tokens = 0
        for n in self.size or ():
            entries *= n
            tokens += entries
        return tokens

    def flags(self) -> list[Flags]:
        """What f_2, ..., f_L may be: where no cache is left to know, 0; in deep stacks f_2 alone is
        tried, since no other one was ever found to help there.
        """
        caches = self.s.sigma[1 + self.ahead :]
        tried = self.L - 1 if self.readers <= _SHALLOW else 1
        return [
            *product(
                *((0, 1) if at < tried and any(caches[at:]) else (0,) for at in range(self.L - 1))
            )
        ]


@lru_cache(maxsize=768)
def shortest_of(search: ManyLayersSearch, *, quick: bool = False) -> Parameters | None:
    """The certified parameters with the shortest prompt found, or None; `quick` looks less far."""
    found = [_spread(search, quick=quick), _counted(search)]
    known = [parameters for parameters in found if parameters is not None]
    return min(known, key=lambda parameters: parameters.length(), default=None)


def _counted(search: ManyLayersSearch) -> Parameters | None:
    """The proof with one content and one value at every level, certified: w receives fewer bits
    than the answer has. None where these are too many, or nothing is looked for.
    """
    if not 1 < search.readers <= MOST_READERS or search.L < 3:
        return None

    def choice(n_l: int) -> Choice[int]:
        ones = (1,) * (search.L - 1)
        g = n_l if search.L == 3 else 1
        return Choice(2, (*ones[1:], n_l), 1, 1, g, 1, 1, ones, (0,) * len(ones))

    # what is fixed is a + b n_{L-1}, and with 2^(b-1) + a + 1 = n_{L-1} more is asked for
    first, second = (prices(search.ahead, search.s, choice(n))[-1] for n in (1, 2))
    b = second - first
    if b > _COUNTED:
        return None
    n_l = (1 << (b - 1)) + max(first - b, 0) + 1
    return search.with_flags((0,) * (search.L - 1)).certified(choice(n_l))


@lru_cache(maxsize=768)
def _spread(search: ManyLayersSearch, *, quick: bool) -> Parameters | None:
    """Those with many contents at every level."""
    if search.readers > MOST_READERS:
        return None
    # the valleys of different flags may lie far apart
    valleys = sorted(
        (value, flags, point)
        for flags in search.flags()
        for value, point in nearby(replace(search.with_flags(flags), coarse=True), search.L)
    )
    best: Parameters | None = None
    for value, flags, point in valleys[: 1 if quick else 2]:
        if value > valleys[0][0] + _CLOSE:
            break
        near = replace(search.with_flags(flags), first=(point,), coarse=quick)
        found = shortest(near, search.L, quick=quick)
        if found is not None and (best is None or found.length() < best.length()):
            best = found
    return best


@lru_cache(maxsize=768)
def at_size_of(search: ManyLayersSearch) -> Parameters | None:
    """Certified parameters at the search's own size, or None if none is found."""
    # nothing much shorter than the shortest is to be found
    anywhere = _spread(replace(search, size=None), quick=True)
    if anywhere is None or 10 * search.tokens < 9 * anywhere.length():
        return None
    for flags in search.flags():
        here = search.with_flags(flags)
        found = at_size(replace(here, first=(here.point(anywhere),)), anywhere)
        if found is not None:
            return found
    return None
