"""The choices of Theorems VI and VII as points of a search: which are possible, what they cost, and
what is certified of them (theory.md, section 11).

y_1 and the Y_l are the largest that floats allow at a point, or nearly so where they are certified.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.theory.arguments import Sizes
from separatrix.theory.fails.many_proof import Choice, Parameters, class_bits, conditions, prices
from separatrix.theory.inequalities import N, certainly, smaller
from separatrix.theory.search.driver import Grid, Point, Search
from separatrix.theory.search.reals import LN2, dot, exp, ln, share_hit

_LONGER = "t-x"
_SHARES = (48, 44, 40, 34, 26)
"""Values that floats propose are lowered by their 2^-48 part, 2^-44 part, .., until certified."""
_ROOMS = tuple(power / 4 for power in range(-6, 17))
"""How many e-folds more than the proof asks for parameters may start with."""
_HOPELESS = 1e4
"""Points that lack more e-folds lead nowhere; reads of one bit lack thousands at first."""
_HIGHEST = 1e100
"""No prompt is as long, see `tasks.seqcomp`."""
_FLOATS = 340.0
"""Logarithms that add up to less stay within floats; sizes beyond are not looked at."""
_EXACT = 1e10
"""Larger numbers are as good as integers."""


@dataclass(frozen=True)
class RelaxedSearch(Search[Parameters]):
    """Points in the order of `names`, with given flags (f_2, ..., f_L). Theorem VI
    takes x = 1 and Delta_1 = y_1, which (A1) suits; Theorem VII takes (A2).

    At a task's size m' and g are rounded down, and values of w_2 may be left over.
    """

    ahead: int
    s: Sizes
    flags: tuple[int, ...]
    size: tuple[int, ...] | None = None
    first: tuple[Point, ...] = ()
    """Where it starts, if that is known."""
    coarse: bool = False
    """Whether gains of a thousandth end it."""
    tried: ClassVar[int] = 1
    descended: ClassVar[int] = 1

    @property
    def L(self) -> int:
        """How many functions are composed."""
        return len(self.flags) + 1

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the coordinates of points are."""
        found = ["G", "g"]
        if self.size is None:
            found += ["n_1", "m'", *(f"n_{level}" for level in range(3, self.L))]
        found += ["x", _LONGER, "Delta_1"] if self.ahead else ["t"]
        return *found, *(f"Delta_{level}" for level in range(2, self.L))

    def grid(self) -> Grid:
        gain = 1e-3 if self.coarse else 1e-6
        return Grid(
            tuple(float(name != _LONGER) for name in self.names),
            (_HIGHEST,) * len(self.names),
            alike=gain,
            flat=gain / 10,
            # at a task's own size a single bit decides: strides shrink to single units
            fine=1e-3 if self.size is None else 0.0,
            near=2,
        )

    def choice(self, point: Sequence[N]) -> Choice[N]:
        """The choice at a point of floats or of integers; Theorem VI's Delta_1 is m'."""
        named = dict(zip(self.names, point, strict=True))
        G, g = named["G"], named["g"]
        one = G * 0 + 1
        levels = range(1, self.L)
        if self.size is None:
            part = named["m'"]
            m = G * part
            n = tuple(G * g if level == 2 else named[f"n_{level}"] for level in levels)
        else:
            m, *given = (one * value for value in self.size)
            n = tuple(given)
            part, g = m // G, smaller(g, n[1] // G)
        x = named["x"] if self.ahead else one
        t = smaller(x + named[_LONGER] if self.ahead else named["t"], m)
        first = named["Delta_1"] if self.ahead else part
        contents = (first, *(named[f"Delta_{level}"] for level in levels[1:]))
        return Choice(m, n, part, G, g, t, smaller(x, t), contents, self.flags)

    def point(self, parameters: Parameters) -> Point:
        """The point of parameters found elsewhere."""
        numbers = parameters.numbers | {_LONGER: parameters.t - parameters.x}
        return tuple(float(numbers[name]) for name in self.names)

    def measure(self, point: Point) -> tuple[float, float]:
        """The logarithm of the prompt's tokens, and by how many e-folds the bits that are asked for
        exceed those that are fixed: at least 0 where failure is shown, -inf where nothing is asked.
        """
        # no product holds a coordinate more than twice
        if sum(ln(x) for x in point if x > 1) + self._size_bits > _FLOATS:
            return inf, -inf
        choice = self.choice(point)
        length = choice.m
        for level in range(1, self.L):
            length += choice.values(level)
        cost = ln(length)
        if min(choice.g, choice.part) < 1:
            return cost, -inf
        y_1 = first_values(self.ahead, self.s, choice)
        if not self.ahead:
            choice = with_first(choice, y_1)
        owed = prices(self.ahead, self.s, choice)
        asked = choice.G * choice.n[0] * y_1
        for level, bits in enumerate(owed[:-1], 2):
            if not asked > 0:
                break
            hit = spread_values(choice, level, asked, bits)
            asked = hit * (choice.g if level == 2 else choice.n[level - 1])
        entropy = ln(choice.values(self.L - 1)) / LN2
        if not (asked > 0 and entropy > 0):
            return cost, -inf
        slack = ln(asked) + ln(entropy) - ln(owed[-1])
        return cost, slack if isfinite(slack) else -inf

    @cached_property
    def _size_bits(self) -> float:
        caches = max(*self.s.h, *self.s.sigma, *self.s.opened, 1)
        return ln(caches) + dot([ln(n) for n in self.size or ()], [1.0] * len(self.size or ()))

    def length(self, point: Point, steps: int) -> float:
        cost, slack = self.measure(point)
        if slack < -_HOPELESS:
            return inf
        # what lacks is dearer than any parameters that make up for it: theory.md, section 11
        price = 2 * 2.62 ** len(self.s.h)
        return cost + price * max(-slack, 0.0)

    def tokens(self, parameters: Parameters, steps: int) -> float:
        return ln(parameters.length())

    def owed(self, point: Point) -> float:
        _, slack = self.measure(point)
        return exp(-slack)

    def settled(self, point: Point) -> Parameters | None:
        """With nearly the smallest m' where it is free."""
        chosen = self.choice([*map(int, point)])

        def at(part: int) -> Parameters | None:
            if part < 1:
                return None
            return self.certified(replace(chosen, m=chosen.G * part, part=part))

        if self.size is not None:
            return self.certified(chosen) if min(chosen.part, chosen.g) >= 1 else None
        near = part = chosen.part
        fine = step = max(1, near >> 30)
        found = at(part)
        while found is None and part < near + near // 2 + 16:
            part += step
            step *= 2
            found = at(part)
        # values that were rounded down may have left some room
        step = fine
        while found is not None and step >= fine:
            shorter = at(part - step)
            if shorter is None:
                step //= 2
                continue
            found = shorter
            part -= step
            step *= 2
        return found

    def certified(self, choice: Choice[int]) -> Parameters | None:
        """Parameters of Theorem VI (`ahead` = 0, whose Delta_1 is then y_1) or VII (1), every
        condition certified; None where none are found.
        """
        for lowered, share in enumerate(_SHARES):
            try:
                found = self._proposed(choice, share, lowered)
            except SizeError:
                return None
            *needed, last = conditions(self.ahead, self.s, found).values()
            if all(map(certainly, needed)):
                return found if certainly(last) else None
        return None

    def _proposed(self, choice: Choice[int], share: int, lowered: int) -> Parameters:
        """With y_1 and Y_l the largest in floats, lowered a little; SizeError out of range."""

        def below(value: float, most: int) -> int:
            # the estimates are of y - 1
            largest = int(value) + 1
            return max(1, min(most, largest - (largest >> share) - lowered))

        y_1 = below(
            first_values(self.ahead, self.s, _floats(choice)),
            min(choice.part, choice.x * choice.contents[0]) if self.ahead else choice.part,
        )
        if not self.ahead:
            choice = with_first(choice, y_1)
        inexact = _floats(choice)
        asked = choice.G * choice.n[0] * y_1
        hits: list[int] = []
        for level, bits in enumerate(prices(self.ahead, self.s, choice)[:-1], 2):
            bins = choice.values(level - 1) * (choice.G if level == 2 else 1)
            value = spread_values(inexact, level, float(asked), float(bits))
            hits.append(below(value, bins))
            asked = hits[-1] * (choice.g if level == 2 else choice.n[level - 1])
        return Parameters(**vars(choice), y_1=y_1, hit=tuple(hits))

    def starts(self) -> Iterable[Sequence[float]]:
        """Points of the order of magnitude that the proof asks for, with more or less room."""
        return self.first or [self._start(room) for room in _ROOMS]

    def _start(self, room: float) -> Point:
        """What `least_entries` asks for, times e^room at each step; log N_{L-1} is guessed from
        what it leads to. Contents of later functions make each n_l larger by most of them.
        """
        found: dict[str, float] = {}
        entropy = ln(40.0)
        for _ in range(3):
            found = self._needed(room, entropy)
            entries = dot([found[name] for name in found if name[0] == "n"], [1.0] * (self.L - 1))
            entropy = ln(max(found["m"] + entries, 1.0) / LN2)
        return tuple(exp(max(found[name], 0.0)) for name in self.names)

    def _needed(self, room: float, entropy: float) -> dict[str, float]:
        h = [ln(bits) for bits in self.s.h]
        caches = [ln(max(bits, 1)) for bits in self.s.sigma]
        found: dict[str, float] = {}
        rows = contents = 0.0
        for level in range(self.L - 1, 1, -1):
            known = level - 1 + self.ahead
            gain = (entropy if level + 1 == self.L else 0.0) - room - ln(10.0)
            own = ln(sum(self.s.h[:known])) - gain
            found[f"Delta_{level}"] = max(h[known] + rows - gain, 0.0)
            n_l = found[f"Delta_{level}"] + own + max(contents - ln(5.0), 0.0)
            contents += found[f"Delta_{level}"]
            if level > 2:
                found[f"n_{level}"] = n_l - ln(2.0)
                rows += found[f"n_{level}"]
            else:
                found |= {"g": max(own, 0.0), "G": max(n_l - own, 0.0)}
        t = ln(4.0 * self.s.sigma[0] + 1)
        late = h[0] + room + ln(3.0)
        x = 0.0
        if self.ahead:
            x = 2 * late + found["g"] + rows
        elif self.flags[0]:
            late += t
        cached = max(0.0 if self.flags[0] else caches[1 + self.ahead], max(caches[2:]) - found["g"])
        found["n_1"] = late if self.ahead or self.flags[0] else 0.0
        if cached > 0:
            found["n_1"] = max(found["n_1"], cached + room + ln(3.0))
        y_1 = h[self.ahead] + x + found["g"] + rows + room + ln(3.0)
        found |= {"x": x, _LONGER: -inf, "t": t, "m'": y_1 + (1.0 if self.ahead else 0.2)}
        found["Delta_1"] = y_1 - x + ln(1.7)
        return found | {"m": found["m'"] + found["G"], "n_2": found["G"] + found["g"]}


