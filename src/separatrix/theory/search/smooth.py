"""The lowest cost of a smooth problem with one constraint, by Newton's method.

Coordinates are logarithms of at least 0. What is asked of `measure`: from points as columns (d,
count) to their costs and slacks; a point is allowed where its slack is at least 0. Where a sum of
products is to stay below another, both are close to convex in logarithms, so one valley is
expected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.theory.search.integers import Floats

Measure = Callable[[Floats], tuple[Floats, Floats]]
Open = NDArray[np.bool_]
"""Which coordinates may move."""

NEAR = 1e-2
"""Slacks within it count as 0 while looking."""
_APART = 3e-3
"""Points that differences are taken between: errors of their square, and no digits lost."""
_SETTLED = 1e-6
"""A move that gains less is the last one."""
_DAMPED = np.concatenate([[0], 10.0 ** np.arange(-3, 5)])
_FARTHEST = 3.0
_LEAP = 30.0
_MOVES = 100
_REPAIRS = 5


@dataclass(frozen=True, eq=False)
class Place:
    """A point with its cost and its slack."""

    point: Floats
    cost: float
    slack: float

    @property
    def allowed(self) -> bool:
        """Whether the slack is not below 0, but for rounding."""
        return self.slack > -1e-6


def lowest(measure: Measure, start: Floats, moving: Open, moves: int = _MOVES) -> Place:
    """The place of the lowest cost near `start` with a slack of about 0, in at most so many moves;
    where no slack reaches that, the place of the largest slack found.
    """
    here = _place(measure, np.maximum(start, 0))
    for _ in range(moves):
        local = _Local.of(measure, here.point, moving)
        if local is None:
            return here
        if local.slack < -NEAR:
            found = _up(measure, here, local)
        elif local.slack > NEAR:
            found = _down(measure, here, local) or _along(measure, here, local)
        else:
            found = _along(measure, here, local)
        if found is None:
            break
        done = abs(here.slack) < NEAR and here.cost - found.cost < _SETTLED and found.allowed
        here = found
        if done:
            break
    return _allowed(measure, here, moving)


def _allowed(measure: Measure, here: Place, moving: Open) -> Place:
    """The place, or one beside it where what it lacks in slack is made up for."""
    for _ in range(_REPAIRS):
        local = (
            None if here.allowed or here.slack < -NEAR else _Local.of(measure, here.point, moving)
        )
        if local is None:
            break
        free = ~(local.at_zero & (local.slack_slope < 0))
        slope = local.slack_slope[free]
        back = slope / max(slope @ slope, 1e-300)
        point = _moved(here.point, local.moving[free], -2 * here.slack * back[:, None])[:, 0]
        here = _place(measure, point)
    return here


def highest(measure: Measure, start: Floats, moving: Open) -> Place:
    """The place of the largest slack near `start`, whatever it costs."""
    here = _place(measure, np.maximum(start, 0))
    for _ in range(_MOVES):
        local = _Local.of(measure, here.point, moving)
        found = None if local is None else _up(measure, here, local, most=np.inf)
        if found is None:
            break
        done = found.slack - here.slack < _SETTLED
        here = found
        if done:
            break
    return here


@dataclass(frozen=True, eq=False)
class _Local:
    """Values, gradients and second derivatives at a point, over the coordinates that may move."""

    moving: NDArray[np.int64]
    at_zero: Open
    slack: float
    cost_slope: Floats
    cost_bend: Floats
    slack_slope: Floats
    slack_bend: Floats

    @classmethod
    def of(cls, measure: Measure, point: Floats, moving: Open) -> _Local | None:
        """By differences of points around; None where one has no finite slack, or nothing moves."""
        axes = np.flatnonzero(moving)
        if not len(axes):
            return None
        first, second = np.tril_indices(len(axes), -1)
        unit = _APART * np.eye(len(axes))
        pairs = unit[:, first] + unit[:, second]
        steps = np.concatenate([unit[:, :1] * 0, unit, -unit, pairs, -pairs], axis=1)
        points = np.repeat(point[:, None], steps.shape[1], axis=1)
        points[axes] += steps
        costs, slacks = measure(points)
        if not (np.isfinite(slacks).all() and np.isfinite(costs).all()):
            return None
        cost_slope, cost_bend = _derivatives(costs, len(axes))
        slack_slope, slack_bend = _derivatives(slacks, len(axes))
        return cls(
            axes,
            point[axes] <= 1e-9,
            float(slacks[0]),
            cost_slope,
            cost_bend,
            slack_slope,
            slack_bend,
        )


def _derivatives(values: Floats, d: int) -> tuple[Floats, Floats]:
    """Gradient and second derivatives from the values that `_Local.of` asks for."""
    middle = values[0]
    up, down = values[1 : d + 1], values[d + 1 : 2 * d + 1]
    first, second = np.tril_indices(d, -1)
    bend = np.diag((up + down - 2 * middle) / _APART**2)
    both_up, both_down = np.split(values[2 * d + 1 :], 2)
    single = up[first] + down[first] + up[second] + down[second]
    mixed = (both_up + both_down - single + 2 * middle) / (2 * _APART**2)
    bend[first, second] = bend[second, first] = mixed
    return (up - down) / (2 * _APART), bend


def _up(measure: Measure, here: Place, local: _Local, most: float = 0.5) -> Place | None:
    """A step to more slack, up to `most`, by Newton's method; None where none is found."""
    free = ~(local.at_zero & (local.slack_slope < 0))
    steps = _newton(-local.slack_bend[np.ix_(free, free)], -local.slack_slope[free])
    points = _moved(here.point, local.moving[free], steps)
    costs, slacks = measure(points)
    # of points with slack enough, the cheapest
    worth = np.where(np.isfinite(slacks), np.minimum(slacks, most) - 1e-6 * costs, -np.inf)
    best = int(np.argmax(worth))
    if not slacks[best] > here.slack + 1e-9:
        return None
    return Place(points[:, best], float(costs[best]), float(slacks[best]))


