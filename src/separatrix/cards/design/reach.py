"""Where Theorems III to VII surely say nothing: upper bounds of what their inequalities can gain
at a task's size, in floats with margins.

No verdict rests on them: they only spare searches that cannot find anything. A theorem's own
inequality is evaluated at the corner of a box of parameters that is best for either side; boxes
that this does not rule out are cut in two.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, inf, isnan, sqrt
from typing import Any

from separatrix.stacks.architecture import Layer
from separatrix.tasks import SeqComp
from separatrix.theory.fails import iii_one_reading_layer as one_layer
from separatrix.theory.fails import iv_two_reading_layers as two_layers
from separatrix.theory.fails import many_prices as many
from separatrix.theory.fails import r_depth
from separatrix.theory.fails import v_three_steps as three_steps
from separatrix.theory.fails.many_layers import ManyLayers
from separatrix.theory.fails.many_layers import surely_silent as many_silent
from separatrix.theory.fails.reading_layers import CacheSizes
from separatrix.theory.inequalities import Counting, Pigeonhole
from separatrix.theory.judge import THEOREMS
from separatrix.theory.search.reals import log2

_MARGIN = 1e-9
_BOXES = 1_500
"""After so many boxes nothing is ruled out."""
_LARGEST = 1 << 300

Interval = tuple[float, float]
"""The integers from a lowest to a highest one."""


def surely_silent(sizes: CacheSizes, task: SeqComp) -> bool:
    """True only where no parameters of the theorem can show failure at the task's m and n_l;
    False says nothing.
    """
    rules_out = _RULES.get(type(sizes))
    return rules_out is not None and task.length < _LARGEST and rules_out(sizes, task)


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


def _ruled_out(gain: Callable[..., float], *highest: float) -> bool:
    """Whether the gain is below 0 for all integers from 1 to the highest ones."""
    boxes: list[tuple[Interval, ...]] = [tuple((1.0, high) for high in highest)]
    for _ in range(_BOXES):
        if not boxes:
            return True
        box = boxes.pop()
        if gain(*box) < 0:
            continue
        longest = max(range(len(box)), key=lambda axis: (box[axis][1] + 1) / box[axis][0])
        low, high = box[longest]
        if low == high:
            return False
        middle = float(min(max(floor(sqrt(low) * sqrt(high)), low), high - 1))
        for half in ((middle + 1, high), (low, middle)):
            boxes.append((*box[:longest], half, *box[longest + 1 :]))
    return False


def _most(counting: tuple[Counting[float], Counting[float]]) -> float:
    """What the first asks for beyond what the second owes, a margin for rounding added; infinite
    where a float is no number.
    """
    left, right = counting[0].left(), counting[1].right()
    gain = left - right + _MARGIN * (abs(left) + abs(right)) + _MARGIN
    return inf if isnan(gain) else gain


def _fewest(needed: Pigeonhole[float]) -> float:
    """At most the smallest number of places with which it holds."""
    if needed.bits == 0 or needed.kept <= 1:
        return 1.0
    return max(1.0, needed.places_needed() * (1 - _MARGIN))


def _one_layer(s: one_layer.Sizes, task: SeqComp) -> bool:
    """III, over intervals of r: the most is asked for at their ends, the least is owed at their
    beginnings.
    """
    m, n_1 = float(task.m), float(task.branching[0])

    def gain(r: Interval) -> float:
        t = _fewest(one_layer.contents(s, m, r[0], 1.0))
        if t > m:
            return -inf
        most, least = (one_layer.answers(s, m, n_1, end, t) for end in (r[1], r[0]))
        return _most((most, least))

    return _ruled_out(gain, m)


def _two_layers(s: two_layers.Sizes, task: SeqComp) -> bool:
    """IV, over intervals of t and g: the most contents are kept with t at its end and g at its
    beginning, the least is owed the other way round.
    """
    m, n_1 = float(task.m), float(task.branching[0])

    def gain(t: Interval, g: Interval) -> float:
        share = two_layers.contents(s, 1.0, 1.0, t[1], g[0]).share()
        return _chosen(m, share, lambda r, q: two_layers.answers(s, m, n_1, r, q, t[0], g[1]))

    return _ruled_out(gain, m, n_1)


def _three_steps(s: three_steps.Sizes, task: SeqComp) -> bool:
    """V, over intervals of X, Y = y beta and g: beta > u_0 >= floor(sigma_0 / log N_1), and
    (y-1) beta <= X, so Y <= 2X unless y = 1.
    """
    m, n_1, n_2 = (float(size) for size in (task.m, *task.branching[:2]))
    N_1 = n_1 * m
    # the fewest places are lost with q = 2
    least_beta = floor(s.sigma_0 / log2(max(N_1, 2.0)) * (1 - _MARGIN)) + 1.0

    def gain(X: Interval, Y: Interval, g: Interval) -> float:
        t = _fewest(three_steps.first_contents(s, m, X[0], 1.0))
        # Y = y beta with y >= 1
        places = max(Y[0], least_beta)
        if t > m or Y[1] < places or least_beta > m:
            return -inf
        # m - t + Xt + 1 at its least, since it grows with X and t
        late = m + (X[0] - 1) * t + 1
        # y is at most this
        blocks = 1.0 if 2 * X[1] < Y[0] else max(1.0, Y[1] / least_beta)
        share = three_steps.row_contents(s, n_1, X[0], late, blocks, 1.0, 1.0, g[0]).share()

        def counting(r: float, q: float) -> Counting[float]:
            return three_steps.answers(s, N_1, n_1, n_2, late, places, 1.0, q, r, g[1])

        return _chosen(N_1, share, counting)

    return _ruled_out(gain, m, 2 * m, n_2 if s.sigma_2 else 1.0)


def _chosen(
    most: float, share: float, counting: Callable[[float, float], Counting[float]]
) -> float:
    """The largest gain over q <= most and 2 <= r < q share + 1. It is linear in both, so a corner
    of that region is best.
    """
    share = share * (1 + _MARGIN)
    # 2 <= r < q share + 1 needs q > 1 / share
    least = max(2.0, 1 / share) if share > 0 else inf
    if least > most * (1 + _MARGIN):
        return -inf
    corners = [counting(r, q) for q in (min(least, most), most) for r in (2.0, q * share + 1)]
    return max(_most((corner, corner)) for corner in corners)


_RULES: dict[type[CacheSizes], Callable[[Any, SeqComp], bool]] = {
    one_layer.Sizes: _one_layer,
    # with a lag more is owed, and there is less room
    r_depth.Staggered: _one_layer,
    two_layers.Sizes: _two_layers,
    three_steps.Sizes: _three_steps,
}
"""Those of VI and VII look for themselves: see `many_layers`."""
