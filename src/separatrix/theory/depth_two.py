"""Theorem IV: two reading layers with no bounded layer before or between fail L-SeqComp, L >= 2,
at a finite n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from separatrix.errors import SizeError, Undecided
from separatrix.numbers.logs import LogSign, log_difference
from separatrix.theory.search.descend import descend
from separatrix.theory.search.evolve import evolve, spread
from separatrix.theory.search.integers import Floats, least_factor, settle


@dataclass(frozen=True)
class Sizes:
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
class Parameters:
    """m, n_1 of the task and r, q, t, g of the proof: 2 <= r <= q <= m, 1 <= t <= m, 1 <= g <=
    n_1. Raises SizeError outside.
    """

    m: int
    n_1: int
    r: int
    q: int
    t: int
    g: int

    def __post_init__(self) -> None:
        if not (
            2 <= self.r <= self.q <= self.m and 1 <= self.t <= self.m and 1 <= self.g <= self.n_1
        ):
            raise SizeError(
                "Theorem IV needs 2 <= r <= q <= m, 1 <= t <= m and 1 <= g <= n_1; these are"
                f" {self}"
            )

    @property
    def groups(self) -> int:
        """ceil(n_1 / g): groups of values of w."""
        return -(-self.n_1 // self.g)

    def length(self, steps: int = 2) -> int:
        """Prompt tokens of the L-SeqComp, L = steps, that the argument (lifted for L > 2) shows
        failure on: m + (L-1) N_1 + 2.
        """
        return self.m + (steps - 1) * self.n_1 * self.m + 2


def conditions(parameters: Parameters, sizes: Sizes) -> tuple[LogSign, LogSign]:
    """Both inequalities, certified, left minus right side: (a) t log(q/(r-1)) > sigma_1 + g h_1 and
    (b) n_1 r log N_1 > sigma_1 + open_2 + n_1 (h_1 + h_2) + (qt + min(t, ceil(n_1/g))) h_1 +
    ceil(n_1/g) r sigma_2.
    """
    p = parameters
    s = sizes
    a = log_difference([(p.t, p.q), (-p.t, p.r - 1)], s.sigma_1 + p.g * s.h_1)
    right = (
        s.sigma_1
        + s.open_2
        + p.n_1 * (s.h_1 + s.h_2)
        + (p.q * p.t + min(p.t, p.groups)) * s.h_1
        + p.groups * p.r * s.sigma_2
    )
    return a, log_difference([(p.n_1 * p.r, p.n_1 * p.m)], right)


def holds(parameters: Parameters, sizes: Sizes) -> bool:
    """Whether the theorem shows failure with these parameters, certified; a tie that stays open
    counts as no.
    """
    try:
        return all(sign.positive for sign in conditions(parameters, sizes))
    except Undecided:
        return False


def _most_contents(q: Floats, t: Floats, g: Floats, sizes: Sizes) -> Floats:
    """The largest r with (a), as floats."""
    return np.minimum(np.ceil(q * np.exp2(-(sizes.sigma_1 + g * sizes.h_1) / t)), q)


def _branching(q: Floats, t: Floats, g: Floats, r: Floats, sizes: Sizes, rounds: int = 2) -> Floats:
    """The smallest n_1 with (b), as floats: up from a lower bound that counts fractions of a
    group, until the number of groups stays.
    """
    m = np.maximum(q, t)
    cost = np.full_like(q, sizes.h_1 + sizes.h_2)
    n_1 = np.ones_like(q)
    groups = np.ones_like(q)
    owed = sizes.sigma_1 + sizes.open_2 + q * t * sizes.h_1
    for _ in range(2):
        n_1 = least_factor(
            m, r, cost + r * sizes.sigma_2 / g, owed + np.minimum(t, groups) * sizes.h_1
        )
        groups = np.ceil(n_1 / g)
    for _ in range(rounds):
        n_1 = np.maximum(
            n_1,
            least_factor(
                m, r, cost, owed + np.minimum(t, groups) * sizes.h_1 + groups * r * sizes.sigma_2
            ),
        )
        before = groups
        groups = np.ceil(n_1 / g)
        if np.array_equal(before, groups):
            break
    return n_1


@lru_cache(maxsize=256)
def best(sizes: Sizes, *, steps: int = 2, quick: bool = False) -> Parameters | None:
    """The certified parameters with the shortest prompt found, or None; `quick` looks less far.
    m = max(q, t), r and n_1 as (a) and (b) allow.
    """

    def length(points: Floats) -> Floats:
        q, t, g = points
        with np.errstate(all="ignore"):
            m = np.maximum(q, t)
            r = _most_contents(q, t, g, sizes)
            n_1 = _branching(q, t, g, np.maximum(r, 2), sizes)
            return np.where((r >= 2) & (g <= n_1), m + (steps - 1) * n_1 * m + 2, np.inf)

    groups = 1e4 + 1e3 * (sizes.h_1 + sizes.h_2 + sizes.sigma_1 + sizes.sigma_2)
    places = (
        groups + 10.0 * sizes.h_1 * sizes.sigma_2
    )  # g grows with sigma_2, and q and t with g h_1
    high = (places, places, groups if sizes.sigma_2 else 1)
    count, children, generations = (20_000, 1_000, 30) if quick else (40_000, 2_500, 50)
    points = evolve(
        length, _starts(high, count), (2, 1, 1), high, children=children, generations=generations
    )
    tries = [
        *points.T[:4],
        *(descend(length, point, (2, 1, 1), high) for point in points.T[: 0 if quick else 2]),
    ]
    shortest: Parameters | None = None
    for value, point in sorted(
        ((float(length(point[:, None])[0]), point) for point in tries), key=lambda pair: pair[0]
    ):
        if shortest is not None and value >= shortest.length(steps):
            break
        found = _certified_at(point, sizes)
        if found is not None and (shortest is None or found.length(steps) < shortest.length(steps)):
            shortest = found
    return shortest


def _starts(high: tuple[float, float, float], count: int) -> Floats:
    """First points (q, t, g), half of them with q = t."""
    rng = np.random.default_rng(0)
    q, t, g = (spread(low, top, count, rng) for low, top in zip((2, 1, 1), high, strict=True))
    t[::2] = q[::2]
    return np.stack([q, t, g])


def _certified_at(point: Floats, sizes: Sizes) -> Parameters | None:
    """The certified parameters at a point (q, t, g)."""
    q, t, g = point
    with np.errstate(all="ignore"):
        r = _most_contents(q, t, g, sizes)
        n_1 = float(_branching(*(np.array([x]) for x in (q, t, g, r)), sizes=sizes, rounds=60)[0])
    return _certified(n_1, int(r), int(q), int(t), int(g), sizes)


def _certified(n_1: float, r: int, q: int, t: int, g: int, sizes: Sizes) -> Parameters | None:
    """The certified parameters with the largest r and then the smallest n_1 near their float
    estimates.
    """
    contents = _certified_contents(r, q, t, g, sizes)
    if contents is None:
        return None
    start = Parameters(m=max(q, t), n_1=max(g, int(n_1)), r=contents, q=q, t=t, g=g)
    least = settle(n_1, lambda n: n >= g and holds(replace(start, n_1=n), sizes))
    return None if least is None else replace(start, n_1=least)


def _certified_contents(r: int, q: int, t: int, g: int, sizes: Sizes) -> int | None:
    """The largest r with (a) near its float estimate, certified; None if it is below 2."""
    bits = sizes.sigma_1 + g * sizes.h_1
    fewer = settle(
        q + 1 - r,
        lambda x: x < q and _positive(lambda: log_difference([(t, q), (-t, q - x)], bits)),
    )
    return None if fewer is None else q + 1 - fewer


def _positive(sign: Callable[[], LogSign]) -> bool:
    try:
        return sign().positive
    except Undecided:
        return False


@lru_cache(maxsize=256)
def best_at(sizes: Sizes, m: int, n_1: int, *, steps: int = 2) -> Parameters | None:
    """Certified parameters that show failure at this very task size, or None if none is found."""
    if m < 2:
        return None
    shortest = best(sizes, steps=steps, quick=False)
    if shortest is None or (
        shortest.m == m and n_1 >= shortest.g and holds(replace(shortest, n_1=n_1), sizes)
    ):
        return shortest and replace(shortest, n_1=n_1)

    def shortfall(points: Floats) -> Floats:
        q, t, g = points
        with np.errstate(all="ignore"):
            r = _most_contents(q, t, g, sizes)
            groups = np.ceil(n_1 / g)
            right = (
                sizes.sigma_1
                + sizes.open_2
                + n_1 * (sizes.h_1 + sizes.h_2)
                + (q * t + np.minimum(t, groups)) * sizes.h_1
            )
            return np.where(
                r >= 2,
                right + groups * r * sizes.sigma_2 - n_1 * r * np.log2(float(n_1 * m)),
                np.inf,
            )

    high = (float(m), float(m), float(n_1 if sizes.sigma_2 else 1))
    points = evolve(
        shortfall, _starts(high, 30_000), (2, 1, 1), high, children=4_000, generations=40
    )
    for q, t, g in points.T[:3]:
        contents = _certified_contents(
            int(_most_contents(q, t, g, sizes)), int(q), int(t), int(g), sizes
        )
        if contents is not None:
            found = Parameters(m=m, n_1=n_1, r=contents, q=int(q), t=int(t), g=int(g))
            if holds(found, sizes):
                return found
    return None
