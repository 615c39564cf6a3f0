"""Where Theorems III to VII surely say nothing: upper bounds of what their inequalities can gain
at a task's size, in floats with margins.

No verdict rests on them: they only spare searches that cannot find anything. Parameters are cut
into intervals, and a theorem's own inequality is evaluated at the corner of each interval that is
best for either side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from separatrix.architecture import Layer
from separatrix.tasks import SeqComp
from separatrix.theory.fails import iii_one_reading_layer as one_layer
from separatrix.theory.fails import iv_two_reading_layers as two_layers
from separatrix.theory.fails import many_prices as many
from separatrix.theory.fails import v_three_steps as three_steps
from separatrix.theory.fails.many_layers import ManyLayers
from separatrix.theory.fails.many_layers import surely_silent as many_silent
from separatrix.theory.fails.reading_layers import CacheSizes
from separatrix.theory.inequalities import Counting, Mask, Pigeonhole
from separatrix.theory.judge import THEOREMS
from separatrix.theory.search.integers import Floats

_MARGIN = 1e-9
_EDGES = 400
_COARSE = 60
_ONE = np.ones(1)


def surely_silent(sizes: CacheSizes, task: SeqComp) -> bool:
    """True only where no parameters of the theorem can show failure at the task's m and n_l;
    False says nothing.
    """
    bound = _BOUNDS.get(type(sizes))
    if bound is None:
        return False
    with np.errstate(all="ignore"):
        return bool(bound(sizes, task) < 0)


def may_speak(readers: int, reader: Layer, task: SeqComp) -> bool:
    """Whether Theorem VI or VII may show failure of the task in stacks of so many such reading
    layers; False only where they cannot.
    """
    h = sum(part.read_bits() for part in reader)
    sizes = many.Sizes((h,) * readers, (0,) * (readers + 1), (0,) * readers)
    return any(
        theorem.covers(readers, task) and not many_silent(sizes, theorem.size(sizes, task))
        for theorem in THEOREMS.values()
        if isinstance(theorem, ManyLayers)
    )


def _intervals(high: float, count: int = _EDGES) -> tuple[Floats, Floats]:
    """Intervals that cover the integers 1..high: single ones first, then longer and longer ones."""
    single = np.arange(1, min(high, count / 4) + 1)
    longer = np.floor(np.geomspace(1, max(high, 1), count))
    lows = np.unique(np.concatenate([single, longer]))
    return lows, np.concatenate([lows[1:] - 1, [high]])


def _most(left: Floats, right: Floats, allowed: Mask) -> float:
    """The largest left - right of those allowed, a margin for rounding added; infinite where a
    float is no number.
    """
    gain = left - right + _MARGIN * (np.abs(left) + np.abs(right)) + _MARGIN
    gain = np.where(np.isnan(gain), np.inf, gain)
    return float(np.max(np.where(allowed, gain, -np.inf), initial=-np.inf))


def _fewest(needed: Pigeonhole[Floats]) -> Floats:
    """At most the smallest number of places with which it holds."""
    if isinstance(needed.bits, int) and needed.bits == 0:
        return np.ones_like(needed.kept)
    places = np.maximum(1, needed.places_needed() * (1 - _MARGIN))
    return np.where(needed.kept > 1, places, 1)


def _one_layer(s: one_layer.Sizes, task: SeqComp) -> float:
    """III, over intervals of r: the most is asked for at their ends, the least is owed at their
    beginnings.
    """
    m = np.full(1, float(task.m))
    n_1 = np.full(1, float(task.branching[0]))
    r, r_high = _intervals(task.m)
    t = _fewest(one_layer.contents(s, m, r, _ONE))
    asked = one_layer.answers(s, m, n_1, r_high, t).left()
    owed = one_layer.answers(s, m, n_1, r, t).right()
    return _most(asked, owed, t <= m)


def _two_layers(s: two_layers.Sizes, task: SeqComp) -> float:
    """IV, over intervals of t and g: the most contents are kept with t at its end and g at its
    beginning, the least is owed the other way round.
    """
    m = np.full(1, float(task.m))
    n_1 = np.full(1, float(task.branching[0]))
    t, t_high = (edges[:, None] for edges in _intervals(task.m))
    g, g_high = _intervals(task.branching[0])

    def counting(r: Floats, q: Floats) -> Counting[Floats]:
        return two_layers.answers(s, m, n_1, r, q, t, g_high)

    share = two_layers.contents(s, _ONE, _ONE, t_high, g).share()
    return _chosen(m, share, counting, np.ones(1, bool))


def _three_steps(s: three_steps.Sizes, task: SeqComp) -> float:
    """V, over intervals of X, Y = y beta and g: beta > u_0 >= floor(sigma_0 / log N_1), and
    (y-1) beta <= X, so Y <= 2X unless y = 1.
    """
    m, n_1, n_2 = (np.full(1, float(size)) for size in (task.m, *task.branching[:2]))
    N_1 = n_1 * m
    # the fewest places are lost with q = 2
    least_beta = np.floor(s.sigma_0 / np.log2(np.maximum(N_1, 2)) * (1 - _MARGIN)) + 1
    groups = float(n_2[0]) if s.sigma_2 else 1.0
    X, X_high = (edges[:, None, None] for edges in _intervals(task.m, _COARSE))
    Y, Y_high = (edges[:, None] for edges in _intervals(2 * task.m, _COARSE))
    g, g_high = _intervals(groups, _COARSE)
    t = _fewest(three_steps.first_contents(s, m, X, _ONE))
    # m - t + Xt + 1 at its least, since it grows with X and t
    late = m + (X - 1) * t + 1
    # y is at most this
    blocks = np.where(2 * X_high < Y, 1, np.maximum(1, Y_high / least_beta))
    # Y = y beta with y >= 1
    places = np.maximum(Y, least_beta)

    def counting(r: Floats, q: Floats) -> Counting[Floats]:
        return three_steps.answers(s, N_1, n_1, n_2, late, places, _ONE, q, r, g_high)

    share = three_steps.row_contents(s, n_1, X, late, blocks, _ONE, _ONE, g).share()
    allowed = (t <= m) & (Y_high >= places) & (least_beta <= m)
    return _chosen(N_1, share, counting, allowed)


def _chosen(
    most: Floats,
    share: Floats,
    counting: Callable[[Floats, Floats], Counting[Floats]],
    allowed: Mask,
) -> float:
    """The largest gain over q <= most and 2 <= r < q share + 1. It is linear in both, so a corner
    of that region is best.
    """
    share = share * (1 + _MARGIN)
    # 2 <= r < q share + 1 needs q > 1 / share
    least = np.maximum(2, 1 / share)
    allowed = allowed & (least <= most * (1 + _MARGIN))
    bounds: list[float] = []
    for q in (np.minimum(least, most), most):
        for r in (2 * _ONE, q * share + 1):
            corner = counting(r, q)
            bounds.append(_most(corner.left(), corner.right(), allowed))
    return max(bounds)


_BOUNDS: dict[type[CacheSizes], Callable[[Any, SeqComp], float]] = {
    one_layer.Sizes: _one_layer,
    two_layers.Sizes: _two_layers,
    three_steps.Sizes: _three_steps,
}
"""Those of VI and VII look for themselves: see `many_layers`."""
