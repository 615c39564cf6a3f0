"""The search for the parameters of Theorems VI and VII (theory.md, section 11).

All parameters are relaxed to real numbers, where the problem has one valley; then whole numbers
are chosen, the smallest parameters first. With these, y_1 and the Y_l are nearly the largest that
are certified, and m' is nearly the smallest with which everything holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import log

import numpy as np

from separatrix.theory.fails.many_certified import certified
from separatrix.theory.fails.many_prices import Choice, Sizes, prices
from separatrix.theory.fails.many_proof import Conditions, Parameters, conditions
from separatrix.theory.fails.many_relaxed import Relaxed
from separatrix.theory.fails.spelling import PLAIN, Spelling
from separatrix.theory.inequalities import certainly
from separatrix.theory.search.integers import Floats
from separatrix.theory.search.smooth import Open, Place, highest, lowest
from separatrix.theory.search.whole import MATTERS, whole_places

MOST_READERS = 6
"""Beyond so many reading layers nothing is looked for: sizes have 300 digits here already."""
_ROUNDED = 4
_SHALLOW = 3
"""Up to so many reading layers every flag is tried."""
_ROOMS = tuple(2.0**power for power in range(-12, 8))
"""How much larger than their order of magnitude parameters may start."""
_COUNTED = 2048
"""Beyond so many bits that w receives, answers of more bits are not written down."""
_BEAM = 4
_GROUPS = 6
"""For so many G the search at a size goes on."""
_LARGE = 30.0
"""Logarithms of integers that floats hardly tell from their neighbours."""
_REACHED = 5.0
"""Starts that lack fewer e-folds are near enough to where failure is shown."""
_CLOSE = 0.03
"""Choices of flags whose relaxed lengths differ by less (as logarithms) are both made whole."""
Flags = tuple[int, ...]


@dataclass(frozen=True)
class ManyLayersSearch:
    """Where parameters of Theorem VI (`ahead` = 0) or VII (1) are looked for; with a `size`, the m
    and n_l of a task, at this size only.
    """

    ahead: int
    s: Sizes
    size: tuple[int, ...] | None = None
    spelling: Spelling = PLAIN

    @property
    def readers(self) -> int:
        """How many reading layers there are."""
        return len(self.s.h)

    @property
    def L(self) -> int:
        """How many functions the argument composes."""
        return self.readers + 1 - self.ahead

    def conditions(self, parameters: Parameters) -> Conditions:
        """The theorem's conditions with these parameters."""
        return conditions(self.ahead, self.s, parameters, self.spelling)

    def holds(self, parameters: Parameters) -> bool:
        """Whether every condition certainly holds."""
        return all(certainly(one) for one in self.conditions(parameters).named.values())

    def relaxed(self, flags: Flags) -> Relaxed:
        """The relaxed problem with these flags."""
        return Relaxed(self.ahead, self.s, flags, self.spelling, self.size)

    @property
    def tokens(self) -> int:
        """The entries of all functions at the search's own size."""
        entries = 1
        tokens = 0
        for n in self.size or ():
            entries *= n
            tokens += entries
        return tokens

    def flags(self) -> list[list[int]]:
        """What each of f_2, ..., f_L may be: where no cache is left to know, 0; in deep stacks f_2
        alone is tried, since no other one was ever found to help there.
        """
        caches = self.s.sigma[1 + self.ahead :]
        tried = self.L - 1 if self.readers <= _SHALLOW else 1
        return [
            [0, 1] if index < tried and any(caches[index:]) else [0] for index in range(self.L - 1)
        ]


@lru_cache(maxsize=768)
def shortest_of(search: ManyLayersSearch, *, quick: bool = False) -> Parameters | None:
    """The certified parameters with the shortest prompt found, or None; `quick` rounds where it
    could look further.
    """
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
    first, second = (prices(search.ahead, search.s, choice(n), search.spelling)[-1] for n in (1, 2))
    b = second - first
    if b > _COUNTED:
        return None
    n_l = (1 << (b - 1)) + max(first - b, 0) + 1
    return certified(search.ahead, search.s, choice(n_l), search.spelling)


@lru_cache(maxsize=768)
def _spread(search: ManyLayersSearch, *, quick: bool) -> Parameters | None:
    """Those with many contents at every level."""
    if search.readers > MOST_READERS:
        return None
    valleys = _valleys(search)
    best: Parameters | None = None
    for flags, valley in valleys[: 1 if quick else 2]:
        if valley.cost > valleys[0][1].cost + _CLOSE:
            break
        relaxed = search.relaxed(flags)
        place = lowest(relaxed.measure, valley.point, _every(relaxed))
        places = _near(relaxed, place)
        # what rounding costs is lost in sizes of so many digits
        if not quick and (search.readers <= _ROUNDED or not places):
            places += _whole(relaxed, place)
        found = _best(search, relaxed, places)
        if found is not None and (best is None or found.length() < best.length()):
            best = found
    return best


def _best(search: ManyLayersSearch, relaxed: Relaxed, places: list[Place]) -> Parameters | None:
    """The shortest certified parameters at these places, or None."""
    settled = [_settled(search, relaxed, place) for place in places]
    found = [parameters for parameters in settled if parameters is not None]
    return min(found, key=lambda parameters: parameters.length(), default=None)


def _valleys(search: ManyLayersSearch) -> list[tuple[Flags, Place]]:
    """The lowest relaxed places found, by flags, the shortest first."""
    # each from starts of its own: the valleys of other flags may lie too far away
    found = [(flags, _valley(search.relaxed(flags))) for flags in product(*search.flags())]
    return sorted((pair for pair in found if pair[1].allowed), key=lambda pair: pair[1].cost)


def _cost(place: Place) -> float:
    return place.cost if place.allowed else np.inf


