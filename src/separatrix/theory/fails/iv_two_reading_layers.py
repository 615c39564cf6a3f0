"""Theorem IV: two reading layers, none bounded before or between, fail L-SeqComp, L >= 2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar

from separatrix.stacks.architecture import Architecture
from separatrix.theory.arguments import (
    Certified,
    Counting,
    Numbers,
    Pigeonhole,
    ProofParameters,
    Sizes,
    Solver,
)
from separatrix.theory.fails.reading_layers import sizes_of
from separatrix.theory.search.driver import CountingTheorem, Grid, spread

_STARTS = 1_000


@dataclass(frozen=True)
class Parameters(ProofParameters):
    """m, n_1 of the task and r, q, t, g of the proof. Raises SizeError out of range."""

    n_1: int
    r: int
    q: int
    t: int
    g: int
    needs: ClassVar[str] = "Theorem IV needs 2 <= r <= q <= m, 1 <= t <= m and 1 <= g <= n_1"

    @staticmethod
    def fits(p: Any) -> bool:
        return 2 <= p.r <= p.q <= p.m and 1 <= p.t <= p.m and 1 <= p.g <= p.n_1


class TheoremIV(CountingTheorem[Parameters]):
    """Points (q, t, g); m = max(q, t) where it is free, and r is the largest that (a) allows."""

    key = "IV"
    reading_layers = range(2, 3)
    # the open block of the first counts with the heads beside it
    names: ClassVar = {"sigma_0": "", "open_1": ""}
    parameters = Parameters
    free = ("q", "t", "g")
    rounds = 2

    def contents(self, x: Numbers) -> Pigeonhole[Any]:
        """(a) t log(q/(r-1)) > sigma_1 + g h_1."""
        # a class agrees in the layer-1 caches after B and the accumulators of a group's g queries
        return Pigeonhole(places=x.t, values=x.q, kept=x.r, bits=x.sigma_1 + x.g * x.h_1)

    def counting(self, x: Numbers) -> Counting[Any]:
        """(b) n_1 r log N_1 > sigma_1 + open_2 + n_1 (h_1 + h_2) + (qt + min(t, ceil(n_1/g))) h_1 +
        ceil(n_1/g) r sigma_2.
        """
        return Counting(
            x=x.n_1,
            r=x.r,
            base=x.m,
            each=x.h_1 + x.h_2,
            # layer-1 queries know token and place only: q values at each of t places
            owed=x.sigma_1 + x.open_2 + x.q * x.t * x.h_1,
            g=x.g,
            caches=x.sigma_2,
            # z_0 stands for one place per group, and there are t places
            few=x.t,
            more=x.h_1,
        )

    def before(self, x: Numbers) -> Mapping[str, Certified]:
        return {"a": self.contents(x)}

    def choose(self, x: Numbers, solver: Solver) -> bool:
        if not hasattr(x, "m"):
            x.m = max(x.q, x.t)
        x.q = solver.at_most(x.q, x.m)
        x.t = solver.at_most(x.t, x.m)
        x.r = 2
        x.r = solver.kept(self.contents(x))
        return True

    def grid(self, s: Numbers, size: tuple[int, ...] | None) -> Grid:
        if size is not None:
            m, n_1 = size
            return Grid((2, 1, 1), (float(m), float(m), float(n_1 if s.sigma_2 else 1)))
        groups = 1e4 + 1e3 * (s.h_1 + s.h_2 + s.sigma_1 + s.sigma_2)
        # g grows with sigma_2, and q and t with g h_1
        places = groups + 10.0 * s.h_1 * s.sigma_2
        return Grid((2, 1, 1), (places, places, groups if s.sigma_2 else 1.0))

    def starts(
        self, s: Numbers, size: tuple[int, ...] | None, grid: Grid
    ) -> Iterable[Sequence[float]]:
        """Points spread over the box, half of them with q = t."""
        rng = Random(0)
        for number in range(_STARTS):
            q, t, g = (spread(*ends, rng) for ends in zip(grid.low, grid.high, strict=True))
            # m = max(q, t): the smaller may rise to the larger without more entries in z_1
            yield q, t if number % 2 else q, g

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        before, first, _ = architecture.groups(n)
        if before.sigma or first.between:
            return None
        s = sizes_of(architecture, n)
        return replace(s, sigma=(0, first.inside, s.sigma[2]), opened=(0, s.opened[1]))

    def surely_silent(self, sizes: Sizes, size: tuple[int, ...]) -> bool:
        """r <= m; and by (a) q t > c r (sigma_1 + g h_1), c = e ln(2) / 2 > 0.942, so that n_1 log
        N_1 exceeds c h_1 (sigma_1 + g h_1) + n_1 sigma_2 / g, whose least is at some g.
        """
        (h_1, h_2), (_, sigma_1, sigma_2), (m, n_1) = sizes.h, sizes.sigma, size
        bits = (n_1 * m).bit_length()
        few = max(sigma_2, h_1 * (sigma_1 + h_1) * 942 // 1000)
        least = 3768 * n_1 * sigma_2 * h_1**2
        counted = n_1 * bits <= few or 1000 * (n_1 * bits) ** 2 <= least
        return counted or m * bits <= h_1 + h_2
