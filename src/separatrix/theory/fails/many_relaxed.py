"""The choices of Theorems VI and VII as real numbers: which are possible, and what they cost
(theory.md, section 11).

Floats propose here; `many_search` makes integers of it and certifies them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log

import numpy as np

from separatrix.theory.fails.many_prices import Choice, Sizes, class_bits, prices
from separatrix.theory.fails.many_proof import Parameters
from separatrix.theory.fails.spelling import PLAIN, Spelling
from separatrix.theory.inequalities import N
from separatrix.theory.search.integers import LN2, Floats
from separatrix.theory.search.logs import Logs
from separatrix.theory.search.occupancy import most_hit
from separatrix.theory.search.smooth import Open

_LONGER = "t/x"
_PENALTY = 10.0
_TRIED = 200


@dataclass(frozen=True)
class Relaxed:
    """A theorem's choices with given sizes of caches and given flags (f_2, ..., f_L), in any size
    (m, n_1, ...), or at one.

    Points are columns of logarithms, in the order of `names`. Theorem VI takes x = 1 and Delta_1 =
    y_1, which (A1) suits; Theorem VII takes (A2).
    """

    ahead: int
    s: Sizes
    flags: tuple[int, ...]
    spelling: Spelling = PLAIN
    size: tuple[int, ...] | None = None
    floored: bool = False
    """Whether m' and g are rounded down at a size, where G is an integer."""
    sparing: bool = False
    """Whether values of w_2 may be left over at a size."""

    @property
    def L(self) -> int:
        """How many functions are composed."""
        return len(self.flags) + 1

    @property
    def names(self) -> tuple[str, ...]:
        """What the coordinates of points are."""
        found = ["G"]
        if self.size is None:
            found += ["n_1", "g", "m'", *(f"n_{level}" for level in range(3, self.L))]
        elif self.sparing:
            found.append("g")
        found += ["x", _LONGER, "Delta_1"] if self.ahead else ["t"]
        return *found, *(f"Delta_{level}" for level in range(2, self.L))

    @property
    def integral(self) -> Open:
        """Which coordinates are logarithms of integers."""
        return np.array([name != _LONGER for name in self.names])

    @property
    def last(self) -> Open:
        """Where m' stands."""
        return np.array([name == "m'" for name in self.names])

    def choice(self, points: Floats) -> Choice[Logs]:
        """The choices at points; Theorem VI's Delta_1 is m'."""
        named = {name: Logs(row) for name, row in zip(self.names, points, strict=True)}
        one = Logs(np.zeros_like(points[0]))
        G = named["G"]
        levels = range(1, self.L)
        if self.size is None:
            part, g = named["m'"], named["g"]
            m = G * part
            n = tuple(G * g if level == 2 else named[f"n_{level}"] for level in levels)
        else:
            m, *given = (one * value for value in self.size)
            n = tuple(given)
            part, g = m / G, n[1] / G
            if self.sparing:
                g = g.capped(named["g"])
            if self.floored:
                part, g = part.floored(), g.floored()
        x = named["x"] if self.ahead else one
        t = x * named[_LONGER] if self.ahead else named["t"]
        first = named["Delta_1"] if self.ahead else part
        contents = (first, *(named[f"Delta_{level}"] for level in levels[1:]))
        return Choice(m, n, part, G, g, t, x, contents, self.flags)

    def whole(self, point: Floats) -> Choice[int]:
        """The choice of integers next to a point; Theorem VI's Delta_1 is m'."""
        real = self.choice(point[:, None])
        G, g, part, x = (number.nearest() for number in (real.G, real.g, real.part, real.x))
        if self.size is None:
            n = [number.nearest() for number in real.n]
            n[1] = g * G
            m = G * part
        else:
            m, *n = self.size
            part, g = m // G, min(g, n[1] // G)
        t = min(m, max(x, real.t.nearest()))
        contents = [number.nearest() for number in real.contents]
        if not self.ahead:
            contents[0] = part
        return Choice(m, tuple(n), part, G, g, t, x, tuple(contents), self.flags)

    def point(self, parameters: Parameters) -> Floats:
        """The point of parameters found elsewhere."""
        numbers = parameters.numbers
        stretch = log(parameters.t) - log(parameters.x)
        return np.array([stretch if name == _LONGER else log(numbers[name]) for name in self.names])

    def groups(self, near: float) -> list[int]:
        """Integers G near a logarithm at this size: those next to it, and those that cut n_2 into
        whole groups but for a rest smaller than G.
        """
        assert self.size is not None
        n_2 = self.size[2]
        G = Logs(np.array([near])).nearest()
        g = max(1, n_2 // G)
        found = {G + step for step in range(-_TRIED, _TRIED + 1)}
        found |= {n_2 // (g + step) for step in range(-_TRIED, _TRIED + 1) if g + step > 0}
        return sorted(G for G in found if 1 <= G <= min(n_2, self.size[0]))

    def measure(self, points: Floats) -> tuple[Floats, Floats]:
        """The logarithm of the prompt's tokens, and by how many e-folds the bits that are asked for
        exceed those that are fixed: at least 0 where failure is shown.
        """
        with np.errstate(all="ignore"):
            return self._measure(self.choice(points))

    def _measure(self, choice: Choice[Logs]) -> tuple[Floats, Floats]:
        y_1 = first_values(self.ahead, self.s, choice, self.spelling)
        if not self.ahead:
            choice = with_first(choice, y_1)
        owed = prices(self.ahead, self.s, choice, self.spelling)
        asked = choice.G * choice.n[0] * y_1
        for level, bits in enumerate(owed[:-1], 2):
            hit = spread_values(choice, level, asked, bits)
            asked = hit * (choice.g if level == 2 else choice.n[level - 1])
        answers = choice.values(self.L - 1)
        if self.spelling.K is not None:
            answers = answers.capped(self.spelling.K)
        length = choice.m
        for level in range(1, self.L):
            length = length + choice.values(level)
        slack = (asked * answers.bits()).ln - owed[-1].ln
        # t <= m and, at a size, g >= 1 and m' >= 1 are not in the formulas
        beyond = np.maximum(choice.t.ln - choice.m.ln, 0)
        for least in () if self.size is None else (choice.g, choice.part):
            beyond = beyond + np.maximum(-least.ln, 0)
        return length.ln, slack - _PENALTY * beyond

    def start(self, room: float) -> Floats:
        """A point whose parameters have the order of magnitude that the proof asks for, times
        `room`.

        h is the largest read, sigma the largest cache. Delta_l = h n_{l+1} .. n_{L-1} makes w's
        reads cheap enough, n_l = h Delta_l .. Delta_{L-1} those of z_l's tokens, n_1 the caches.
        """
        h = log(max(*self.s.h, *self.s.opened, 1) * room)
        # caches have constants of 1: their parameters do not start below their order
        caches = log(max(*self.s.sigma, 1) * max(room, 1))
        found: dict[str, float] = {}
        rows = contents = 0.0
        for level in range(self.L - 1, 1, -1):
            found[f"Delta_{level}"] = h + rows
            contents += h + rows
            if level > 2:
                found[f"n_{level}"] = h + contents
                rows += h + contents
        found |= {"G": contents, "g": h, "n_1": max(h, caches)}
        places = found["n_1"] + 2 * h + rows
        found |= {"x": places, _LONGER: 0.0, "Delta_1": 2 * h + rows}
        found["m'"] = 2 * h + rows + (places if self.ahead else 0)
        found["t"] = log(4 * self.s.sigma[0] * max(room, 1) + 1)
        return np.array([found[name] for name in self.names])


def first_values(ahead: int, s: Sizes, choice: Choice[Logs], spelling: Spelling = PLAIN) -> Logs:
    """About the largest y_1 - 1 that (A) allows."""
    bits = class_bits(ahead, s, choice, spelling)
    if not ahead:
        # (A1) with x = 1: log(m'/(y-1)) > s/t
        return Logs(choice.part.ln - np.exp((bits / choice.t).ln) * LN2)
    first = choice.contents[0]
    one = Logs(np.zeros_like(first.ln))
    balls = first * choice.x
    return most_hit(choice.part, balls, one, balls * bits / choice.t)


def spread_values(choice: Choice[Logs], level: int, asked: Logs, bits: Logs) -> Logs:
    """About the largest Y_l - 1 that (B_l) allows, with so many entries of z_l asked for."""
    one = Logs(np.zeros_like(asked.ln))
    bins = choice.values(level - 1)
    contents = choice.delta(level)
    groups = choice.G if level == 2 else one
    return most_hit(bins * groups, contents * asked, groups, contents * bits + 1)


def with_first(choice: Choice[N], y_1: N) -> Choice[N]:
    """The choices with Delta_1 = y_1: Theorem VI's contents of z_1 take one new value each."""
    return replace(choice, contents=(y_1, *choice.contents[1:]))