def _valley(relaxed: Relaxed) -> Place:
    """The lowest place from the best of the starts, or the second best."""
    starts = np.stack([relaxed.start(room) for room in _ROOMS], axis=1)
    costs, slacks = relaxed.measure(starts)
    found: list[Place] = []
    # the shortest start near which failure is shown, then the shortest where it is shown
    for reached in (_REACHED, 0):
        lacking = np.nan_to_num(np.minimum(slacks, 0), nan=-np.inf)
        worth = np.where(lacking >= -reached, -costs, lacking - 1e9)
        found.append(lowest(relaxed.measure, starts[:, int(np.argmax(worth))], _every(relaxed)))
        if found[0].allowed and len(relaxed.s.h) > _ROUNDED:
            break
    return min(found, key=_cost)


def _every(relaxed: Relaxed) -> Open:
    return np.ones(len(relaxed.names), bool)


def _near(relaxed: Relaxed, place: Place) -> list[Place]:
    """One place of integers, each the nearest one to its relaxed value."""
    small = relaxed.integral & ~relaxed.last & (place.point < MATTERS)
    point = np.where(small, _rounded(place.point), place.point)
    return _ready(relaxed, lowest(relaxed.measure, point, ~small))


def _whole(relaxed: Relaxed, place: Place) -> list[Place]:
    """Places of integers, as short as the relaxed one but for m', best first."""

    def best(point: Floats, moving: Open) -> Place:
        return lowest(relaxed.measure, point, moving)

    # m' is settled in the end
    free = relaxed.integral & ~relaxed.last
    places = whole_places(best, place, free, _BEAM)
    return [ready for one in places for ready in _ready(relaxed, one)]


def _ready(relaxed: Relaxed, place: Place) -> list[Place]:
    """The place with all coordinates but m' at integers, and m' as small as it can be; none where
    it cannot be.
    """
    if not place.allowed:
        return []
    free = relaxed.integral & ~relaxed.last
    point = np.where(free, _rounded(place.point), place.point)
    ready = lowest(relaxed.measure, point, relaxed.last)
    return [ready] if ready.allowed else []


def _rounded(point: Floats) -> Floats:
    """The logarithms of the nearest integers; large ones are as good as integers."""
    integers = np.round(np.exp(np.minimum(point, _LARGE)))
    return np.where(point < _LARGE, np.log(np.maximum(integers, 1)), point)


def _settled(search: ManyLayersSearch, relaxed: Relaxed, place: Place) -> Parameters | None:
    """Certified parameters at a place, with nearly the smallest m' there."""
    chosen = relaxed.whole(place.point)

    def at(part: int) -> Parameters | None:
        if part < 1:
            return None
        choice = replace(chosen, m=chosen.G * part, part=part)
        return certified(search.ahead, search.s, choice, search.spelling)

    near = part = chosen.part
    step = max(1, near >> 40)
    found = at(part)
    if found is not None:
        # values that were rounded down may have left some room
        while (shorter := at(part - step)) is not None:
            part -= step
            found = shorter
    while found is None and part < near + near // 2 + 16:
        part += step
        step *= 2
        found = at(part)
    return found


@lru_cache(maxsize=768)
def at_size_of(search: ManyLayersSearch) -> Parameters | None:
    """Certified parameters at the search's own size, or None if none is found."""
    # nothing much shorter than the shortest is to be found, nor than that of smaller caches
    anywhere: Parameters | None = None
    for s in (_simpler(search.s), search.s):
        anywhere = _spread(replace(search, s=s, size=None), quick=True)
        if anywhere is None or 10 * search.tokens < 9 * anywhere.length():
            return None
    assert anywhere is not None
    # where all values of w_2 cost too much, some are left over
    for sparing in (False, True):
        found = _here(search, anywhere, sparing=sparing)
        if found is not None:
            return found
    return None


def _here(search: ManyLayersSearch, near: Parameters, *, sparing: bool) -> Parameters | None:
    """Certified parameters at the search's own size, started from others, or None."""
    places: list[tuple[Relaxed, Place]] = []
    for flags in product(*search.flags()):
        relaxed = replace(search.relaxed(flags), sparing=sparing)
        place = highest(relaxed.measure, relaxed.point(near), _every(relaxed))
        if place.allowed:
            places.append((replace(relaxed, floored=True), place))
    places.sort(key=lambda pair: -pair[1].slack)
    for relaxed, place in places[:2]:
        for whole in _at_groups(relaxed, place):
            choice = relaxed.whole(whole.point)
            found = certified(search.ahead, search.s, choice, search.spelling)
            if found is not None:
                return found
    return None


def _simpler(s: Sizes) -> Sizes:
    """Sizes that are no larger, the same for many: reads of a power of two, and no caches."""
    h = 1 << (min(s.h).bit_length() - 1)
    return Sizes((h,) * len(s.h), (0,) * len(s.sigma), (0,) * len(s.h))


def _at_groups(relaxed: Relaxed, place: Place) -> Iterator[Place]:
    """Places of integers with much slack at a size: first G is chosen, near which m' and g are
    integers, then the others.
    """
    others = np.array([name != "G" for name in relaxed.names])
    axis = int(np.flatnonzero(~others)[0])

    def best(point: Floats, moving: Open) -> Place:
        return highest(relaxed.measure, point, moving & others)

    groups = relaxed.groups(float(place.point[axis]))
    points = np.repeat(place.point[:, None], len(groups), axis=1)
    points[axis] = [log(G) for G in groups]
    slacks = np.nan_to_num(relaxed.measure(points)[1], nan=-np.inf)
    for column in np.argsort(-slacks, kind="stable")[:_GROUPS]:
        start = best(points[:, column], others)
        if start.allowed:
            yield from whole_places(best, start, relaxed.integral, 1)
