"""Theorem III: one reading layer fails L-SeqComp, L >= 2, at a finite n."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import log2

import numpy as np

from separatrix.errors import SizeError, Undecided
from separatrix.numbers.logs import LogSign, log_difference
from separatrix.theory.search.descend import descend
from separatrix.theory.search.integers import least_factor


@dataclass(frozen=True)
class Sizes:
    """Bits: what one token reads of a prefix (h), bounded layers before (sigma_0) and after
    (sigma_1) the reading layer, bounded heads in it counted after; and the open block of a sparse
    reading layer, owed once where the prompt is cut.
    """

    h: int
    sigma_0: int
    sigma_1: int
    open_block: int = 0

    @property
    def first(self) -> int:
        """What the first cut costs: sigma_0 and the open block."""
        return self.sigma_0 + self.open_block


@dataclass(frozen=True)
class Spelling:
    """How a task is written: e_1 tokens per z_1 entry, s_0 prompt tokens after z_1 before w, s_w
    from w on, and K answers with different first tokens (None: one token per answer).
    """

    e_1: int = 1
    s_0: int = 1
    s_w: int = 1
    K: int | None = None


PLAIN = Spelling()
_WIDEST = 1e12


@dataclass(frozen=True)
class Parameters:
    """m, n_1 of the task and r, t of the proof: 1 <= r <= m, 1 <= t <= m. Raises SizeError
    outside.
    """

    m: int
    n_1: int
    r: int
    t: int

    def __post_init__(self) -> None:
        if not (1 <= self.r <= self.m and 1 <= self.t <= self.m and self.n_1 >= 1):
            raise SizeError(
                f"Theorem III needs 1 <= r <= m, 1 <= t <= m and n_1 >= 1; these are {self}"
            )

    def length(self, steps: int = 2) -> int:
        """Prompt tokens of the L-SeqComp, L = steps, that the argument (lifted for L > 2) shows
        failure on: m + (L-1) N_1 + 2.
        """
        return self.m + (steps - 1) * self.n_1 * self.m + 2


def conditions(
    parameters: Parameters, sizes: Sizes, spelling: Spelling = PLAIN
) -> tuple[LogSign, LogSign]:
    """Both inequalities, certified: (a) t log(m/(r-1)) - sigma_0 (1 bit when r = 1), (b) left
    minus right side.
    """
    m = parameters.m
    n_1 = parameters.n_1
    r = parameters.r
    t = parameters.t
    a = (
        LogSign(1, "integers", "holds: r = 1")
        if r == 1
        else log_difference([(t, m), (-t, r - 1)], sizes.sigma_0)
    )
    values = n_1 * m if spelling.K is None else min(spelling.K, n_1 * m)
    return a, log_difference([(n_1 * r, values)], _right(parameters, sizes, spelling))


def _right(parameters: Parameters, sizes: Sizes, spelling: Spelling) -> int:
    read = (parameters.r * parameters.t * spelling.e_1 + spelling.s_0) * sizes.h
    after = min(parameters.r * sizes.sigma_1, sizes.sigma_1 + read)
    return sizes.first + spelling.s_w * parameters.n_1 * sizes.h + after


def holds(parameters: Parameters, sizes: Sizes, spelling: Spelling = PLAIN) -> bool:
    """Whether the theorem shows failure with these parameters, certified; a tie that stays open
    counts as no.
    """
    try:
        return all(sign.positive for sign in conditions(parameters, sizes, spelling))
    except Undecided:
        return False


@lru_cache(maxsize=256)
def best(sizes: Sizes, *, steps: int = 2, spelling: Spelling = PLAIN) -> Parameters | None:
    """The parameters with the shortest prompt found, certified; None if none is found up to 10^30
    tokens.

    A grid over (m, r), geometric at first, is narrowed around its best cells until neighbouring
    integers are compared; t is the smallest that (a) allows and n_1 the smallest that (b) allows.
    """
    ms = np.unique(np.round(np.geomspace(2, _WIDEST, 240)))
    shares = np.unique(
        np.concatenate([np.geomspace(1e-9, 1, 120), 1 - np.geomspace(1e-6, 0.5, 30)])
    )
    grid_m, grid_r = np.broadcast_arrays(
        ms[:, None], np.clip(np.round(ms[:, None] * shares), 1, ms[:, None])
    )
    candidates = _best(grid_m, grid_r, sizes, steps, spelling)
    width = 1.13
    for _ in range(14):
        finer: list[tuple[float, float, float]] = []
        for _, m, r in candidates[:6]:
            near_m = _around(m, width)
            near_r = np.concatenate([_around(r, width), near_m])
            grid_m, grid_r = np.broadcast_arrays(
                near_m[:, None], np.minimum(near_r[None, :], near_m[:, None])
            )
            finer += _best(grid_m, grid_r, sizes, steps, spelling)
        candidates = sorted(set(candidates[:6] + finer))
        width = 1 + (width - 1) * 0.5
    points = [np.array([m, r]) for _, m, r in candidates[:6]]
    if points:
        points.insert(
            0,
            descend(
                lambda p: _lengths(p[0], p[1], sizes, steps, spelling),
                points[0],
                (2, 1),
                (_WIDEST, _WIDEST),
            ),
        )
    found = [_certified(int(m), int(r), sizes, spelling) for m, r in points]
    return min((p for p in found if p is not None), key=lambda p: p.length(steps), default=None)


def _around(centre: float, width: float) -> np.ndarray:
    low = max(1.0, np.floor(centre / width) - 3)
    high = np.ceil(centre * width) + 3
    return (
        np.unique(np.round(np.linspace(low, high, 60)))
        if high - low > 60
        else np.arange(low, high + 1)
    )


def _lengths(
    m: np.ndarray, r: np.ndarray, sizes: Sizes, steps: int, spelling: Spelling
) -> np.ndarray:
    """Prompt lengths with the smallest t and n_1 that (a) and (b) allow, as floats; infinite
    where there are none.
    """
    with np.errstate(all="ignore"):
        t = np.where(
            r <= 1, 1, np.floor(sizes.sigma_0 / np.log2(m / np.maximum(r - 1, 1e-300))) + 1
        )
        t = np.where((r > 1) & (sizes.sigma_0 == 0), 1, t)
        length = m + (steps - 1) * _branching(m, r, t, sizes, spelling) * m + 2
        return np.where((r <= m) & (t <= m) & (m >= 2), length, np.inf)


def _best(
    m: np.ndarray, r: np.ndarray, sizes: Sizes, steps: int, spelling: Spelling
) -> list[tuple[float, float, float]]:
    """(prompt length, m, r) of the best cells of a grid, best first."""
    m = m.ravel()
    r = r.ravel()
    length = _lengths(m, r, sizes, steps, spelling)
    order = np.argsort(length)[:24]
    return [(float(length[i]), float(m[i]), float(r[i])) for i in order if length[i] < 1e30]


def _branching(
    m: np.ndarray, r: np.ndarray, t: np.ndarray, sizes: Sizes, spelling: Spelling
) -> np.ndarray:
    """The smallest n_1 with (b), as floats; infinite where none is found."""
    after = np.minimum(
        r * sizes.sigma_1, sizes.sigma_1 + (r * t * spelling.e_1 + spelling.s_0) * sizes.h
    )

    owed = sizes.first + after
    with np.errstate(all="ignore"):
        n_1 = least_factor(m, r, np.full_like(m, spelling.s_w * sizes.h), owed)
        if spelling.K is None:
            return n_1
        capped = (
            r * np.log2(spelling.K) - spelling.s_w * sizes.h
        )  # gained per value of w once n_1 m >= K
        past = np.maximum(np.floor(owed / capped) + 1, np.ceil(spelling.K / m))
        return np.where(n_1 * m <= spelling.K, n_1, np.where(capped > 0, past, np.inf))


def _certified(m: int, r: int, sizes: Sizes, spelling: Spelling) -> Parameters | None:
    """The certified parameters at (m, r) with the smallest t, and the smallest n_1 around its
    float estimate.
    """
    t = 1 if r == 1 or sizes.sigma_0 == 0 else int(sizes.sigma_0 / log2(m / (r - 1))) - 1
    t = max(1, t)
    while r > 1 and t <= m and not _leads(t, m, r, sizes.sigma_0):
        t += 1
    if t > m:
        return None
    estimate = _branching(
        *(np.array([float(x)]) for x in (m, r, t)), sizes=sizes, spelling=spelling
    )[0]
    if not np.isfinite(estimate):
        return None
    n_1 = max(1, int(estimate) - 2)
    for candidate in range(n_1, n_1 + 8):
        found = Parameters(m=m, n_1=candidate, r=r, t=t)
        if holds(found, sizes, spelling):
            return found
    return None


def _leads(t: int, m: int, r: int, sigma_0: int) -> bool:
    """(a), certified; a tie that stays open counts as no."""
    try:
        return log_difference([(t, m), (-t, r - 1)], sigma_0).positive
    except Undecided:
        return False


@lru_cache(maxsize=256)
def best_at(
    sizes: Sizes, m: int, n_1: int, *, steps: int = 2, spelling: Spelling = PLAIN
) -> Parameters | None:
    """Parameters that show failure at this very task size, certified, or None if none is found."""
    shortest = best(sizes, steps=steps, spelling=spelling)
    if (
        shortest is not None
        and shortest.m == m
        and holds(replace(shortest, n_1=n_1), sizes, spelling)
    ):
        return replace(shortest, n_1=n_1)
    widest = 1 + int(m * 2.0 ** (-sizes.sigma_0 / m))  # the largest r with t <= m
    near = [np.arange(max(1, x - 500), min(m, x + 500) + 1) for x in (m, min(m, widest))]
    r = np.unique(np.concatenate([np.round(np.geomspace(1, m, 4000)), *near])).clip(1, m)
    best_r = r[np.argsort(-_gap_at(r, sizes, m, n_1, spelling)[1])[:1]]
    r = np.unique(
        np.concatenate([r, np.round(np.linspace(best_r[0] / 1.01, min(m, best_r[0] * 1.01), 4000))])
    ).clip(1, m)
    t, gap = _gap_at(r, sizes, m, n_1, spelling)
    for i in np.argsort(-gap)[:3]:
        for extra in (0, 1):
            if np.isfinite(gap[i]) and int(t[i]) + extra <= m:
                found = Parameters(m=m, n_1=n_1, r=int(r[i]), t=int(t[i]) + extra)
                if holds(found, sizes, spelling):
                    return found
    return None


def _gap_at(
    r: np.ndarray, sizes: Sizes, m: int, n_1: int, spelling: Spelling
) -> tuple[np.ndarray, np.ndarray]:
    """The smallest t with (a), and left minus right side of (b), as floats; -infinity where t >
    m.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = np.where(
            (r <= 1) | (sizes.sigma_0 == 0),
            1,
            np.floor(sizes.sigma_0 / np.log2(m / np.maximum(r - 1, 1e-300))) + 1,
        )
        after = np.minimum(
            r * sizes.sigma_1, sizes.sigma_1 + (r * t * spelling.e_1 + spelling.s_0) * sizes.h
        )
        values = n_1 * m if spelling.K is None else min(spelling.K, n_1 * m)
        gap = n_1 * (r * log2(values) - spelling.s_w * sizes.h) - sizes.first - after
        return t, np.where(t <= m, gap, -np.inf)