def first_values(ahead: int, s: Sizes, choice: Choice[float]) -> float:
    """About the largest y_1 - 1 that (A) allows."""
    bits = class_bits(ahead, s, choice)
    if not ahead:
        # (A1) with x = 1: log(m'/(y-1)) > s/t
        return choice.part * exp(-(bits / choice.t) * LN2)
    balls = choice.contents[0] * choice.x
    return most_hit(choice.part, balls, None, balls * bits / choice.t)


def most_hit(bins: float, balls: float, groups: float | None, bits: float) -> float:
    """About the largest y - 1 with lambda(bins, balls, y; groups) >= bits."""
    ln_groups = 0.0 if groups is None else ln(groups)
    return balls * share_hit(ln(bins), ln(balls), ln_groups, ln(bits))


def spread_values(choice: Choice[float], level: int, asked: float, bits: float) -> float:
    """About the largest Y_l - 1 that (B_l) allows, with so many entries of z_l asked for."""
    bins = choice.values(level - 1)
    contents = choice.delta(level)
    groups = choice.G if level == 2 else None
    return most_hit(
        bins * choice.G if groups else bins, contents * asked, groups, contents * bits + 1
    )


def with_first(choice: Choice[N], y_1: N) -> Choice[N]:
    """The choices with Delta_1 = y_1: Theorem VI's contents of z_1 take one new value each."""
    return replace(choice, contents=(y_1, *choice.contents[1:]))


def _floats(choice: Choice[int]) -> Choice[float]:
    part, G, g, t, x, m, *contents = map(
        float,
        (choice.part, choice.G, choice.g, choice.t, choice.x, choice.m, *choice.contents),
    )
    n = tuple(map(float, choice.n))
    return Choice(m, n, part, G, g, t, x, tuple(contents), choice.flags)
