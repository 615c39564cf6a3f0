"""The one search for the parameters of a proof that the theorems about reading layers share.

Floats propose points of a box; what follows from a point is settled in exact integers, and every
inequality is certified. So a search may overlook parameters, but never invents any.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from math import inf
from typing import ClassVar, Generic, Self, TypeVar

from separatrix.core.errors import SizeError
from separatrix.theory.inequalities import Counting, Inequality, certainly
from separatrix.theory.search.evolve import Grid, Point, Value, descend, evolve
from separatrix.theory.search.reals import settle

_ROUNDS = 60
"""In how many rounds the groups of w's last index are counted for a single point."""
_QUICK = 2
_SURELY = 0.99
"""A point that owes no more for every bit that is asked for needs not be improved."""
_APART = 0.05
"""Starts whose values differ by a smaller part are taken for neighbours."""


@dataclass(frozen=True)
class ProofParameters:
    """The sizes of a task, m and its first n_l, and whatever else a proof chooses."""

    m: int
    n_1: int

    @property
    def branching(self) -> tuple[int, ...]:
        """The n_l that the proof is about; further ones belong to functions that it fixes."""
        return (self.n_1,)

    @property
    def least_last(self) -> int:
        """The smallest value that the last of these n_l may take."""
        return 1

    def with_last(self, n_l: int) -> Self:
        """The same with another last n_l. Raises SizeError below `least_last`."""
        return replace(self, **{f"n_{len(self.branching)}": n_l})

    def within(self, holds: bool, needs: str) -> None:
        """Raises SizeError where what the theorem needs of them does not hold."""
        if not holds:
            raise SizeError(f"{needs}; these are {self}")

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
class Derived:
    """What follows from a point when everything else is chosen best: the counting inequality, and
    the prompt tokens before the last function.
    """

    counting: Counting[float]
    tokens: float


class Search(ABC, Generic[P]):
    """Where one theorem's parameters are looked for, with given sizes of caches.

    With a `size`, m and the first n_l of a task, at this size only. Subclasses are immutable and
    hashable: the same search finds the same parameters.
    """

    size: tuple[int, ...] | None
    tried: ClassVar[int] = 4
    """So many starts are evolved, and"""
    descended: ClassVar[int] = 2
    """so many of these led downhill."""

    @abstractmethod
    def grid(self) -> Grid:
        """Where points lie."""

    @abstractmethod
    def starts(self) -> Iterable[Sequence[float]]:
        """First points; they need not be on the grid."""

    @abstractmethod
    def length(self, point: Point, steps: int) -> float:
        """What grows with the shortest prompt that fails at a point, for so many functions."""

    def tokens(self, parameters: P, steps: int) -> float:
        """The same of certified parameters."""
        return parameters.length(steps)

    @abstractmethod
    def owed(self, point: Point) -> float:
        """What is owed for every bit that is asked for at a point of the search's own size."""

    @abstractmethod
    def settled(self, point: Point) -> P | None:
        """Certified parameters at a point, with the shortest prompt; at the search's own size if it
        has one. None where there are none.
        """

    @abstractmethod
    def holds(self, parameters: P) -> bool:
        """Whether every inequality of the theorem certainly holds; an open tie counts as no."""


class CountingSearch(Search[P]):
    """One whose last inequality is a `Counting` that yields the last n_l."""

    least_steps: ClassVar[int]
    rounds: ClassVar[int] = 1
    """In how many rounds the groups of w's last index are counted while looking."""

    @abstractmethod
    def derive(self, point: Point) -> Derived | None:
        """What follows from a point, as floats; None where it is not allowed. The last n_l is that
        of `size`, or any number.
        """

    @abstractmethod
    def proof(self, point: Point) -> P | None:
        """The parameters at a point with the smallest last n_l that is in their range, everything
        but the counting inequality certified; None where that cannot be.
        """

    @abstractmethod
    def inequalities(self, parameters: P) -> tuple[Inequality, ...]:
        """The theorem's inequalities; the counting one last."""

    def length(self, point: Point, steps: int) -> float:
        derived = self.derive(point)
        if derived is None:
            return inf
        counting = derived.counting
        last = counting.least(self.rounds)
        if counting.g is not None and counting.g > last:
            return inf
        # the last function's tokens, and as many for each function that lifting adds
        functions = 1 + steps - self.least_steps
        return derived.tokens + functions * last * counting.base + 2

    def owed(self, point: Point) -> float:
        derived = self.derive(point)
        asked = 0.0 if derived is None else derived.counting.left()
        return derived.counting.right() / asked if derived is not None and asked > 0 else inf

    def settled(self, point: Point) -> P | None:
        proof = self.proof(point)
        if proof is None:
            return None
        if self.size is not None:
            last = self.size[-1]
            if proof.least_last > last or not self.holds(proof.with_last(last)):
                return None
            return proof.with_last(last)
        # of the exact numbers: a float point may promise one content more than is certified
        counting = self.inequalities(proof)[-1]
        assert isinstance(counting, Counting)
        estimate = counting.in_floats().least(_ROUNDS)

        def counts(n_l: int) -> bool:
            # the other inequalities do not know the last n_l, and hold
            return n_l >= proof.least_last and certainly(
                self.inequalities(proof.with_last(n_l))[-1]
            )

        least = settle(estimate, counts)
        return None if least is None else proof.with_last(least)

    def holds(self, parameters: P) -> bool:
        return all(certainly(one) for one in self.inequalities(parameters))


def nearby(search: Search[P], steps: int) -> list[tuple[float, Point]]:
    """What the search's best starts evolve to, with what stands for its length."""
    found = _evolved(search, lambda point: search.length(point, steps), search.tried, -inf)
    return sorted(found)


# stacks that agree in their sizes share one search
@lru_cache(maxsize=768)
def shortest(search: Search[P], steps: int, *, quick: bool = False) -> P | None:
    """The certified parameters with the shortest prompt found, or None; `quick` looks less far."""

    def length(point: Point) -> float:
        return search.length(point, steps)

    best: P | None = None
    least = inf
    for estimate, point in sorted(_tries(search, length, _QUICK if quick else search.tried)):
        # floats are close to the integers they stand for, so nothing shorter is to come
        if best is not None and estimate >= least:
            break
        found = search.settled(point)
        if found is not None and (best is None or found.length(steps) < best.length(steps)):
            best = found
            least = search.tokens(found, steps)
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
        if search.holds(longer):
            return longer
    for _, point in _tries(search, search.owed, search.tried, enough=_SURELY):
        found = search.settled(point)
        if found is not None:
            return found
    return None


def _tries(
    search: Search[P], value: Value, count: int, enough: float = -inf
) -> Iterator[tuple[float, Point]]:
    """Points to settle with their values: the best starts, evolved and led downhill to any value
    that is `enough`, one after another.
    """
    grid = search.grid()
    for _, point in sorted(_evolved(search, value, count, enough))[: search.descended]:
        found = descend(value, point, grid, enough)
        yield value(found), found


def _evolved(
    search: Search[P], value: Value, count: int, enough: float
) -> list[tuple[float, Point]]:
    grid = search.grid()
    if grid.empty:
        return []
    starts = {grid.inside(start) for start in search.starts()}
    evolved: list[tuple[float, Point]] = []
    last = -inf
    for there, point in sorted((value(point), point) for point in starts):
        if there == inf or len(evolved) == count:
            break
        if last == -inf or there - last > _APART * abs(last):
            last = there
            found = evolve(value, point, grid, enough)
            evolved.append((value(found), found))
    return evolved
