"""The one search for the parameters of a proof that the theorems about reading layers share.

Floats propose points of a box; what follows from a point is settled in exact integers, and every
inequality is certified. So a search may overlook parameters, but never invents any.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np

from separatrix.theory.inequalities import Counting, Inequality, Mask, certainly
from separatrix.theory.search.descend import descend
from separatrix.theory.search.evolve import evolve
from separatrix.theory.search.integers import Floats, settle

Value = Callable[[Floats], Floats]
"""From points as columns to what should be small; infinite where a point is not allowed."""
Box = tuple[Sequence[float], Sequence[float]]
"""The lowest and the highest coordinates of points."""
_ROUNDS = 60
"""In how many rounds the groups of w's last index are counted for a single point."""


@dataclass(frozen=True)
class ProofParameters(ABC):
    """The sizes of a task, m and its first n_l, and whatever else a proof chooses."""

    m: int
    n_1: int

    @property
    @abstractmethod
    def branching(self) -> tuple[int, ...]:
        """The n_l that the proof is about; further ones belong to functions that it fixes."""

    @property
    @abstractmethod
    def least_last(self) -> int:
        """The smallest value that the last of these n_l may take."""

    @abstractmethod
    def with_last(self, n_l: int) -> Self:
        """The same with another last n_l. Raises SizeError below `least_last`."""

    @property
    def numbers(self) -> dict[str, int]:
        """Every parameter by name."""
        return asdict(self)

    @classmethod
    def of(cls, numbers: Mapping[str, int]) -> Self:
        """The parameters with these numbers. Raises KeyError where one is missing and SizeError
        where they are out of range.
        """
        return cls(**{field.name: numbers[field.name] for field in fields(cls)})

    @property
    def size(self) -> tuple[int, ...]:
        """m and the n_l that the proof is about."""
        return self.m, *self.branching

    def length(self, steps: int | None = None) -> int:
        """Prompt tokens of the L-SeqComp, L = steps, that the argument shows failure on.

        The functions have m, N_1, N_2, .. entries, and two tokens follow. Those that lifting adds
        have as many entries as the last one; without `steps` there are none of them.
        """
        entries = self.m
        tokens = 0
        for n_l in self.branching:
            tokens += entries
            entries *= n_l
        lifted = 0 if steps is None else steps - 1 - len(self.branching)
        return tokens + (1 + lifted) * entries + 2


P = TypeVar("P", bound=ProofParameters)


@dataclass(frozen=True)
class Effort:
    """How far a search looks: how many of the best points are settled, and how many of those first
    go downhill; then the first points, children and generations of an evolution.
    """

    tried: int
    descended: int = 0
    starts: int = 0
    children: int = 0
    generations: int = 0

    def evolved(self, value: Value, start: Floats, box: Box) -> Floats:
        """The best points of the box that evolve from the first ones, best first."""
        return evolve(value, start, *box, children=self.children, generations=self.generations)


@dataclass(frozen=True)
class Derived:
    """What follows from points when everything else is chosen best: the counting inequality, which
    points are allowed, and the prompt tokens before the last function.
    """

    counting: Counting[Floats]
    allowed: Mask
    tokens: Floats


class Search(ABC, Generic[P]):
    """Where one theorem's parameters are looked for, with given sizes of caches.

    With a `size`, m and the first n_l of a task, at this size only. Subclasses are immutable and
    hashable: the same search finds the same parameters.
    """

    size: tuple[int, ...] | None
    least_steps: ClassVar[int]
    rounds: ClassVar[int] = 1
    """In how many rounds the groups of w's last index are counted while looking."""

    @abstractmethod
    def effort(self, *, quick: bool) -> Effort:
        """How far to look; `quick` may be less far."""

    @abstractmethod
    def box(self) -> Box:
        """The bounds of points."""

    @abstractmethod
    def derive(self, points: Floats) -> Derived:
        """What follows from points, as floats. The last n_l is that of `size`, or any number."""

    @abstractmethod
    def families(self, value: Value, effort: Effort) -> list[Floats]:
        """Points of small `value`, best first, of one search or of several."""

    @abstractmethod
    def proof(self, point: Floats) -> P | None:
        """The parameters at a point with the smallest last n_l that is in their range, everything
        but the counting inequality certified; None where that cannot be.
        """

    @abstractmethod
    def inequalities(self, parameters: P) -> tuple[Inequality, ...]:
        """The theorem's inequalities; the counting one last."""