def _down(measure: Measure, here: Place, local: _Local) -> Place | None:
    """A long step to lower costs that leaves some slack; None where none is found."""
    free = ~local.at_zero
    cost, slack = local.cost_slope[free], local.slack_slope[free]
    lengths = (_FARTHEST + 1) * 0.5 ** np.arange(9)
    # downhill, against the slack, and all coordinates alike
    directions = (cost, slack * np.sign(slack @ cost), np.ones(len(cost)))
    steps = [-np.outer(way / max(np.abs(way).max(), 1e-300), lengths) for way in directions]
    points = _moved(here.point, local.moving[free], np.concatenate(steps, axis=1))
    costs, slacks = measure(points)
    worth = np.where(np.isfinite(costs) & (slacks > 0), costs, np.inf)
    best = int(np.argmin(worth))
    if not worth[best] < here.cost - 1e-3:
        return None
    return Place(points[:, best], float(costs[best]), float(slacks[best]))


def _along(measure: Measure, here: Place, local: _Local) -> Place | None:
    """A Newton step along slack 0, and back to it; None where none lowers the cost."""
    weight = _weight(local.cost_slope, local.slack_slope)
    free = ~(local.at_zero & (local.cost_slope > weight * local.slack_slope))
    cost, slack = local.cost_slope[free], local.slack_slope[free]
    if not slack @ slack > 0:
        return None
    weight = _weight(cost, slack)
    bend = (local.cost_bend - weight * local.slack_bend)[np.ix_(free, free)]
    # columns that span the directions in which the slack stays
    spanning = np.linalg.qr(np.concatenate([slack[:, None], np.eye(len(slack))], axis=1))[0]
    level = spanning[:, 1 : len(slack)]
    steps = level @ _newton(level.T @ bend @ level, level.T @ cost)
    axes = local.moving[free]
    back = (slack / (slack @ slack))[:, None]
    points = _moved(here.point, axes, steps - here.slack * back)
    costs, slacks = measure(points)
    for _ in range(3):
        known = np.where(np.isfinite(slacks), slacks, 0)
        points = _moved(points, axes, -np.clip(known, -_FARTHEST, _FARTHEST) * back)
        costs, slacks = measure(points)
    # what lacks in slack is paid at twice the going rate
    paid = costs - 2 * weight * np.minimum(slacks, 0)
    worth = np.where(np.isfinite(paid) & (slacks > -NEAR), paid, np.inf)
    best = int(np.argmin(worth))
    if not worth[best] < here.cost - 2 * weight * min(here.slack, 0) - 1e-12:
        return None
    return Place(points[:, best], float(costs[best]), float(slacks[best]))


def _weight(cost: Floats, slack: Floats) -> float:
    """What slack costs here: the multiplier of the constraint."""
    return max(float(cost @ slack / max(slack @ slack, 1e-300)), 1e-6)


def _newton(bend: Floats, slope: Floats) -> Floats:
    """Steps as columns against a slope: Newton's, and ever more cautious ones."""
    if not len(slope):
        return np.zeros((0, len(_DAMPED)))
    values, vectors = np.linalg.eigh((bend + bend.T) / 2)
    # where the function bends down, first as far as it takes to bend up
    lifted = values[:, None] + 1.01 * max(-values.min(), 0) + _DAMPED
    steps = -vectors @ ((vectors.T @ slope)[:, None] / np.maximum(lifted, 1e-9))
    longest = np.maximum(np.abs(steps).max(axis=0), 1e-300)
    leaps = steps[:, longest > _FARTHEST] * np.minimum(1, _LEAP / longest[longest > _FARTHEST])
    return np.concatenate([steps * np.minimum(1, _FARTHEST / longest), leaps], axis=1)


def _moved(points: Floats, axes: NDArray[np.int64], steps: Floats) -> Floats:
    """A point, or points, after steps in some coordinates, none below 0."""
    columns = points[:, None] if points.ndim == 1 else points
    moved = np.repeat(columns, steps.shape[1] // columns.shape[1], axis=1)
    moved[axes] = np.maximum(moved[axes] + steps, 0)
    return moved


def _place(measure: Measure, point: Floats) -> Place:
    costs, slacks = measure(point[:, None])
    return Place(point, float(costs[0]), float(slacks[0]))
