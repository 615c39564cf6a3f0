"""Theorem IV: two reading layers with no bounded layer before or between fail L-SeqComp, L >= 2,
at a finite n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from separatrix.stacks.architecture import Architecture
from separatrix.theory.base import REAL_NUMBERS, readers
from separatrix.theory.fails.reading_layers import IN_ORDER, CacheSizes, DrivenTheorem, open_bits
from separatrix.theory.inequalities import Counting, Inequality, N, Pigeonhole
from separatrix.theory.search.driver import CountingSearch, Derived, ProofParameters
from separatrix.theory.search.evolve import Grid, Point, spread

_STARTS = 1_000


@dataclass(frozen=True)
class Sizes(CacheSizes):
    """Bits: what one token reads of a prefix in each reading layer (h), bounded heads and open
    blocks inside the first (sigma_1), bounded heads inside the second and bounded layers after it
    (sigma_2), and the open block of a sparse second layer, owed once at the cut (open_2).
    """

    h_1: int
    h_2: int
    sigma_1: int
    sigma_2: int
    open_2: int = 0


@dataclass(frozen=True)
class Parameters(ProofParameters):
    """m, n_1 of the task and r, q, t, g of the proof: 2 <= r <= q <= m, 1 <= t <= m, 1 <= g <=
    n_1. Raises SizeError outside.
    """

    r: int
    q: int
    t: int
    g: int

    def __post_init__(self) -> None:
        places = 2 <= self.r <= self.q <= self.m and 1 <= self.t <= self.m
        self.within(
            places and 1 <= self.g <= self.n_1,
            "Theorem IV needs 2 <= r <= q <= m, 1 <= t <= m and 1 <= g <= n_1",
        )

    @property
    def least_last(self) -> int:
        return self.g


def contents(s: Sizes, r: N, q: N, t: N, g: N) -> Pigeonhole[N]:
    """(a) t log(q/(r-1)) > sigma_1 + g h_1."""
    # a class agrees in the layer-1 caches after B and the accumulators of a group's g queries
    return Pigeonhole(places=t, values=q, kept=r, bits=s.sigma_1 + g * s.h_1)


def answers(s: Sizes, m: N, n_1: N, r: N, q: N, t: N, g: N) -> Counting[N]:
    """(b) n_1 r log N_1 > sigma_1 + open_2 + n_1 (h_1 + h_2) + (qt + min(t, ceil(n_1/g))) h_1 +
    ceil(n_1/g) r sigma_2.
    """
    return Counting(
        x=n_1,
        r=r,
        base=m,
        each=s.h_1 + s.h_2,
        # layer-1 queries know token and place only: q values at each of t places
        owed=s.sigma_1 + s.open_2 + q * t * s.h_1,
        g=g,
        caches=s.sigma_2,
        # z_0 stands for one place per group, and there are t places
        few=t,
        more=s.h_1,
    )


@dataclass(frozen=True)
class TwoReadingsSearch(CountingSearch[Parameters]):
    """Points (q, t, g); m = max(q, t) where it is free, and r is the largest that (a) allows."""

    s: Sizes
    size: tuple[int, ...] | None = None
    least_steps: ClassVar[int] = 2
    rounds: ClassVar[int] = 2

    def grid(self) -> Grid:
        s = self.s
        if self.size is not None:
            m, n_1 = self.size
            return Grid((2, 1, 1), (float(m), float(m), float(n_1 if s.sigma_2 else 1)))
        groups = 1e4 + 1e3 * (s.h_1 + s.h_2 + s.sigma_1 + s.sigma_2)
        # g grows with sigma_2, and q and t with g h_1
        places = groups + 10.0 * s.h_1 * s.sigma_2
        return Grid((2, 1, 1), (places, places, groups if s.sigma_2 else 1.0))

    def derive(self, point: Point) -> Derived | None:
        q, t, g = point
        m, n_1 = map(float, self.size) if self.size is not None else (max(q, t), 1.0)
        r = contents(self.s, 1.0, q, t, g).most_kept()
        return None if r < 2 else Derived(answers(self.s, m, n_1, r, q, t, g), m)

    def starts(self) -> Iterable[Sequence[float]]:
        """Points spread over the box, half of them with q = t."""
        rng = Random(0)
        grid = self.grid()
        for number in range(_STARTS):
            q, t, g = (spread(*ends, rng) for ends in zip(grid.low, grid.high, strict=True))
            # m = max(q, t): the smaller may rise to the larger without more entries in z_1
            yield q, t if number % 2 else q, g

    def proof(self, point: Point) -> Parameters | None:
        q, t, g = (int(value) for value in point)
        m = max(q, t)
        if self.size is not None:
            m = self.size[0]
            # floats next to a large m may be above it
            q = min(q, m)
            t = min(t, m)
        r = contents(self.s, 2, q, t, g).certified_kept()
        return None if r is None else Parameters(m=m, n_1=g, r=r, q=q, t=t, g=g)

    def inequalities(self, parameters: Parameters) -> tuple[Inequality, ...]:
        p = parameters
        return (
            contents(self.s, p.r, p.q, p.t, p.g),
            answers(self.s, p.m, p.n_1, p.r, p.q, p.t, p.g),
        )


class TheoremIV(DrivenTheorem[Sizes, Parameters]):
    key = "IV"
    title = "two reading layers fail L-SeqComp, L >= 2, at finite n"
    statement = (
        "Two reading layers of h_1 and h_2 bits, bounded heads of sigma_1 bits inside the first,"
        " bounded heads inside the second and layers after it of sigma_2 bits, none before or"
        " between. With 2 <= r <= q <= m, t <= m, g <= n_1 they fail 2-SeqComp if (a) t"
        " log(q/(r-1)) > sigma_1 + g h_1 and (b) n_1 r log N_1 > sigma_1 + n_1 (h_1 + h_2) + (qt +"
        " min(t, ceil(n_1/g))) h_1 + ceil(n_1/g) r sigma_2. Lifting extends it to every L >= 2."
    )
    premises = (
        "exactly two reading layers",
        "no bounded layer before or between them",
        "accumulators hold the declared bits",
        IN_ORDER,
        REAL_NUMBERS,
    )
    source = "theory.md, section 5, Theorem IV and Lifting"
    proof_sketch = (
        "Layer-1 queries depend on token and place only: fix all reads of z_2. Cut the values of w"
        " into groups of g; by (a) for each group r contents of z_1 differ at one place and look"
        " alike to it. Then w's second query knows w only; fix its read and the last caches and"
        " count as in III."
    )
    reading_layers = range(2, 3)
    least_steps = TwoReadingsSearch.least_steps
    parameters = Parameters

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        before, between, after = architecture.groups(n)
        if before.sigma or between.between:
            return None
        h_1, h_2 = readers(architecture)
        opened = open_bits(architecture, architecture.reading[1], n)
        return Sizes(
            h_1=h_1,
            h_2=h_2,
            sigma_1=between.inside,
            # the group counts the open block, which is owed once and not per content
            sigma_2=after.sigma - opened,
            open_2=opened,
        )

    def surely_silent(self, sizes: Sizes, size: tuple[int, ...]) -> bool:
        """r <= m; and by (a) q t > c r (sigma_1 + g h_1), c = e ln(2) / 2 > 0.942, so that n_1 log
        N_1 exceeds c h_1 (sigma_1 + g h_1) + n_1 sigma_2 / g, whose least is at some g.
        """
        s, (m, n_1) = sizes, size
        bits = (n_1 * m).bit_length()
        few = max(s.sigma_2, s.h_1 * (s.sigma_1 + s.h_1) * 942 // 1000)
        least = 3768 * n_1 * s.sigma_2 * s.h_1**2
        counted = n_1 * bits <= few or 1000 * (n_1 * bits) ** 2 <= least
        return counted or m * bits <= s.h_1 + s.h_2

    def search(self, sizes: Sizes, size: tuple[int, ...] | None = None) -> TwoReadingsSearch:
        return TwoReadingsSearch(sizes, size)
