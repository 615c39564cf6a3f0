"""Where Theorems III, IV and V surely say nothing: upper bounds of what their inequalities can gain
at a task's size, in floats with margins.

No verdict rests on them: they only spare searches that cannot find anything. Every interval of
parameters is bounded by its best corner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks import SeqComp
from separatrix.theory import depth_one, depth_three, depth_two
from separatrix.theory.search.integers import Floats

_MARGIN = 1e-9
_EDGES = 400
_COARSE = 60
_AXES = ((slice(None), None, None), (None, slice(None), None), (None, None, slice(None)))
"""Intervals of three parameters, each along an axis of its own."""


def surely_silent(sizes: Any, task: SeqComp) -> bool:
    """True only where no parameters of the theorem can show failure at the task's m and n_l;
    False says nothing.
    """
    with np.errstate(all="ignore"):
        for kind, bound in _BOUNDS.items():
            if isinstance(sizes, kind):
                gain = bound(sizes, task)
                return bool(gain < 0)
    return False


def _intervals(high: float, count: int = _EDGES) -> tuple[Floats, Floats]:
    """Intervals that cover the integers 1..high: single ones first, then longer and longer ones."""
    lows = np.unique(
        np.concatenate(
            [np.arange(1, min(high, count / 4) + 1), np.floor(np.geomspace(1, max(high, 1), count))]
        )
    )
    return lows, np.concatenate([lows[1:] - 1, [high]])


def _most(left: Floats, right: Floats) -> float:
    """The largest left - right, a margin for rounding added; infinite where a float is no
    number.
    """
    left, right = np.broadcast_arrays(left, right)
    gain = left - right + _MARGIN * (np.abs(left) + np.abs(right)) + _MARGIN
    return float(np.max(np.where(np.isnan(gain), np.inf, gain), initial=-np.inf))


def _one(s: depth_one.Sizes, task: SeqComp) -> float:
    """III: n_1 r log N_1 - n_1 h - sigma_0 - min(r sigma_1, sigma_1 + (rt+1) h), t > sigma_0 /
    log(m/(r-1)).
    """
    m = float(task.m)
    n_1 = float(task.branching[0])
    low, high = _intervals(m)
    t = np.where(
        (low > 1) & (s.sigma_0 > 0),
        np.maximum(1, s.sigma_0 / np.log2(m / np.maximum(low - 1, 0.5)) * (1 - _MARGIN)),
        1,
    )
    after = np.minimum(low * s.sigma_1, s.sigma_1 + (low * t + 1) * s.h)
    return _most(np.where(t <= m, n_1 * high * np.log2(n_1 * m), 0), s.first + n_1 * s.h + after)


def _two(s: depth_two.Sizes, task: SeqComp) -> float:
    """IV, over intervals of t and g."""
    m = float(task.m)
    n_1 = float(task.branching[0])
    (t, t_high), (g, g_high) = _intervals(m), _intervals(n_1)
    t = t[:, None]
    t_high = t_high[:, None]
    g = g[None, :]
    g_high = g_high[None, :]
    groups = np.ceil(n_1 / g_high)
    gained = n_1 * np.log2(n_1 * m) - groups * s.sigma_2
    owed = s.sigma_1 + s.open_2 + n_1 * (s.h_1 + s.h_2) + np.minimum(t, groups) * s.h_1
    return _chosen(m, (s.sigma_1 + g * s.h_1) / t_high, gained, owed, t * s.h_1)


def _three(s: depth_three.Sizes, task: SeqComp) -> float:
    """V, over intervals of X, Y = y beta and g: beta > u_0 >= floor(sigma_0 / log N_1), and
    (y-1) beta <= X, so Y <= 2X unless y = 1.
    """
    n_1 = float(task.branching[0])
    n_2 = float(task.branching[1])
    m = float(task.m)
    N_1 = n_1 * m
    least = np.floor(s.sigma_0 / np.log2(max(n_1 * m, 2)) * (1 - _MARGIN)) + 1
    edges = [
        _intervals(m, _COARSE),
        _intervals(2 * m, _COARSE),
        _intervals(n_2 if s.sigma_2 else 1, _COARSE),
    ]
    (X, X_high), (Y, Y_high), (g, g_high) = (
        (low[place], high[place]) for (low, high), place in zip(edges, _AXES, strict=True)
    )
    t = (
        np.maximum(1, s.sigma_0 / np.log2(m / np.maximum(X - 1, 0.5)) * (1 - _MARGIN))
        if s.sigma_0
        else np.ones_like(X)
    )
    late = m + (X - 1) * t + 1
    kept = s.open_1 + np.minimum(X * s.sigma_1, s.sigma_1 + late * s.h_1)
    places = np.where(2 * X_high < Y, 1, np.maximum(1, Y_high / least))
    groups = np.ceil(n_2 / g_high)
    Y = np.maximum(Y, least)
    gained = n_2 * np.log2(n_2 * N_1) - groups * s.sigma_2
    fixed = (
        s.sigma_0 + s.sigma_1 + s.open_1 + s.open_2 + (N_1 + late) * s.h_1 + n_2 * (s.h_1 + s.h_2)
    )
    each = n_1 * Y * s.h_1
    allowed = (t <= m) & (Y_high >= Y) & (least <= m)
    return _chosen(N_1, (kept / n_1 + g * s.h_1) / places, gained, fixed - each, each, allowed)


def _chosen(
    most: float,
    bits: Floats,
    gained: Floats,
    owed: Floats,
    each: Floats,
    allowed: NDArray[np.bool_] | bool = True,
) -> float:
    """The largest r gained - owed - q each with 2 <= r < q 2^-bits + 1 and q <= most: linear in
    q, so an end of its range is best.
    """
    share = np.exp2(-bits) * (1 + _MARGIN)
    least = np.maximum(2, 1 / share)
    feasible = (least <= most * (1 + _MARGIN)) & allowed
    ends = [
        (q * share + 1) * np.maximum(gained, 0)
        for q in (np.minimum(least, most), np.full_like(share, most))
    ]
    owes = [owed + q * each for q in (np.minimum(least, most), np.full_like(share, most))]
    return max(
        _most(np.where(feasible, end, 0), np.where(feasible, owe, 1))
        for end, owe in zip(ends, owes, strict=True)
    )


_BOUNDS: dict[type, Callable[[Any, SeqComp], float]] = {
    depth_one.Sizes: _one,
    depth_two.Sizes: _two,
    depth_three.Sizes: _three,
}
