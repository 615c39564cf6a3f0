"""The one search for the parameters of a proof that the theorems about reading layers share.

Floats propose points of a box; what follows from a point is settled in exact integers, and every
inequality is certified. So a search may overlook parameters, but never invents any.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from typing import Any, ClassVar, Generic

from separatrix.theory.arguments import Argument, Numbers, P, Sizes, Solver
from separatrix.theory.inequalities import Certified, Counting, certainly
from separatrix.theory.search.evolve import Grid, Point, Value, descend, evolve
from separatrix.theory.search.reals import settle

_ROUNDS = 60
"""In how many rounds the groups of w's last index are counted for a single point."""
_QUICK = 2
_SURELY = 0.99
"""A point that owes no more for every bit that is asked for needs not be improved."""
_APART = 0.05
"""Starts whose values differ by a smaller part are taken for neighbours."""
_NEAR = Solver(exact=False)
_EXACT = Solver(exact=True)


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


class CountingArgument(Argument[P]):
    """One whose last inequality is a `Counting`, which yields the last n_l.

    Points of the search have the coordinates `free`, at a task's own size those of them that are
    not of the task. `choose` makes everything else of them.
    """

    free: ClassVar[tuple[str, ...]]
    last: ClassVar[str] = "n_1"
    """The n_l that the counting inequality decides."""
    rounds: ClassVar[int] = 1
    """In how many rounds the groups of w's last index are counted while looking."""

    @abstractmethod
    def choose(self, x: Numbers, solver: Solver) -> bool:
        """Sets what follows from a point; False where it is not allowed."""

    def complete(self, x: Numbers) -> None:
        """Sets what is short for other numbers."""
        return

    @abstractmethod
    def premises(self, x: Numbers) -> Mapping[str, Certified]:
        """The inequalities before the counting one."""

    @abstractmethod
    def counting(self, x: Numbers) -> Counting[Any]:
        """The last one."""

    def tokens(self, x: Numbers) -> Any:
        """Prompt tokens before the last function, but for the last two."""
        return x.m

    def inequalities(self, s: Sizes, p: P) -> Mapping[str, Certified]:
        x = Numbers(**s.numbers, **p.numbers)
        self.complete(x)
        return {**self.premises(x), "counting": self.counting(x)}

    @abstractmethod
    def grid(self, s: Numbers, size: tuple[int, ...] | None) -> Grid:
        """Where points lie: for any task, or with this m and these n_l."""

    @abstractmethod
    def starts(
        self, s: Numbers, size: tuple[int, ...] | None, grid: Grid
    ) -> Iterable[Sequence[float]]:
        """First points; they need not be on the grid."""

    def shortest(self, s: Sizes, steps: int, *, quick: bool = False) -> P | None:
        return shortest(CountingSearch(self, s), steps, quick=quick)

    def at_size(self, s: Sizes, size: tuple[int, ...], anywhere: P | None) -> P | None:
        return at_size(CountingSearch(self, s, size), anywhere)


@dataclass(frozen=True)
class CountingSearch(Search[P]):
    """Where the parameters of such an argument are looked for."""

    argument: CountingArgument[P]
    s: Sizes
    size: tuple[int, ...] | None = None

    @cached_property
    def _task(self) -> dict[str, int]:
        named = enumerate(self.size or ())
        return {f"n_{level}" if level else "m": value for level, value in named}

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for name in self.argument.free if name not in self._task)

    @cached_property
    def _known(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is known before a point: with the task's size as floats, and as integers."""
        floats = {name: float(value) for name, value in self._task.items()}
        return self.s.numbers | floats, self.s.numbers | self._task

    def grid(self) -> Grid:
        return self.argument.grid(Numbers(**self.s.numbers), self.size)

    def starts(self) -> Iterable[Sequence[float]]:
        return self.argument.starts(Numbers(**self.s.numbers), self.size, self.grid())

    def _at(self, point: Point, solver: Solver) -> Numbers | None:
        """Everything that follows from a point, where the last n_l is free with a whole group of
        it; None where the point is not allowed.
        """
        x = Numbers(**self._known[solver.exact])
        values = map(int, point) if solver.exact else point
        x.__dict__.update(zip(self._names, values, strict=True))
        if self.size is None:
            # points have g where there are groups
            setattr(x, self.argument.last, getattr(x, "g", 1))
        chosen = self.argument.choose(x, solver) and self.argument.parameters.fits(x)
        return x if chosen else None

    def length(self, point: Point, steps: int) -> float:
        x = self._at(point, _NEAR)
        if x is None:
            return inf
        counting = self.argument.counting(x)
        last = counting.least(self.argument.rounds)
        if counting.g is not None and counting.g > last:
            return inf
        # the last function's tokens, and as many for each function that lifting adds
        functions = 1 + steps - self.argument.least_steps
        return self.argument.tokens(x) + functions * last * counting.base + 2

    def owed(self, point: Point) -> float:
        x = self._at(point, _NEAR)
        if x is None:
            return inf
        counting = self.argument.counting(x)
        asked = counting.left()
        return counting.right() / asked if asked > 0 else inf

    def settled(self, point: Point) -> P | None:
        x = self._at(point, _EXACT)
        if x is None:
            return None
        proof = self.argument.parameters.of(vars(x))
        if self.size is not None:
            return proof if self.argument.holds(self.s, proof) else None
        # of the exact numbers: a float point may promise one content more than is certified
        estimate = self.argument.counting(x).in_floats().least(_ROUNDS)

        def counts(n_l: int) -> bool:
            # the other inequalities do not know the last n_l, and hold
            return n_l >= proof.least_last and certainly(
                self.argument.inequalities(self.s, proof.with_last(n_l))["counting"]
            )

        least = settle(estimate, counts)
        return None if least is None else proof.with_last(least)


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
    if anywhere is None:
        return None
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
