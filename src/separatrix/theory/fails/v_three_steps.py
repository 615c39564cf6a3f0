"""Theorem V: two reading layers, bounded layers anywhere, fail L-SeqComp, L >= 3, at a finite n."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from separatrix.theory.arguments import (
    Certified,
    Counting,
    Numbers,
    Pigeonhole,
    ProofParameters,
    Sizes,
    Solver,
    ceil_ratio,
    smaller,
)
from separatrix.theory.search.driver import CountingTheorem, Grid, Point, spread
from separatrix.theory.search.reals import LN2, exp, expm1, log2

_STARTS = 700
_AT_SIZE = 4_000


@dataclass(frozen=True)
class Parameters(ProofParameters):
    """m, n_1, n_2 of the task and the proof's choices; u_0 places of a block may lose values."""

    n_1: int
    n_2: int
    X: int
    t: int
    beta: int
    q: int
    r: int
    g: int
    u_0: int
    needs: ClassVar[str] = (
        "Theorem V needs 1 <= t, X, beta <= m, 2 <= r <= q <= N_1, 1 <= g <= n_2, u_0 < beta and"
        " y >= 1"
    )

    @staticmethod
    def fits(p: Any) -> bool:
        return (
            min(p.m, p.n_1, p.n_2, p.X, p.t, p.beta, p.g) >= 1
            and max(p.X, p.t, p.beta) <= p.m
            and 2 <= p.r <= p.q <= p.n_1 * p.m
            and p.g <= p.n_2
            and 0 <= p.u_0 < p.beta
            and rich_blocks(p) >= 1
        )


def rich_blocks(x: Any) -> Any:
    """y = ceil((X - b u_0) / (beta - u_0)), b = ceil(m / beta): blocks of a row with more than u_0
    places in D.
    """
    # y blocks have more than u_0 places in D, the others at most u_0: X <= y beta + (b-y) u_0
    blocks = ceil_ratio(x.m, x.beta)
    return ceil_ratio(x.X - blocks * x.u_0, x.beta - x.u_0)


