"""The one search for the parameters of a proof that the theorems about reading layers share.

Floats propose points of a box; what follows from a point is settled in exact integers, and every
inequality is certified. So a search may overlook parameters, but never invents any. Points of a box
are found by an evolution whose steps learn the shape of the valley, then downhill one and two
coordinates at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, product
from math import floor, inf, sqrt
from random import Random
from typing import Any, ClassVar, Generic

from separatrix.theory.arguments import Certified, Counting, Numbers, P, Sizes, Solver, certainly
from separatrix.theory.fails.reading_layers import DepthTheorem
from separatrix.theory.search.reals import dot, exp, ln, settle

Point = tuple[float, ...]
Value = Callable[[Point], float]
"""From a point to what should be small; infinite where it is not allowed."""

_GENERATIONS = 120
_STALLED = 10
_WIDTH = 0.3
"""Steps that evolution begins with, in e-folds."""
_SWEEPS = 5
"""As often all moves of one length are tried."""


def spread(low: float, high: float, rng: Random) -> float:
    """A number, log-uniform between positive bounds."""
    return exp(ln(low) + rng.random() * (ln(high) - ln(low)))


@dataclass(frozen=True)
class Grid:
    """Points whose coordinates are integers between `low` and `high`, and how finely they are
    searched: until gains are a smaller part of the value than `alike` (evolution) or `flat`
    (descent, strides shorter than `fine`), and `near` units to each side at the end.
    """

    low: Point
    high: Point
    alike: float = 1e-8
    flat: float = 1e-11
    fine: float = 1e-6
    near: int = 64

    @property
    def empty(self) -> bool:
        """Whether it has no points."""
        return any(high < low for low, high in zip(self.low, self.high, strict=True))

    def inside(self, point: Sequence[float]) -> Point:
        """The nearest point."""
        return tuple(
            min(max(float(floor(x + 0.5)), low), high)
            for x, low, high in zip(point, self.low, self.high, strict=True)
        )

    def logs(self, point: Point) -> list[float]:
        """Where it stands for evolution: as logarithms, in which lengths are alike everywhere."""
        return [ln(1 + x) for x in point]

    def at(self, logs: Sequence[float]) -> Point:
        """The point nearest to these logarithms."""
        return self.inside([exp(x) - 1 for x in logs])

    def strides(self, point: Point, share: float) -> list[float]:
        """This part of each coordinate, a unit at least."""
        return [max(float(floor(x * share + 0.5)), 1.0) for x in point]


def evolve(value: Value, start: Point, grid: Grid, enough: float = -inf) -> Point:
    """A point of a grid whose `value` is at most that of `start`; the same every time. Any
    of a value that is `enough` will do.

    Points are born around a mean, in logarithms; the best quarter makes the next mean, the steps'
    covariance and their width.
    """
    rng = Random(1)
    d = len(start)
    children = 8 + 4 * d
    rate = 1 / (1 + d * (d + 1) / (children // 4))
    known: dict[Point, float] = {}
    mean = grid.logs(start)
    shape = [[float(i == j) for j in range(d)] for i in range(d)]
    width, best, least, stalled = _WIDTH, start, value(start), 0
    for _ in range(_GENERATIONS):
        if least <= enough:
            break
        root = _root(shape)
        born: list[tuple[float, int, float, list[float]]] = []
        points: list[Point] = []
        for child in range(children):
            wide = width * exp(_normal(rng) / sqrt(2 * d))
            drawn = [_normal(rng) for _ in range(d)]
            step = [dot(row, drawn[: len(row)]) for row in root]
            points.append(grid.at([m + wide * s for m, s in zip(mean, step, strict=True)]))
            if points[-1] not in known:
                known[points[-1]] = value(points[-1])
            born.append((known[points[-1]], child, wide, step))
        fittest = [one for one in sorted(born)[: children // 4] if one[0] < inf]
        if not fittest:
            width /= 2
            continue
        stalled = 0 if fittest[0][0] < least - grid.alike * abs(least) else stalled + 1
        if fittest[0][0] < least:
            least, best = fittest[0][0], points[fittest[0][1]]
        share = 1 / len(fittest)
        for i in range(d):
            mean[i] += dot([wide * step[i] for _, _, wide, step in fittest], [share] * len(fittest))
            for j in range(d):
                seen = dot([step[i] for *_, step in fittest], [step[j] for *_, step in fittest])
                shape[i][j] += rate * (share * seen - shape[i][j])
        width = exp(dot([ln(wide) for _, _, wide, _ in fittest], [share] * len(fittest)))
        if stalled == _STALLED:
            break
    return best


def _normal(rng: Random) -> float:
    """Nearly a normal number: the sum of three uniform ones."""
    return 2 * (rng.random() + rng.random() + rng.random() - 1.5)


def _root(shape: Sequence[Sequence[float]]) -> list[list[float]]:
    """The rows of Cholesky's factor of a covariance, a little more on its diagonal."""
    root: list[list[float]] = []
    for i, row in enumerate(shape):
        line: list[float] = []
        for j in range(i):
            line.append((row[j] - dot(line, root[j][:j])) / root[j][j])
        root.append([*line, sqrt(max(row[i] - dot(line, line), 1e-20))])
    return root


