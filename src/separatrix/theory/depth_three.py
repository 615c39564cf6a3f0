"""Theorem V: two reading layers, bounded layers anywhere, fail L-SeqComp, L >= 3, at a finite n."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from math import log2

import numpy as np

from separatrix.bits import LogSign, log_difference
from separatrix.errors import SizeError, Undecided
from separatrix.theory.search import Floats, evolve, least_factor, settle, spread


@dataclass(frozen=True)
class Sizes:
    """Bits: what one token reads of a prefix in each reading layer (h), bounded layers before (sigma_0), between and inside the first
    (sigma_1), after and inside the second (sigma_2); open_1 and open_2 are the open blocks of sparse reading layers, owed at each cut."""

    h_1: int
    h_2: int
    sigma_0: int
    sigma_1: int
    sigma_2: int
    open_1: int = 0
    open_2: int = 0


@dataclass(frozen=True)
class Parameters:
    """m, n_1, n_2 of the task and the proof's t, X, beta <= m, 2 <= r <= q <= N_1, g <= n_2, u_0 < beta. Raises SizeError outside."""

    m: int
    n_1: int
    n_2: int
    X: int
    t: int
    beta: int
    q: int
    r: int
    g: int
    u_0: int

    def __post_init__(self) -> None:
        ranges = min(self.m, self.n_1, self.n_2, self.X, self.t, self.beta, self.g) >= 1 and max(self.X, self.t, self.beta) <= self.m
        if not (ranges and 2 <= self.r <= self.q <= self.N_1 and self.g <= self.n_2 and 0 <= self.u_0 < self.beta and self.y >= 1):
            raise SizeError(
                f"Theorem V needs 1 <= t, X, beta <= m, 2 <= r <= q <= N_1, 1 <= g <= n_2, u_0 < beta and y >= 1; these are {self}"
            )

    @property
    def N_1(self) -> int:
        return self.n_1 * self.m

    @property
    def y(self) -> int:
        """Blocks of a row with more than u_0 places in D: ceil((X - b u_0) / (beta - u_0)), b = ceil(m / beta)."""
        blocks = -(-self.m // self.beta)
        return -(-(self.X - blocks * self.u_0) // (self.beta - self.u_0))

    @property
    def late(self) -> int:
        """Reads of a prefix by the tokens of z_1 and by z_0: m - t + X t + 1."""
        return self.m - self.t + self.X * self.t + 1

    def length(self, steps: int = 3) -> int:
        """Prompt tokens of the L-SeqComp, L = steps, that the argument (lifted for L > 3) shows failure on: m + N_1 + (L-2) N_2 + 2."""
        return self.m + self.N_1 + (steps - 2) * self.n_2 * self.N_1 + 2


def conditions(parameters: Parameters, sizes: Sizes) -> tuple[LogSign, LogSign, LogSign, LogSign]:
    """The inequalities, certified, left minus right side: (u_0 + 1) log(N_1/(q-1)) > sigma_0, so that u_0 is large enough; (a) X = 1 or
    t log(m/(X-1)) > sigma_0; (b) n_1 y log(q/(r-1)) > E + n_1 g h_1; (c) n_2 r log N_2 > sigma_0 + sigma_1 + open_1 + open_2 +
    [N_1 + (q-1) n_1 y beta + m-t+Xt+1] h_1 + n_2 (h_1 + h_2) + ceil(n_2/g) r sigma_2."""
    p, s = parameters, sizes
    places = log_difference([(p.u_0 + 1, p.N_1), (-p.u_0 - 1, p.q - 1)], s.sigma_0)
    a = LogSign(1, "integers", "holds: X = 1") if p.X == 1 else log_difference([(p.t, p.m), (-p.t, p.X - 1)], s.sigma_0)
    owed = s.open_1 + min(p.X * s.sigma_1, s.sigma_1 + p.late * s.h_1)
    b = log_difference([(p.n_1 * p.y, p.q), (-p.n_1 * p.y, p.r - 1)], owed + p.n_1 * p.g * s.h_1)
    reads = (p.N_1 + (p.q - 1) * p.n_1 * p.y * p.beta + p.late) * s.h_1 + p.n_2 * (s.h_1 + s.h_2)
    right = s.sigma_0 + s.sigma_1 + s.open_1 + s.open_2 + reads + -(-p.n_2 // p.g) * p.r * s.sigma_2
    return places, a, b, log_difference([(p.n_2 * p.r, p.n_2 * p.N_1)], right)


def holds(parameters: Parameters, sizes: Sizes) -> bool:
    """Whether the theorem shows failure with these parameters, certified; a tie that stays open counts as no."""
    try:
        return all(sign.positive for sign in conditions(parameters, sizes))
    except Undecided:
        return False


@dataclass(frozen=True)
class _Derived:
    """What follows from m, n_1, X, q, beta, g, as floats: the smallest t and u_0, the largest r, and what n_2 must outweigh."""

    t: Floats
    u_0: Floats
    r: Floats
    owed: Floats
    allowed: Floats


def _derive(points: Floats, s: Sizes) -> _Derived:
    m, n_1, X, q, beta, g = points
    N_1 = m * n_1
    t = np.floor(s.sigma_0 / np.log2(m / np.maximum(X - 1, 0.5))) + 1 if s.sigma_0 else np.ones_like(m)
    u_0 = np.floor(s.sigma_0 / np.log2(N_1 / (q - 1))) if s.sigma_0 else np.zeros_like(m)
    y = np.ceil((X - np.ceil(m / beta) * u_0) / np.maximum(beta - u_0, 1))
    allowed = (m >= X) & (q <= N_1) & (beta <= m) & (t <= m) & (beta > u_0) & (y >= 1)
    late = m - t + X * t + 1
    kept = s.open_1 + np.minimum(X * s.sigma_1, s.sigma_1 + late * s.h_1)
    r = np.minimum(np.ceil(q * np.exp2(-(kept / n_1 + g * s.h_1) / np.maximum(y, 1))), q)
    owed = s.sigma_0 + s.sigma_1 + s.open_1 + s.open_2 + (N_1 + (q - 1) * n_1 * y * beta + late) * s.h_1
    return _Derived(t, u_0, np.maximum(r, 2), owed, allowed & (r >= 2))


def _branching(points: Floats, d: _Derived, s: Sizes) -> Floats:
    """The smallest n_2 with (c), as floats."""
    N_1, g, cost = points[0] * points[1], points[5], np.full_like(points[0], s.h_1 + s.h_2)
    n_2 = least_factor(N_1, d.r, cost + d.r * s.sigma_2 / g, np.maximum(d.owed, 0))
    if not s.sigma_2:
        return n_2
    groups = np.ceil(n_2 / g)
    return np.maximum(least_factor(N_1, d.r, cost, np.maximum(d.owed, 0) + groups * d.r * s.sigma_2), (groups - 1) * g + 1)


@lru_cache(maxsize=256)
def best(sizes: Sizes, *, steps: int = 3, quick: bool = False) -> Parameters | None:
    """The certified parameters with the shortest prompt found, or None; `quick` looks less far."""

    def length(points: Floats) -> Floats:
        with np.errstate(all="ignore"):
            d = _derive(points, sizes)
            n_2, N_1 = _branching(points, d, sizes), points[0] * points[1]
            return np.where(d.allowed & (points[5] <= n_2), points[0] + N_1 + (steps - 2) * n_2 * N_1 + 2, np.inf)

    widest = 1e6 * (sizes.h_1 + sizes.h_2 + sizes.sigma_0 + sizes.sigma_1 + sizes.sigma_2)
    high = (widest, widest, widest, widest, widest if sizes.sigma_0 else 1, widest if sizes.sigma_2 else 1)
    count, children, generations = (60_000, 4_000, 40) if quick else (200_000, 20_000, 70)
    low = (2, 1, 1, 2, 1, 1)
    points = evolve(length, _starts(sizes, widest, count), low, high, children=children, generations=generations)
    if not points.size and not quick and (smaller := best(Sizes(*(bits // 8 for bits in astuple(sizes))), steps=steps)) is not None:
        points = evolve(length, _larger(smaller), low, high, children=children)
    found = []
    for point in points.T[:6]:
        column = point[:, None]
        with np.errstate(all="ignore"):
            d = _derive(column, sizes)
            n_2 = float(_branching(column, d, sizes)[0])
        for near in _candidates(point, d, sizes, max(int(n_2), int(point[5]))):
            least = settle(n_2, lambda n, p=near: n >= p.g and holds(replace(p, n_2=n), sizes))
            if least is not None:
                found.append(replace(near, n_2=least))
                break
    return min(found, key=lambda p: p.length(steps), default=None)


def _starts(sizes: Sizes, widest: float, count: int) -> Floats:
    """First points (m, n_1, X, q, beta, g): X = m or near it, beta = 1 or somewhat above u_0, the rest spread."""
    rng = np.random.default_rng(0)
    m, n_1, q = (spread(low, top, count, rng) for low, top in ((2, widest), (1, widest), (2, widest)))
    X = m * (1 - np.where(rng.random(count) < 0.5, 0, spread(1e-7, 1, count, rng)))
    with np.errstate(all="ignore"):
        u_0 = np.where(q < m * n_1, sizes.sigma_0 / np.log2(m * n_1 / (q - 1)), 0) if sizes.sigma_0 else np.zeros(count)
    beta = u_0 * (1 + spread(1e-4, 10, count, rng)) + 1
    return np.stack([m, n_1, X, q, beta, spread(1, widest, count, rng)])


def _larger(smaller: Parameters, count: int = 200_000) -> Floats:
    """First points from the parameters for smaller sizes, scaled up; m and X together, so that X/m stays."""
    rng = np.random.default_rng(0)
    factors = spread(1, 1e4, 6 * count, rng).reshape(6, count)
    factors[2] = factors[0]
    p = smaller
    return np.array([[p.m], [p.n_1], [p.X], [p.q], [p.beta], [p.g]], float) * factors


def _candidates(point: Floats, d: _Derived, sizes: Sizes, n_2: int) -> list[Parameters]:
    """The derived integers at a point, and the same with the rounding of t, u_0 and r undone by one."""
    m, n_1, X, q, beta, g = (int(value) for value in point)
    t, u_0, r = (int(value[0]) for value in (d.t, d.u_0, d.r))
    found = []
    for contents in (r + 1, r, r - 1):
        for more_t, more_u in ((0, 0), (1, 0), (0, 1), (1, 1)):
            try:
                found.append(Parameters(m=m, n_1=n_1, n_2=n_2, X=X, t=t + more_t, beta=beta, q=q, r=contents, g=g, u_0=u_0 + more_u))
            except (SizeError, ZeroDivisionError):
                continue
    return found


@lru_cache(maxsize=256)
def best_at(sizes: Sizes, m: int, n_1: int, n_2: int, *, steps: int = 3) -> Parameters | None:
    """Certified parameters that show failure at this very task size, or None if none is found."""
    if n_1 * m < 2:
        return None
    shortest, rng = best(sizes, steps=steps), np.random.default_rng(0)
    if shortest is None or ((shortest.m, shortest.n_1) == (m, n_1) and n_2 >= shortest.g and holds(replace(shortest, n_2=n_2), sizes)):
        return shortest and replace(shortest, n_2=n_2)

    def shortfall(rest: Floats) -> Floats:
        points = np.concatenate([np.full((1, rest.shape[1]), float(m)), np.full((1, rest.shape[1]), float(n_1)), rest])
        with np.errstate(all="ignore"):
            d = _derive(points, sizes)
            right = d.owed + n_2 * (sizes.h_1 + sizes.h_2) + np.ceil(n_2 / points[5]) * d.r * sizes.sigma_2
            return np.where(d.allowed, right - n_2 * d.r * log2(n_2 * n_1 * m), np.inf)

    high = (float(m), float(n_1 * m), float(m if sizes.sigma_0 else 1), float(n_2 if sizes.sigma_2 else 1))
    start = np.stack([spread(low, top, 60_000, rng) for low, top in zip((1, 2, 1, 1), high, strict=True)])
    start[0, ::2] = m
    rest = evolve(shortfall, start, (1, 2, 1, 1), high, children=6_000, generations=40)
    for X, q, beta, g in rest.T[:3]:
        point = np.array([m, n_1, X, q, beta, g], float)
        with np.errstate(all="ignore"):
            d = _derive(point[:, None], sizes)
        for candidate in _candidates(point, d, sizes, n_2):
            if holds(candidate, sizes):
                return candidate
    return None
