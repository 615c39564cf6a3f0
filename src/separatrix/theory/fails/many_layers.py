"""Theorems VI and VII: R reading layers fail L-SeqComp at a finite n, L >= R + 1 with bounded
layers anywhere, L >= R >= 3 with none before the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, product
from math import inf, isfinite, prod
from operator import mul
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks.seqcomp import MOST_STEPS
from separatrix.theory.arguments import Certified, N, Sizes, certainly, smaller
from separatrix.theory.base import listed
from separatrix.theory.fails.many_proof import Choice, Parameters, class_bits, conditions, prices
from separatrix.theory.fails.reading_layers import FAR, DepthTheorem, Found, sizes_of
from separatrix.theory.search.driver import Grid, Point, Search, at_size, nearby, shortest
from separatrix.theory.search.reals import LN2, dot, exp, ln, share_hit

MOST_READERS = 6
"""Beyond so many reading layers nothing is looked for: sizes have 300 digits here already."""
_SHALLOW = 3
"""Up to so many reading layers every flag is tried."""
_CLOSE = 0.1
"""Choices of flags whose lengths first differ by less (as logarithms) are both looked at."""
Flags = tuple[int, ...]


class ManyLayers(DepthTheorem[Parameters]):
    """Failure of L-SeqComp for any number of reading layers, over all choices of flags. What is
    found does not depend on the functions that lifting adds.
    """

    ahead: ClassVar[int]
    """0 for Theorem VI, 1 for VII, which knows more at each level by one stage."""
    least_steps = 3
    first_length = 1 << 20
    parameters = Parameters

    def inequalities(self, s: Sizes, p: Parameters) -> dict[str, Certified]:
        return conditions(self.ahead, s, p)

    def shortest(self, s: Sizes, steps: int = 0) -> Parameters | None:
        return _spread(self, s)

    def at_size(
        self, s: Sizes, size: tuple[int, ...], anywhere: Parameters | None
    ) -> Parameters | None:
        entries: Iterator[int] = accumulate(size, mul)
        # nothing much shorter than the shortest is to be found
        if anywhere is None or 10 * sum(entries) < 9 * anywhere.length():
            return None
        for flags in self.flags(s):
            here = RelaxedSearch(self.ahead, s, flags, size)
            found = at_size(replace(here, first=(here.point(anywhere),)), anywhere)
            if found is not None:
                return found
        return None

    def functions(self, readers: int) -> int:
        return max(self.least_steps, readers + 1 - self.ahead)

    def surely_silent(self, sizes: Sizes, size: tuple[int, ...]) -> bool:
        entries = prod(size)
        return least_entries(self.ahead, sizes, entries.bit_length()) > entries

    def flags(self, s: Sizes) -> list[Flags]:
        """What f_2, ..., f_L may be: where no cache is left to know, 0; in deep stacks f_2 alone is
        tried, since no other one was ever found to help there.
        """
        caches = s.sigma[1 + self.ahead :]
        levels = range(self.functions(s.readers) - 1)
        tried = len(levels) if s.readers <= _SHALLOW else 1
        return [*product(*((0, 1) if at < tried and any(caches[at:]) else (0,) for at in levels))]

    def silent_up_to(self, architecture: Architecture, steps: int, tokens: int) -> bool:
        readers = len(architecture.reading)
        if readers not in self.reading_layers or self.functions(readers) > steps:
            return False
        if self.sizes(architecture, FAR) is None:
            return False
        # caches grow with the prompt: those of the shortest one that is not ruled out count
        n = 0
        for _ in range(2):
            s = sizes_of(architecture, n)
            n = min(least_entries(self.ahead, s, tokens.bit_length()), tokens)
        return n == tokens

    def listed(self, parameters: Parameters) -> str:
        task = {"m": parameters.m}
        task |= {f"n_{level}": n for level, n in enumerate(parameters.branching, 1)}
        return listed(task)


@lru_cache(maxsize=768)
def _spread(argument: ManyLayers, s: Sizes) -> Parameters | None:
    """Those with many contents at every level."""
    if s.readers > MOST_READERS:
        return None
    L = argument.functions(s.readers)
    # the valleys of different flags may lie far apart
    valleys = sorted(
        (value, flags, point)
        for flags in argument.flags(s)
        for value, point in nearby(RelaxedSearch(argument.ahead, s, flags, coarse=True), L)
    )
    found = (
        shortest(RelaxedSearch(argument.ahead, s, flags, first=(point,)), L)
        for value, flags, point in valleys[:2]
        if value <= valleys[0][0] + _CLOSE
    )
    return min(filter(None, found), key=lambda parameters: parameters.length(), default=None)


_MOST = 16
"""Higher powers of an n_l, which is at least 1, are left out: deep stacks have enough of them."""


@lru_cache(maxsize=256)
def least_entries(ahead: int, s: Sizes, bits: int) -> int:
    """A number of entries of the last function, N_{L-1}, below which no parameters show failure if
    log N_{L-1} < `bits`; 0 where nothing is known, as where a layer reads fewer bits than that.

    lambda(V, b, y; c) <= b log(V/(y-1)): Lemma S bounds a probability, b balls may all fall into
    y-1 bins, and b! <= c^b ((b/c)!)^c. So (B_l) asks for U_l k_l > X_l with k_l = log(V_l/(Y_l-1)),
    (C) for the same with k_L = log N_{L-1}, and (A) for t k_1 > s with k_1 = log(m'/(y_1-1)); all
    k_l < `bits` <= h. As X_l >= h_j W no y is 1. Parts of the X_l, with H_l what a token of z_l
    reads, h what w reads, and y_1 <= m' and Delta_1 x, Y_l <= V_l and Delta_l U_l, n_2 for g G, say

      own    n_l k_{l+1} > Delta_l H_l (tokens of z_l),  g k_3 > H_2
      reads  Delta_l k_{l+1} > h n_{l+1} .. n_{L-1} (w's),  y_1 k_2 > h x g n_3 .. n_{L-1}
      late   n_1 x k_2 > h_1 t >= h_1 x (VII: tokens of z_1);  n_1 k_2 > min(sigma_1, h_1) (VI)
      (A)    t k_1 > h_1 g n_1 n_3 .. n_{L-1} (VII)

    All this put into N_{L-1} >= G m' n_1 g G n_3 .. n_{L-1}, in which m' >= y_1, leaves bits that
    are read over powers of the k_l.
    """
    if bits > min(s.h):
        return 0
    L = s.readers + 1 - ahead
    h = s.h[ahead]
    # how often n_2, n_3, .. stand in it: at first N_{L-1} > h x n_1 (n_2 .. n_{L-1})^2 / k_2
    power = [2] * (L + 1)
    least, divided = h, 1
    if ahead:
        # x > h_1^2 g n_3 .. n_{L-1} / (k_1 k_2), n_1 > h_1 / k_2 and g > H_2 / k_3
        least, divided = h * s.h[0] ** 3 * sum(s.h[:2]), 5
        power[3:] = [3] * (L - 2)
    elif s.sigma[1] > bits:
        # a smaller one asks for less than n_1 >= 1 does
        least, divided = h * min(s.sigma[1], s.h[0]), 2
    for level in range(2, L):
        known = level - 1 + ahead
        times = min(power[level], _MOST)
        least *= (sum(s.h[:known]) * s.h[known]) ** times
        divided += 2 * times
        power[level + 1 :] = [more + times for more in power[level + 1 :]]
    return least // bits**divided


class TheoremVII(ManyLayers):
    key = "VII"
    reading_layers = range(3, MOST_STEPS + 1)
    ahead = 1

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        before, first, *_ = architecture.groups(n)
        # layers between the first two, and whatever feeds the second, know the first's results
        return None if before.sigma or first.between else sizes_of(architecture, n)


class TheoremVI(ManyLayers):
    key = "VI"
    reading_layers = range(2, MOST_STEPS)
    ahead = 0

    def threshold(self, architecture: Architecture, steps: int) -> Found[Parameters] | None:
        """As for every theorem, but where Theorem VII speaks: it names shorter failing sizes."""
        readers = len(architecture.reading)
        if readers in TheoremVII.reading_layers and TheoremVII().sizes(architecture, FAR):
            return None
        return super().threshold(architecture, steps)


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