def descend(value: Value, start: Point, grid: Grid, enough: float = -inf) -> Point:
    """A point of a grid with `value` at most that of `start`: none beside it is better, by
    a few units in one coordinate or by one in two.

    One or two coordinates move at once, by strides that start at a part of each coordinate and
    shrink to 1, until the value is `enough`.
    """
    # few coordinates are moved all at once, and further: there is time
    few = len(start) < 4
    reach = (1, -1, 2, -2, 3, -3) if few else (1, -1)
    steps = [
        tuple(zip(axes, strides, strict=True))
        for count in range(1, (3 if few else 2) + 1)
        for axes in combinations(range(len(start)), count)
        for strides in product(reach, repeat=count)
    ]
    # values may repeat a pattern of several units: r or g stays, q or t moves
    near = [
        ((axis, x),) for axis in range(len(start)) for d in range(2, grid.near) for x in (d, -d)
    ]
    centre, least = start, value(start)
    share = 1 / 8
    while least > enough:
        strides = grid.strides(centre, share)
        last = all(stride == 1 for stride in strides)
        began = least
        for _ in range(_SWEEPS):
            before = least
            for moves in (*steps, *near) if last else steps:
                # the same way as long as it pays, further each time
                further = 1.0
                while True:
                    point = list(centre)
                    for axis, times in moves:
                        point[axis] += further * times * strides[axis]
                    found = grid.inside(point)
                    there = value(found)
                    if not there < least:
                        break
                    centre, least = found, there
                    further *= 2
            if least == before:
                break
        if last:
            break
        # beyond so many digits what is left to gain lies in single units, if anywhere
        fine = share < grid.fine and not began - least > grid.flat * abs(least)
        share = 0.0 if fine else share / 3
    return centre


_ROUNDS = 60
"""In how many rounds the groups of w's last index are counted for a single point."""
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


class CountingTheorem(DepthTheorem[P]):
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
    def before(self, x: Numbers) -> Mapping[str, Certified]:
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
        return {**self.before(x), "counting": self.counting(x)}

    @abstractmethod
    def grid(self, s: Numbers, size: tuple[int, ...] | None) -> Grid:
        """Where points lie: for any task, or with this m and these n_l."""

    @abstractmethod
    def starts(
        self, s: Numbers, size: tuple[int, ...] | None, grid: Grid
    ) -> Iterable[Sequence[float]]:
        """First points; they need not be on the grid."""

    def shortest(self, s: Sizes, steps: int) -> P | None:
        return shortest(CountingSearch(self, s), steps)

    def at_size(self, s: Sizes, size: tuple[int, ...], anywhere: P | None) -> P | None:
        return at_size(CountingSearch(self, s, size), anywhere)


@dataclass(frozen=True)
class CountingSearch(Search[P]):
    """Where the parameters of such an argument are looked for."""

    argument: CountingTheorem[P]
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
    found = _evolved(search, lambda point: search.length(point, steps))
    return sorted(found)


# stacks that agree in their sizes share one search
@lru_cache(maxsize=768)
def shortest(search: Search[P], steps: int) -> P | None:
    """The certified parameters with the shortest prompt found, or None."""

    def length(point: Point) -> float:
        return search.length(point, steps)

    best: P | None = None
    least = inf
    for estimate, point in sorted(_tries(search, length)):
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
    for _, point in _tries(search, search.owed, _SURELY):
        found = search.settled(point)
        if found is not None:
            return found
    return None


def _tries(search: Search[P], value: Value, enough: float = -inf) -> Iterator[tuple[float, Point]]:
    """Points to settle with their values: the best starts, evolved and led downhill to any value
    that is `enough`, one after another.
    """
    grid = search.grid()
    for _, point in sorted(_evolved(search, value, enough))[: search.descended]:
        found = descend(value, point, grid, enough)
        yield value(found), found


def _evolved(search: Search[P], value: Value, enough: float = -inf) -> list[tuple[float, Point]]:
    grid = search.grid()
    if grid.empty:
        return []
    starts = {grid.inside(start) for start in search.starts()}
    evolved: list[tuple[float, Point]] = []
    last = -inf
    for there, point in sorted((value(point), point) for point in starts):
        if there == inf or len(evolved) == search.tried:
            break
        if last == -inf or there - last > _APART * abs(last):
            last = there
            found = evolve(value, point, grid, enough)
            evolved.append((value(found), found))
    return evolved