def shortest(search: Search[P], steps: int, *, quick: bool = False) -> P | None:
    """The certified parameters with the shortest prompt found, or None."""
    return _shortest(search, steps, search.effort(quick=quick))


# stacks that agree in their sizes share one search
@lru_cache(maxsize=768)
def _shortest(search: Search[P], steps: int, effort: Effort) -> P | None:
    def length(points: Floats) -> Floats:
        # points that are not allowed may divide by zero or overflow; they are masked below
        with np.errstate(all="ignore"):
            derived = search.derive(points)
            counting = derived.counting
            last = counting.least(search.rounds)
            # the last function's tokens, and as many for each function that lifting adds
            functions = 1 + steps - search.least_steps
            tokens = derived.tokens + functions * last * counting.base + 2
            return np.where(derived.allowed & counting.in_groups(last), tokens, np.inf)

    best: P | None = None
    valued = [(float(length(point[:, None])[0]), point) for point in _tries(search, length, effort)]
    for estimate, point in sorted(valued, key=lambda pair: pair[0]):
        # floats are close to the integers they stand for, so nothing shorter is to come
        if best is not None and estimate >= best.length(steps):
            break
        found = _settled(search, point)
        if found is not None and (best is None or found.length(steps) < best.length(steps)):
            best = found
    return best


@lru_cache(maxsize=768)
def at_size(search: Search[P], anywhere: P | None) -> P | None:
    """Certified parameters at the search's own size, or None if none is found.

    `anywhere` are those of the shortest prompt that the same sizes of caches fail at. Where there
    are none, there are none at this size.
    """
    size = search.size
    assert size is not None
    if anywhere is None:
        return None
    if anywhere.size[:-1] == size[:-1] and anywhere.least_last <= size[-1]:
        # where only the last n_l differs, the other inequalities hold already
        longer = anywhere.with_last(size[-1])
        if holds(search.inequalities(longer)):
            return longer

    def shortfall(points: Floats) -> Floats:
        with np.errstate(all="ignore"):
            derived = search.derive(points)
            return np.where(derived.allowed, -derived.counting.slack(), np.inf)

    for point in _tries(search, shortfall, search.effort(quick=False)):
        proof = search.proof(point)
        if proof is None or proof.least_last > size[-1]:
            continue
        found = proof.with_last(size[-1])
        if holds(search.inequalities(found)):
            return found
    return None


def holds(inequalities: Iterable[Inequality]) -> bool:
    """Whether all of them hold, certified; a tie that stays open counts as no."""
    return all(certainly(inequality) for inequality in inequalities)


def _tries(search: Search[P], value: Value, effort: Effort) -> list[Floats]:
    """The points to settle: the best of each family, and those that the best family's first points
    lead downhill to.
    """
    families = [points for points in search.families(value, effort) if points.size]
    families.sort(key=lambda points: float(value(points[:, :1])[0]))
    points = [point for family in families for point in family.T[: effort.tried]]
    for family in families[:1]:
        points += [descend(value, point, *search.box()) for point in family.T[: effort.descended]]
    return points


def _settled(search: Search[P], point: Floats) -> P | None:
    """The certified parameters at a point, with the smallest last n_l near its float estimate."""
    proof = search.proof(point)
    if proof is None:
        return None
    with np.errstate(all="ignore"):
        estimate = float(search.derive(point[:, None]).counting.least(_ROUNDS)[0])

    def counts(n_l: int) -> bool:
        # the other inequalities do not know the last n_l, and hold
        return n_l >= proof.least_last and certainly(search.inequalities(proof.with_last(n_l))[-1])

    last = settle(estimate, counts)
    return None if last is None else proof.with_last(last)
