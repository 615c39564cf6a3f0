"""Theorem V: two reading layers with bounded layers anywhere fail L-SeqComp, L >= 3, at a finite
n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.theory.base import REAL_NUMBERS, readers
from separatrix.theory.fails.iii_one_reading_layer import TheoremIII
from separatrix.theory.fails.reading_layers import (
    IN_ORDER,
    CacheSizes,
    DrivenTheorem,
    Found,
    open_bits,
)
from separatrix.theory.inequalities import Counting, Inequality, N, Pigeonhole, ceil_ratio, smaller
from separatrix.theory.search.driver import CountingSearch, Derived, ProofParameters
from separatrix.theory.search.evolve import Grid, Point, spread
from separatrix.theory.search.reals import LN2, exp, expm1, log2

_STARTS = 700
_AT_SIZE = 4_000


@dataclass(frozen=True)
class Sizes(CacheSizes):
    """Bits: what one token reads of a prefix in each reading layer (h), bounded layers before
    (sigma_0), between and inside the first (sigma_1), after and inside the second (sigma_2); open_1
    and open_2 are the open blocks of sparse reading layers, owed at each cut.
    """

    h_1: int
    h_2: int
    sigma_0: int
    sigma_1: int
    sigma_2: int
    open_1: int = 0
    open_2: int = 0


@dataclass(frozen=True)
class Parameters(ProofParameters):
    """m, n_1, n_2 of the task and the proof's t, X, beta <= m, 2 <= r <= q <= N_1, g <= n_2, u_0
    < beta. Raises SizeError outside.
    """

    n_2: int
    X: int
    t: int
    beta: int
    q: int
    r: int
    g: int
    u_0: int

    def __post_init__(self) -> None:
        positive = min(self.m, self.n_1, self.n_2, self.X, self.t, self.beta, self.g) >= 1
        within_m = max(self.X, self.t, self.beta) <= self.m
        self.within(
            positive
            and within_m
            and 2 <= self.r <= self.q <= self.N_1
            and self.g <= self.n_2
            and 0 <= self.u_0 < self.beta
            and self.y >= 1,
            "Theorem V needs 1 <= t, X, beta <= m, 2 <= r <= q <= N_1, 1 <= g <= n_2, u_0 < beta"
            " and y >= 1",
        )

    @property
    def branching(self) -> tuple[int, ...]:
        return self.n_1, self.n_2

    @property
    def least_last(self) -> int:
        return self.g

    @property
    def N_1(self) -> int:
        return self.n_1 * self.m

    @property
    def y(self) -> int:
        return rich_blocks(self.m, self.X, self.beta, self.u_0)

    @property
    def late(self) -> int:
        return late_reads(self.m, self.X, self.t)


def rich_blocks(m: N, X: N, beta: N, u_0: N) -> N:
    """y = ceil((X - b u_0) / (beta - u_0)), b = ceil(m / beta): blocks of a row with more than u_0
    places in D.
    """
    # y blocks have more than u_0 places in D, the others at most u_0: X <= y beta + (b-y) u_0
    blocks = ceil_ratio(m, beta)
    return ceil_ratio(X - blocks * u_0, beta - u_0)


def late_reads(m: N, X: N, t: N) -> N:
    """m - t + Xt + 1: reads of a prefix by the tokens of z_1 and by z_0."""
    return m - t + X * t + 1


def poor_places(s: Sizes, N_1: N, q: N, u_0: N) -> Pigeonhole[N]:
    """(u_0 + 1) log(N_1/(q-1)) > sigma_0: at most u_0 places of a block lose so many values."""
    return Pigeonhole(places=u_0 + 1, values=N_1, kept=q, bits=s.sigma_0)


def first_contents(s: Sizes, m: N, X: N, t: N, lost: N | None = None) -> Pigeonhole[N]:
    """(a) X = 1 or t log(m/(X-1)) > sigma_0; for floats, `lost` = m - X."""
    return Pigeonhole(places=t, values=m, kept=X, bits=s.sigma_0, gap=lost)


def row_contents(s: Sizes, n_1: N, X: N, late: N, y: N, q: N, r: N, g: N) -> Pigeonhole[N]:
    """(b) n_1 y log(q/(r-1)) > E + n_1 g h_1, E = min{X sigma_1, sigma_1 + late h_1} and the open
    block of the first reading layer.
    """
    # the cache before w is fixed for each of X values of i, or at the cut with later reads
    E = s.open_1 + smaller(X * s.sigma_1, s.sigma_1 + late * s.h_1)
    # (b) times n_1, so that every term is an integer
    return Pigeonhole(places=n_1 * y, values=q, kept=r, bits=E + n_1 * g * s.h_1)


def answers(
    s: Sizes, N_1: N, n_1: N, n_2: N, late: N, y: N, beta: N, q: N, r: N, g: N
) -> Counting[N]:
    """(c) n_2 r log N_2 > sigma_0 + sigma_1 + open_1 + open_2 + [N_1 + (q-1) n_1 y beta + late] h_1
    + n_2 (h_1 + h_2) + ceil(n_2/g) r sigma_2.
    """
    caches = s.sigma_0 + s.sigma_1 + s.open_1 + s.open_2
    return Counting(
        x=n_2,
        r=r,
        base=N_1,
        each=s.h_1 + s.h_2,
        # z_2's reads: one content of every block, q - 1 more of n_1 y blocks of beta tokens
        owed=caches + (N_1 + (q - 1) * n_1 * y * beta + late) * s.h_1,
        g=g,
        caches=s.sigma_2,
    )


@dataclass(frozen=True)
class ThreeStepsSearch(CountingSearch[Parameters]):
    """Points (m, n_1, k, q, d, g), k = m - X and d = beta - u_0, or (k, q, d, g) at a task's size;
    u_0 and t are the smallest and r the largest that the other inequalities allow.

    k and d, not X and beta, because X / m and beta / u_0 come so close to 1 that only the
    differences can be searched.
    """

    s: Sizes
    size: tuple[int, ...] | None = None
    least_steps: ClassVar[int] = 3

    def grid(self) -> Grid:
        s = self.s
        if self.size is not None:
            m, n_1, n_2 = self.size
            d = float(m if s.sigma_0 else 1)
            high = float(m - 1), float(n_1 * m), d, float(n_2 if s.sigma_2 else 1)
            return Grid((0, 2, 1, 1), high)
        widest = 1e6 * (s.h_1 + s.h_2 + s.sigma_0 + s.sigma_1 + s.sigma_2)
        # m grows with u_0 y, so with sigma_0 and g h_1, and g with sigma_2
        places = widest + 1e2 * s.sigma_0 * (s.h_1 + 1) * (s.sigma_2 + 1)
        rows = widest + 1e2 * s.sigma_0 * s.sigma_1
        d = widest if s.sigma_0 else 1.0
        g = widest if s.sigma_2 else 1.0
        return Grid((2, 1, 0, 2, 1, 1), (places, rows, places, widest, d, g))

    def derive(self, point: Point) -> Derived | None:
        s = self.s
        k, q, d, g = point[-4:]
        m, n_1, n_2 = map(float, self.size) if self.size is not None else (*point[:2], 1.0)
        N_1 = m * n_1
        X = m - k
        if X < 1 or q > N_1:
            return None
        t = first_contents(s, m, X, 1.0, lost=k).least_places()
        u_0 = poor_places(s, N_1, q, 1.0).least_places() - 1
        beta = u_0 + d
        if t > m or beta > m:
            return None
        y = rich_blocks(m, X, beta, u_0)
        if y < 1:
            return None
        late = late_reads(m, X, t)
        r = row_contents(s, n_1, X, late, y, q, 1.0, g).most_kept()
        if r < 2:
            return None
        return Derived(answers(s, N_1, n_1, n_2, late, y, beta, q, r, g), m + N_1)

    def starts(self) -> Iterable[Sequence[float]]:
        rng = Random(0)
        if self.size is not None:
            grid = self.grid()
            # k may be 0, which has no logarithm
            bounds = [(max(a, 0.5), max(b, 1.0)) for a, b in zip(grid.low, grid.high, strict=True)]
            for number in range(_AT_SIZE):
                k, *others = (spread(a, b, rng) for a, b in bounds)
                yield k * (number % 2), *others
            return
        for number in range(_STARTS):
            yield self._spread(number, rng)
            yield self._balanced(rng)

    def _spread(self, number: int, rng: Random) -> Point:
        """A first point somewhere in the box."""
        sigma_0 = self.s.sigma_0
        high = self.grid().high
        m, n_1, q, g = (spread(1, high[axis], rng) for axis in (0, 1, 3, 5))
        # (a) with t a share of m
        narrow = -m * expm1(-LN2 * sigma_0 / (m * (0.3 + 0.7 * rng.random())))
        k = (0.0, narrow, m * spread(1e-7, 1, rng))[number % 3]
        u_0 = sigma_0 / log2(max(m * n_1 / q, 1.001))
        return m, n_1, k, q, u_0 * spread(1e-4, 10, rng) + 1, g

    def _balanced(self, rng: Random) -> Point:
        """A first point where (a), (b) and the cost of a group in (c) balance."""
        s = self.s
        g = s.sigma_2 / spread(3, 400, rng) + 1
        gain = spread(0.05, 20, rng)  # log(q / r)
        share = spread(1e-2, 1e2, rng)  # E / n_1 over g h_1
        q = ((s.h_1 + s.h_2) / spread(3, 400, rng) + 2) * exp(gain * LN2)
        u_0 = s.sigma_0 / spread(5, 200, rng)
        k = s.sigma_0 * spread(0.7, 3, rng)
        d = u_0 * spread(1e-3, 10, rng) + 1
        y = (1 + share) * (g * s.h_1 + 1) / gain
        m = (y * d + k) * (u_0 + d) / d + 1
        E = min(m * s.sigma_1, s.sigma_1 + m * (1 + (m if s.sigma_0 else 1)) * s.h_1)
        return m, E / (share * (g * s.h_1 + 1)) + 1, k, q, d, g

    def proof(self, point: Point) -> Parameters | None:
        s = self.s
        k, q, d, g = (int(value) for value in point[-4:])
        m, n_1 = (int(value) for value in (point if self.size is None else self.size)[:2])
        # floats next to large integers may be above them
        X = max(m - k, 1)
        q = min(q, n_1 * m)
        places = poor_places(s, n_1 * m, q, 0).certified_places()
        t = first_contents(s, m, X, 1).certified_places()
        if places is None or t is None:
            return None
        u_0 = places - 1
        try:
            least = Parameters(m=m, n_1=n_1, n_2=g, X=X, t=t, beta=u_0 + d, q=q, r=2, g=g, u_0=u_0)
        except SizeError:
            return None
        r = row_contents(s, n_1, X, least.late, least.y, q, 2, g).certified_kept()
        return None if r is None else replace(least, r=r)

    def inequalities(self, parameters: Parameters) -> tuple[Inequality, ...]:
        """That u_0 is large enough; (a), (b) and (c)."""
        s = self.s
        p = parameters
        return (
            poor_places(s, p.N_1, p.q, p.u_0),
            first_contents(s, p.m, p.X, p.t),
            row_contents(s, p.n_1, p.X, p.late, p.y, p.q, p.r, p.g),
            answers(s, p.N_1, p.n_1, p.n_2, p.late, p.y, p.beta, p.q, p.r, p.g),
        )


class TheoremV(DrivenTheorem[Sizes, Parameters]):
    key = "V"
    title = "two reading layers fail L-SeqComp, L >= 3, at finite n, bounded layers anywhere"
    statement = (
        "Two reading layers of h_1 and h_2 bits, bounded groups of sigma_0 bits before, sigma_1"
        " between and inside the first, sigma_2 after and inside the second. With 1 <= t, X, beta"
        " <= m, 2 <= r <= q <= N_1, g <= n_2, u_0 = floor(sigma_0/log(N_1/(q-1))) < beta, b ="
        " ceil(m/beta), y = ceil((X - b u_0)/(beta - u_0)) >= 1 and E = min{X sigma_1, sigma_1 +"
        " (m-t+Xt+1) h_1} they fail 3-SeqComp if (a) X = 1 or t log(m/(X-1)) > sigma_0, (b) y"
        " log(q/(r-1)) > E/n_1 + g h_1 and (c) n_2 r log N_2 > sigma_0 + sigma_1 + [N_1 + (q-1) n_1"
        " y beta + m-t+Xt+1] h_1 + n_2 (h_1 + h_2) + ceil(n_2/g) r sigma_2. Lifting extends it to"
        " every L >= 3."
    )
    premises = (
        "two reading layers, or one, with a first one that reads nothing before it",
        "accumulators hold the declared bits",
        IN_ORDER,
        REAL_NUMBERS,
    )
    source = "theory.md, section 5, Theorem V and Lifting"
    proof_sketch = (
        "Blocks of each row of z_2 keep q contents at one effective place under the most frequent"
        " caches; z_1 keeps X contents under one. Fix the layer-1 reads; some row of z_2 stays rich"
        " though the middle cache is fixed; groups of values of w_2 then see r alike contents, w's"
        " second query knows w only, and z_3 is counted as in III."
    )
    reading_layers = range(1, 3)
    least_steps = ThreeStepsSearch.least_steps
    parameters = Parameters

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        """Of one reading layer only what Theorem III leaves open: where z_1 has few entries, z_2
        takes its part here.
        """
        if len(architecture.reading) == 1:
            of_one = TheoremIII().judge(architecture, task)
            if of_one is not None and of_one.status == "FAILS":
                return None
        return super().judge(architecture, task)

    def threshold(self, architecture: Architecture, steps: int) -> Found[Sizes, Parameters] | None:
        # Theorem III names failing sizes of one reading layer
        return super().threshold(architecture, steps) if len(architecture.reading) == 2 else None

    def sizes(self, architecture: Architecture, n: int) -> Sizes:
        if len(architecture.reading) == 1:
            between, after = architecture.groups(n)
            opened = open_bits(architecture, architecture.reading[0], n)
            return Sizes(
                h_1=0,
                h_2=readers(architecture)[0],
                sigma_0=0,
                sigma_1=between.sigma,
                sigma_2=after.sigma - opened,
                open_2=opened,
            )
        before, between, after = architecture.groups(n)
        open_1, open_2 = (open_bits(architecture, index, n) for index in architecture.reading)
        h_1, h_2 = readers(architecture)
        return Sizes(
            h_1=h_1,
            h_2=h_2,
            sigma_0=before.sigma,
            # groups count open blocks, which are owed once per cut and not per content
            sigma_1=between.sigma - open_1,
            sigma_2=after.sigma - open_2,
            open_1=open_1,
            open_2=open_2,
        )

    def surely_silent(self, sizes: Sizes, size: tuple[int, ...]) -> bool:
        """r <= N_1; and by (b) (q-1) n_1 y > c r (sigma_1 + n_1 g h_1), c = e ln(2) / 4 > 0.471, so
        that n_2 log N_2 exceeds c beta h_1 (sigma_1 + n_1 g h_1) + n_2 sigma_2 / g.
        """
        s, (m, n_1, n_2) = sizes, size
        bits = (n_2 * n_1 * m).bit_length()
        # beta > u_0 >= sigma_0 / log N_1, rounded down
        read = s.h_1 * (s.sigma_0 // (n_1 * m).bit_length() + 1)
        few = max(s.sigma_2, read * (s.sigma_1 + n_1 * s.h_1) * 471 // 1000)
        least = 1884 * n_2 * s.sigma_2 * read * n_1 * s.h_1
        counted = n_2 * bits <= few or 1000 * (n_2 * bits) ** 2 <= least
        return counted or n_1 * m * bits <= s.h_1 + s.h_2

    def search(self, sizes: Sizes, size: tuple[int, ...] | None = None) -> ThreeStepsSearch:
        return ThreeStepsSearch(sizes, size)
