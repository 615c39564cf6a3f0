"""Theorem V: two reading layers, bounded layers anywhere, fail L-SeqComp, L >= 3, at a finite n."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log2

import numpy as np

from separatrix.errors import SizeError, Undecided
from separatrix.numbers.logs import LogSign, log_difference
from separatrix.theory.search.descend import descend
from separatrix.theory.search.evolve import evolve, spread
from separatrix.theory.search.integers import Floats, least_factor, settle


@dataclass(frozen=True)
class Sizes:
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
class Parameters:
    """m, n_1, n_2 of the task and the proof's t, X, beta <= m, 2 <= r <= q <= N_1, g <= n_2, u_0
    < beta. Raises SizeError outside.
    """

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
        ranges = (
            min(self.m, self.n_1, self.n_2, self.X, self.t, self.beta, self.g) >= 1
            and max(self.X, self.t, self.beta) <= self.m
        )
        if not (
            ranges
            and 2 <= self.r <= self.q <= self.N_1
            and self.g <= self.n_2
            and 0 <= self.u_0 < self.beta
            and self.y >= 1
        ):
            raise SizeError(
                "Theorem V needs 1 <= t, X, beta <= m, 2 <= r <= q <= N_1, 1 <= g <= n_2, u_0 <"
                f" beta and y >= 1; these are {self}"
            )

    @property
    def N_1(self) -> int:
        return self.n_1 * self.m

    @property
    def y(self) -> int:
        """Blocks of a row with more than u_0 places in D: ceil((X - b u_0) / (beta - u_0)), b =
        ceil(m / beta).
        """
        blocks = -(-self.m // self.beta)
        return -(-(self.X - blocks * self.u_0) // (self.beta - self.u_0))

    @property
    def late(self) -> int:
        """Reads of a prefix by the tokens of z_1 and by z_0: m - t + X t + 1."""
        return self.m - self.t + self.X * self.t + 1

    def length(self, steps: int = 3) -> int:
        """Prompt tokens of the L-SeqComp, L = steps, that the argument (lifted for L > 3) shows
        failure on: m + N_1 + (L-2) N_2 + 2.
        """
        return self.m + self.N_1 + (steps - 2) * self.n_2 * self.N_1 + 2


def conditions(parameters: Parameters, sizes: Sizes) -> tuple[LogSign, LogSign, LogSign, LogSign]:
    """The inequalities, certified, left minus right side: (u_0 + 1) log(N_1/(q-1)) > sigma_0, so
    that u_0 is large enough; (a) X = 1 or t log(m/(X-1)) > sigma_0; (b) n_1 y log(q/(r-1)) > E +
    n_1 g h_1; (c) n_2 r log N_2 > sigma_0 + sigma_1 + open_1 + open_2 + [N_1 + (q-1) n_1 y beta +
    m-t+Xt+1] h_1 + n_2 (h_1 + h_2) + ceil(n_2/g) r sigma_2.
    """
    p = parameters
    s = sizes
    places = log_difference([(p.u_0 + 1, p.N_1), (-p.u_0 - 1, p.q - 1)], s.sigma_0)
    a = (
        LogSign(1, "integers", "holds: X = 1")
        if p.X == 1
        else log_difference([(p.t, p.m), (-p.t, p.X - 1)], s.sigma_0)
    )
    owed = s.open_1 + min(p.X * s.sigma_1, s.sigma_1 + p.late * s.h_1)
    b = log_difference([(p.n_1 * p.y, p.q), (-p.n_1 * p.y, p.r - 1)], owed + p.n_1 * p.g * s.h_1)
    reads = (p.N_1 + (p.q - 1) * p.n_1 * p.y * p.beta + p.late) * s.h_1 + p.n_2 * (s.h_1 + s.h_2)
    right = s.sigma_0 + s.sigma_1 + s.open_1 + s.open_2 + reads + -(-p.n_2 // p.g) * p.r * s.sigma_2
    return places, a, b, log_difference([(p.n_2 * p.r, p.n_2 * p.N_1)], right)


def holds(parameters: Parameters, sizes: Sizes) -> bool:
    """Whether the theorem shows failure with these parameters, certified; a tie that stays open
    counts as no.
    """
    try:
        return all(sign.positive for sign in conditions(parameters, sizes))
    except Undecided:
        return False


@dataclass(frozen=True)
class _Derived:
    """What follows from m, n_1, k = m - X, q, d = beta - u_0, g, as floats: X, the smallest t
    and u_0, the largest r, and what n_2 outweighs.
    """

    X: Floats
    t: Floats
    u_0: Floats
    r: Floats
    owed: Floats
    allowed: Floats


def _derive(points: Floats, s: Sizes) -> _Derived:
    """k and d, not X and beta, because X / m and beta / u_0 come so close to 1 that only the
    differences can be searched.
    """
    m, n_1, k, q, d, g = points
    X = m - k
    N_1 = m * n_1
    shrinks = -np.log1p(-(k + 1) / m) / np.log(2)  # log2(m / (X - 1))
    t = np.where((X > 1) & (s.sigma_0 > 0), np.floor(s.sigma_0 / shrinks) + 1, 1)
    u_0 = np.floor(s.sigma_0 / np.log2(N_1 / (q - 1))) if s.sigma_0 else np.zeros_like(m)
    beta = u_0 + d
    y = np.ceil((X - np.ceil(m / beta) * u_0) / d)
    allowed = (X >= 1) & (q <= N_1) & (beta <= m) & (t <= m) & (y >= 1)
    late = m - t + X * t + 1
    kept = s.open_1 + np.minimum(X * s.sigma_1, s.sigma_1 + late * s.h_1)
    r = np.minimum(np.ceil(q * np.exp2(-(kept / n_1 + g * s.h_1) / np.maximum(y, 1))), q)
    owed = (
        s.sigma_0
        + s.sigma_1
        + s.open_1
        + s.open_2
        + (N_1 + (q - 1) * n_1 * y * beta + late) * s.h_1
    )
    return _Derived(X, t, u_0, np.maximum(r, 2), np.maximum(owed, 0), allowed & (r >= 2))


def _branching(points: Floats, d: _Derived, s: Sizes, rounds: int = 1) -> Floats:
    """The smallest n_2 with (c), as floats: up from a lower bound that counts fractions of a
    group, until the number of groups stays.
    """
    N_1 = points[0] * points[1]
    g = points[5]
    cost = np.full_like(points[0], s.h_1 + s.h_2)
    n_2 = least_factor(N_1, d.r, cost + d.r * s.sigma_2 / g, d.owed)
    for _ in range(rounds if s.sigma_2 else 0):
        before = n_2
        groups = np.ceil(n_2 / g)
        n_2 = np.maximum(n_2, least_factor(N_1, d.r, cost, d.owed + groups * d.r * s.sigma_2))
        if np.array_equal(before, n_2):
            break
    return n_2


@lru_cache(maxsize=256)
def best(sizes: Sizes, *, steps: int = 3, quick: bool = False) -> Parameters | None:
    """The certified parameters with the shortest prompt found, or None; `quick` looks less far."""

    def length(points: Floats) -> Floats:
        with np.errstate(all="ignore"):
            d = _derive(points, sizes)
            n_2 = _branching(points, d, sizes)
            N_1 = points[0] * points[1]
            return np.where(
                d.allowed & (points[5] <= n_2),
                points[0] + N_1 + (steps - 2) * n_2 * N_1 + 2,
                np.inf,
            )

    s = sizes
    widest = 1e6 * (sizes.h_1 + sizes.h_2 + sizes.sigma_0 + sizes.sigma_1 + sizes.sigma_2)
    places = widest + 1e2 * s.sigma_0 * (s.h_1 + 1) * (
        s.sigma_2 + 1
    )  # m grows with u_0 y, so with sigma_0 and g h_1, and g with sigma_2
    rows = widest + 1e2 * s.sigma_0 * s.sigma_1
    low = (2, 1, 0, 2, 1, 1)
    high = (places, rows, places, widest, widest if s.sigma_0 else 1, widest if s.sigma_2 else 1)
    count, children, generations = (15_000, 1_500, 35) if quick else (40_000, 4_000, 60)
    fit = [
        evolve(length, start, low, high, children=children, generations=generations).T
        for start in _starts(sizes, high, count)
    ]
    fit = sorted(
        (points for points in fit if len(points)), key=lambda points: float(length(points[:1].T)[0])
    )
    tries = [point for points in fit for point in points[:3]]
    tries += [descend(length, points[0], low, high) for points in fit[: 0 if quick else 1]]
    shortest: Parameters | None = None
    for value, point in sorted(
        ((float(length(point[:, None])[0]), point) for point in tries), key=lambda pair: pair[0]
    ):
        if shortest is not None and value >= shortest.length(steps):
            break
        found = _certified(point, sizes)
        if found is not None and (shortest is None or found.length(steps) < shortest.length(steps)):
            shortest = found
    return shortest


def _certified(point: Floats, sizes: Sizes) -> Parameters | None:
    """The certified parameters at a point, with the smallest n_2 near its float estimate."""
    proof = _certified_proof(point, sizes)
    if proof is None:
        return None
    with np.errstate(all="ignore"):
        n_2 = float(_branching(point[:, None], _derive(point[:, None], sizes), sizes, rounds=60)[0])
    least = settle(n_2, lambda n: n >= proof.g and holds(replace(proof, n_2=n), sizes))
    return None if least is None else replace(proof, n_2=least)


def _starts(s: Sizes, high: tuple[float, ...], count: int) -> tuple[Floats, Floats]:
    """First points (m, n_1, k, q, d, g): some spread over the box, some where (a), (b) and the
    cost of a group in (c) balance.
    """
    rng = np.random.default_rng(0)
    m, n_1, q, g = (spread(1, high[axis], count, rng) for axis in (0, 1, 3, 5))
    narrow = -m * np.expm1(
        -np.log(2) * s.sigma_0 / (m * rng.uniform(0.3, 1, count))
    )  # (a) with t a share of m
    k = np.choose(np.arange(count) % 3, (np.zeros(count), narrow, m * spread(1e-7, 1, count, rng)))
    d = s.sigma_0 / np.log2(np.maximum(m * n_1 / q, 1.001)) * spread(1e-4, 10, count, rng) + 1
    wide = np.stack([m, n_1, k, q, d, g])
    g = s.sigma_2 / spread(3, 400, count, rng) + 1
    gain, share = (
        spread(0.05, 20, count, rng),
        spread(1e-2, 1e2, count, rng),
    )  # log(q / r), and E / n_1 over g h_1
    q = ((s.h_1 + s.h_2) / spread(3, 400, count, rng) + 2) * np.exp2(gain)
    u_0 = s.sigma_0 / spread(5, 200, count, rng)
    k = s.sigma_0 * spread(0.7, 3, count, rng)
    d = u_0 * spread(1e-3, 10, count, rng) + 1
    y = (1 + share) * (g * s.h_1 + 1) / gain
    m = (y * d + k) * (u_0 + d) / d + 1
    E = np.minimum(m * s.sigma_1, s.sigma_1 + m * (1 + (m if s.sigma_0 else 1)) * s.h_1)
    return wide, np.stack([m, E / (share * (g * s.h_1 + 1)) + 1, k, q, d, g])


def _positive(sign: Callable[[], LogSign]) -> bool:
    try:
        return sign().positive
    except Undecided:
        return False


def _certified_proof(point: Floats, s: Sizes) -> Parameters | None:
    """Parameters with n_2 = g at a point: the smallest u_0 and t and the largest r near their
    floats that `conditions` allow, certified.
    """
    with np.errstate(all="ignore"):
        derived = _derive(point[:, None], s)
    m, n_1, k, q, d, g = (int(value) for value in point)
    X = m - k
    N_1 = n_1 * m
    effects = settle(
        float(derived.u_0[0]) + 1,
        lambda u: _positive(lambda: log_difference([(u, N_1), (-u, q - 1)], s.sigma_0)),
    )
    t = (
        1
        if X == 1
        else settle(
            float(derived.t[0]),
            lambda t: _positive(lambda: log_difference([(t, m), (-t, X - 1)], s.sigma_0)),
        )
    )
    if effects is None or t is None:
        return None

    def proof(r: int) -> Parameters:
        return Parameters(
            m=m, n_1=n_1, n_2=g, X=X, t=t, beta=effects - 1 + d, q=q, r=r, g=g, u_0=effects - 1
        )

    try:
        proof(2)
    except SizeError:
        return None
    fewer = settle(
        q + 1 - float(derived.r[0]),
        lambda x: x < q and _positive(lambda: conditions(proof(q + 1 - x), s)[2]),
    )
    return None if fewer is None else proof(q + 1 - fewer)


@lru_cache(maxsize=256)
def best_at(sizes: Sizes, m: int, n_1: int, n_2: int, *, steps: int = 3) -> Parameters | None:
    """Certified parameters that show failure at this very task size, or None if none is found."""
    if n_1 * m < 2:
        return None
    shortest = best(sizes, steps=steps, quick=False)
    rng = np.random.default_rng(0)
    if shortest is None or (
        (shortest.m, shortest.n_1) == (m, n_1)
        and n_2 >= shortest.g
        and holds(replace(shortest, n_2=n_2), sizes)
    ):
        return shortest and replace(shortest, n_2=n_2)

    def shortfall(rest: Floats) -> Floats:
        points = np.concatenate(
            [np.full((1, rest.shape[1]), float(m)), np.full((1, rest.shape[1]), float(n_1)), rest]
        )
        with np.errstate(all="ignore"):
            d = _derive(points, sizes)
            right = (
                d.owed
                + n_2 * (sizes.h_1 + sizes.h_2)
                + np.ceil(n_2 / points[5]) * d.r * sizes.sigma_2
            )
            return np.where(d.allowed, right - n_2 * d.r * log2(n_2 * n_1 * m), np.inf)

    low = (0, 2, 1, 1)
    high = (
        float(m - 1),
        float(n_1 * m),
        float(m if sizes.sigma_0 else 1),
        float(n_2 if sizes.sigma_2 else 1),
    )
    start = np.stack(
        [
            spread(max(least, 0.5), max(top, 1), 60_000, rng)
            for least, top in zip(low, high, strict=True)
        ]
    )
    start[0, ::2] = 0
    rest = evolve(shortfall, start, low, high, children=6_000, generations=40)
    for part in (*rest.T[:3], *(descend(shortfall, part, low, high) for part in rest.T[:1])):
        proof = _certified_proof(np.array([m, n_1, *part], float), sizes)
        if proof is not None and holds(replace(proof, n_2=n_2), sizes):
            return replace(proof, n_2=n_2)
    return None
