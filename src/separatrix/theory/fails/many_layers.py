"""Theorems VI, VII and VII': R reading layers fail L-SeqComp at a finite n, L >= R + 1 with bounded
layers anywhere, L >= R >= 3 with none before the second; a closed form for three.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, product
from math import prod
from operator import mul
from typing import ClassVar

from separatrix.stacks.architecture import Architecture
from separatrix.tasks.seqcomp import MOST_STEPS
from separatrix.theory.arguments import Sizes
from separatrix.theory.base import listed
from separatrix.theory.fails.many_proof import Choice, Parameters, conditions, prices
from separatrix.theory.fails.many_relaxed import RelaxedSearch
from separatrix.theory.fails.reading_layers import FAR, DepthTheorem, Found, sizes_of
from separatrix.theory.inequalities import Certified
from separatrix.theory.search.driver import at_size, nearby, shortest

MOST_READERS = 6
"""Beyond so many reading layers nothing is looked for: sizes have 300 digits here already."""
_SHALLOW = 3
"""Up to so many reading layers every flag is tried."""
_COUNTED = 256
"""Beyond so many bits that w receives, answers of more bits are not written down."""
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
        found = filter(None, (_spread(self, s), _counted(self, s)))
        return min(found, key=lambda parameters: parameters.length(), default=None)

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


def closed_form(h: int) -> Parameters:
    """The corollary's parameters: three reading layers of at most h bits each, none bounded."""
    return Parameters(
        m=556 * h**6,
        n=(3 * h, 6 * h * h),
        part=278 * h**5,
        G=2 * h,
        g=3 * h,
        t=18 * h**3,
        x=18 * h**3,
        contents=(13 * h * h, 3 * h),
        y_1=95 * h**5,
        hit=(526 * h**8,),
        flags=(0, 0),
    )


def first_answer(sizes: Sizes) -> Parameters | None:
    """The closed form where it applies: three reading layers, and nothing else carries anything."""
    if sizes.readers != 3 or any((*sizes.sigma, *sizes.opened)):
        return None
    return closed_form(max(sizes.h))


@lru_cache(maxsize=768)
def _counted(argument: ManyLayers, s: Sizes) -> Parameters | None:
    """The proof with one content and one value at every level, certified: w receives fewer bits
    than the answer has. None where these are too many, or nothing is looked for.
    """
    L = argument.functions(s.readers)
    if not 2 + argument.ahead <= s.readers <= MOST_READERS:
        return None

    def choice(n_l: int) -> Choice[int]:
        ones = (1,) * (L - 1)
        g = n_l if L == 3 else 1
        return Choice(2, (*ones[1:], n_l), 1, 1, g, 1, 1, ones, (0,) * len(ones))

    # what is fixed is a + b n_{L-1}, and with 2^(b-1) + a + 1 = n_{L-1} more is asked for
    first, second = (prices(argument.ahead, s, choice(n))[-1] for n in (1, 2))
    b = second - first
    if b > _COUNTED:
        return None
    n_l = (1 << (b - 1)) + max(first - b, 0) + 1
    return RelaxedSearch(argument.ahead, s, (0,) * (L - 1)).certified(choice(n_l))


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


class TheoremVIIPrime(ManyLayers):
    key = "VII'"
    reading_layers = range(3, 4)
    ahead = 1

    def shortest(self, s: Sizes, steps: int = 0) -> Parameters | None:
        return first_answer(s)

    def at_size(
        self, s: Sizes, size: tuple[int, ...], anywhere: Parameters | None
    ) -> Parameters | None:
        return None

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        sizes = TheoremVII().sizes(architecture, n)
        return None if sizes is None or first_answer(sizes) is None else sizes

    def silent_up_to(self, architecture: Architecture, steps: int, tokens: int) -> bool:
        # its n takes no search
        return False