class TheoremV(CountingTheorem[Parameters]):
    """Points (m, n_1, k, q, d, g), k = m - X and d = beta - u_0, or (k, q, d, g) at a task's size;
    u_0 and t are the smallest and r the largest that the other inequalities allow.

    k and d, not X and beta, because X / m and beta / u_0 come so close to 1 that only the
    differences can be searched.
    """

    key = "V"
    reading_layers = range(2, 3)
    parameters = Parameters
    free = ("m", "n_1", "k", "q", "d", "g")
    least_steps = 3
    last = "n_2"

    def poor_places(self, x: Numbers) -> Pigeonhole[Any]:
        """(u_0 + 1) log(N_1/(q-1)) > sigma_0: at most u_0 places of a block lose so many values."""
        return Pigeonhole(places=x.u_0 + 1, values=x.N_1, kept=x.q, bits=x.sigma_0)

    def first_contents(self, x: Numbers) -> Pigeonhole[Any]:
        """(a) X = 1 or t log(m/(X-1)) > sigma_0."""
        return Pigeonhole(places=x.t, values=x.m, kept=x.X, bits=x.sigma_0, gap=x.k)

    def row_contents(self, x: Numbers) -> Pigeonhole[Any]:
        """(b) n_1 y log(q/(r-1)) > E + n_1 g h_1, E = min{X sigma_1, sigma_1 + late h_1} and the
        open block of the first reading layer.
        """
        # the cache before w is fixed for each of X values of i, or at the cut with later reads
        E = x.open_1 + smaller(x.X * x.sigma_1, x.sigma_1 + x.late * x.h_1)
        # (b) times n_1, so that every term is an integer
        return Pigeonhole(places=x.n_1 * x.y, values=x.q, kept=x.r, bits=E + x.n_1 * x.g * x.h_1)

    def counting(self, x: Numbers) -> Counting[Any]:
        """(c) n_2 r log N_2 > sigma_0 + sigma_1 + open_1 + open_2 + [N_1 + (q-1) n_1 y beta + late]
        h_1 + n_2 (h_1 + h_2) + ceil(n_2/g) r sigma_2.
        """
        caches = x.sigma_0 + x.sigma_1 + x.open_1 + x.open_2
        return Counting(
            x=x.n_2,
            r=x.r,
            base=x.N_1,
            each=x.h_1 + x.h_2,
            # z_2's reads: one content of every block, q - 1 more of n_1 y blocks of beta tokens
            owed=caches + (x.N_1 + (x.q - 1) * x.n_1 * x.y * x.beta + x.late) * x.h_1,
            g=x.g,
            caches=x.sigma_2,
        )

    def before(self, x: Numbers) -> Mapping[str, Certified]:
        poor, first, rows = self.poor_places(x), self.first_contents(x), self.row_contents(x)
        return {"u_0": poor, "a": first, "b": rows}

    def complete(self, x: Numbers) -> None:
        x.N_1 = x.m * x.n_1
        x.k = x.m - x.X
        self._follow(x)

    def _follow(self, x: Numbers) -> None:
        x.y = rich_blocks(x)
        # reads of a prefix by the tokens of z_1 and by z_0
        x.late = x.m - x.t + x.X * x.t + 1

    def tokens(self, x: Numbers) -> Any:
        return x.m + x.N_1

    def choose(self, x: Numbers, solver: Solver) -> bool:
        x.N_1 = x.m * x.n_1
        x.k = solver.at_most(x.k, x.m - 1)
        x.q = solver.at_most(x.q, x.N_1)
        x.X = x.m - x.k
        if x.X < 1 or x.q > x.N_1:
            return False
        x.t, x.u_0, x.r = 1, 0, 2
        x.t = solver.places(self.first_contents(x))
        x.u_0 = solver.places(self.poor_places(x)) - 1
        x.beta = x.u_0 + x.d
        if x.t > x.m or x.beta > x.m:
            return False
        self._follow(x)
        if x.y < 1:
            return False
        x.r = solver.kept(self.row_contents(x))
        return True

    def grid(self, s: Numbers, size: tuple[int, ...] | None) -> Grid:
        if size is not None:
            m, n_1, n_2 = size
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

    def starts(
        self, s: Numbers, size: tuple[int, ...] | None, grid: Grid
    ) -> Iterable[Sequence[float]]:
        rng = Random(0)
        if size is not None:
            # k may be 0, which has no logarithm
            bounds = [(max(a, 0.5), max(b, 1.0)) for a, b in zip(grid.low, grid.high, strict=True)]
            for number in range(_AT_SIZE):
                k, *others = (spread(a, b, rng) for a, b in bounds)
                yield k * (number % 2), *others
            return
        for number in range(_STARTS):
            yield _spread(s, grid.high, number, rng)
            yield _balanced(s, rng)

    def surely_silent(self, sizes: Sizes, size: tuple[int, ...]) -> bool:
        """r <= N_1; and by (b) (q-1) n_1 y > c r (sigma_1 + n_1 g h_1), c = e ln(2) / 4 > 0.471, so
        that n_2 log N_2 exceeds c beta h_1 (sigma_1 + n_1 g h_1) + n_2 sigma_2 / g.
        """
        (h_1, h_2), (sigma_0, sigma_1, sigma_2), (m, n_1, n_2) = sizes.h, sizes.sigma, size
        bits = (n_2 * n_1 * m).bit_length()
        # beta > u_0 >= sigma_0 / log N_1, rounded down
        read = h_1 * (sigma_0 // (n_1 * m).bit_length() + 1)
        few = max(sigma_2, read * (sigma_1 + n_1 * h_1) * 471 // 1000)
        least = 1884 * n_2 * sigma_2 * read * n_1 * h_1
        counted = n_2 * bits <= few or 1000 * (n_2 * bits) ** 2 <= least
        return counted or n_1 * m * bits <= h_1 + h_2


def _spread(s: Numbers, high: Point, number: int, rng: Random) -> Point:
    m, n_1, q, g = (spread(1, high[axis], rng) for axis in (0, 1, 3, 5))
    # (a) with t a share of m
    narrow = -m * expm1(-LN2 * s.sigma_0 / (m * (0.3 + 0.7 * rng.random())))
    k = (0.0, narrow, m * spread(1e-7, 1, rng))[number % 3]
    u_0 = s.sigma_0 / log2(max(m * n_1 / q, 1.001))
    return m, n_1, k, q, u_0 * spread(1e-4, 10, rng) + 1, g


def _balanced(s: Numbers, rng: Random) -> Point:
    """A first point where (a), (b) and the cost of a group in (c) balance."""
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
