"""The search over integer points of a box: an evolution whose steps learn the shape of the valley,
then downhill one and two coordinates at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import floor, inf, sqrt
from random import Random

from separatrix.theory.search.reals import dot, exp, ln

Point = tuple[float, ...]
Value = Callable[[Point], float]
"""From a point to what should be small; infinite where it is not allowed."""

_GENERATIONS = 120
_STALLED = 10
_LARGE = 30.0
"""Logarithms of integers that floats hardly tell from their neighbours."""
_SWEEPS = 5
"""As often all moves of one length are tried."""


def spread(low: float, high: float, rng: Random) -> float:
    """A number, log-uniform between positive bounds."""
    return exp(ln(low) + rng.random() * (ln(high) - ln(low)))


@dataclass(frozen=True)
class Grid:
    """Points whose coordinates are integers between `low` and `high`, and how finely they are
    searched: until gains are a smaller part of the value than `alike` (evolution) or `flat`
    (descent, strides shorter than `fine`), and `near` units to each side at the end. Evolution
    begins with steps of about `width` e-folds.
    """

    low: Point
    high: Point
    alike: float = 1e-8
    flat: float = 1e-11
    fine: float = 1e-6
    near: int = 64
    width: float = 0.3

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

    def moved(self, x: float, by: float) -> float:
        """A coordinate moved by that much."""
        return x + by

    def last(self, strides: Sequence[float]) -> bool:
        """Whether no shorter strides are worth a try."""
        return all(stride == 1 for stride in strides)


@dataclass(frozen=True)
class LogGrid(Grid):
    """The same with logarithms of integers for coordinates: sizes beyond all floats. Of those
    that are not `whole` any number will do.
    """

    whole: tuple[bool, ...] = ()

    def inside(self, point: Sequence[float]) -> Point:
        return tuple(
            ln(max(float(floor(exp(x) + 0.5)), 1.0))
            if whole and x < _LARGE
            else max(min(x, high), 0)
            for x, high, whole in zip(point, self.high, self.whole, strict=True)
        )

    def logs(self, point: Point) -> list[float]:
        return list(point)

    def at(self, logs: Sequence[float]) -> Point:
        return self.inside(logs)

    def strides(self, point: Point, share: float) -> list[float]:
        # large ones move by factors
        return [share if x > _LARGE else max(exp(x) * share, 1.0) for x in point]

    def moved(self, x: float, by: float) -> float:
        return x + by if x > _LARGE else ln(max(exp(x) + by, 1.0))

    def last(self, strides: Sequence[float]) -> bool:
        return all(stride <= max(self.fine, 1.0) for stride in strides)


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
    width, best, least, stalled = grid.width, start, value(start), 0
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
        last = grid.last(strides)
        began = least
        for _ in range(_SWEEPS):
            before = least
            for moves in (*steps, *near) if last else steps:
                # the same way as long as it pays, further each time
                further = 1.0
                while True:
                    point = list(centre)
                    for axis, times in moves:
                        point[axis] = grid.moved(point[axis], further * times * strides[axis])
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
