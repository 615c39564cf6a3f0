"""Theorem III: one reading layer fails L-SeqComp, L >= 2, at a finite n; and where windows that
forget stand before it (theory.md, section 12).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.forgetting import Lags
from separatrix.theory.arguments import (
    Certified,
    Counting,
    Numbers,
    Pigeonhole,
    ProofParameters,
    Refuted,
    Sizes,
    Solver,
    smaller,
)
from separatrix.theory.fails.reading_layers import sizes_of
from separatrix.theory.search.driver import CountingTheorem, Grid
from separatrix.theory.search.reals import LN2, exp, ln

_LARGEST = 1e12
"""The largest m that is proposed."""
_NO_ROOM = Refuted("no room for entries that stay fixed")


@dataclass(frozen=True)
class Parameters(ProofParameters):
    """m, n_1 of the task and r, t of the proof. Raises SizeError out of range."""

    n_1: int
    r: int
    t: int
    needs: ClassVar[str] = "Theorem III needs 1 <= r <= m, 1 <= t <= m and n_1 >= 1"

    @staticmethod
    def fits(p: Any) -> bool:
        return 1 <= p.r <= p.m and 1 <= p.t <= p.m and p.n_1 >= 1


class TheoremIII(CountingTheorem[Parameters]):
    """Points (m, r), or (r) at a task's size; t is the smallest that (a) allows. As many entries as
    the lag has tokens are fixed before the t, and as many behind them.
    """

    key = "III"
    reading_layers = range(1, 2)
    names: ClassVar = {"h_1": "h", "open_1": "open_block"}
    parameters = Parameters
    free = ("m", "r")

    def contents(self, x: Numbers) -> Pigeonhole[Any]:
        """(a) r = 1 or t log(m/(r-1)) > sigma_0."""
        return Pigeonhole(places=x.t, values=x.m, kept=x.r, bits=x.sigma_0)

    def counting(self, x: Numbers) -> Counting[Any]:
        """(b) n_1 r log N_1 > sigma_0 + n_1 h + min{r sigma_1, sigma_1 + (rt+1) h}, and the open
        block is owed as sigma_0 is. So many tokens behind the t entries as the lag still see them.
        """
        # tokens that read A after the cut: those of each of the r contents, and those up to w
        late = x.r * (x.t + x.lag) + 1
        # the last caches are fixed just before w, once per content, or at the cut along with
        # the reads that lead on from there (theory.md, section 5, Theorem III)
        after = smaller(x.r * x.sigma_1, x.sigma_1 + late * x.h_1)
        return Counting(x=x.n_1, r=x.r, base=x.m, each=x.h_1, owed=x.sigma_0 + x.open_1 + after)

    def before(self, x: Numbers) -> Mapping[str, Certified]:
        fixed = {} if x.t + 2 * x.lag <= x.m else {"fixed entries": _NO_ROOM}
        return {**fixed, "a": self.contents(x)}

    def choose(self, x: Numbers, solver: Solver) -> bool:
        x.r = solver.at_most(x.r, x.m)
        x.t = 1
        x.t = solver.places(self.contents(x))
        return x.t + 2 * x.lag <= x.m

    def grid(self, s: Numbers, size: tuple[int, ...] | None) -> Grid:
        if size is not None:
            return Grid((1,), (float(size[0]),))
        return Grid((2 + 2 * s.lag, 1), (_LARGEST, _LARGEST))

    def starts(
        self, s: Numbers, size: tuple[int, ...] | None, grid: Grid
    ) -> Iterable[Sequence[float]]:
        """Grids that are spaced geometrically from both ends: r close to 1 and r close to m."""
        if size is not None:
            return [(r,) for r in _rows(s, float(size[0]), 60)]
        places = (exp(ln(2.0) + step / 24 * ln(_LARGEST / 2)) for step in range(25))
        return [(m, r) for m in places for r in _rows(s, m, 8)]

    def surely_silent(self, sizes: Sizes, size: tuple[int, ...]) -> bool:
        """r <= m; and n_1 log N_1 > min(sigma_1, t h), where t > sigma_0 / log m unless r = 1."""
        (h,), (sigma_0, sigma_1), (opened,) = sizes.h, sizes.sigma, sizes.opened
        m, n_1 = size[:2]
        bits = (n_1 * m).bit_length()
        t = 1 if bits > h else max(1, sigma_0 // m.bit_length())
        return n_1 * bits <= min(sigma_1, t * h) or n_1 * m * bits <= sigma_0 + opened + n_1 * h


def _rows(s: Numbers, m: float, count: int) -> list[float]:
    far = [exp(step / count * ln(m)) for step in range(count + 1)]
    # (a) with t = m: r - 1 < m 2^(-sigma_0 / m)
    widest = 1 + m * exp(-s.sigma_0 / m * LN2)
    return [*far, *(m - r for r in far), *(min(m, widest) - step for step in (0, 1, 2))]


class TheoremRDepth(TheoremIII):
    key = "R-depth"
    masked = True

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        (reader,) = architecture.reading
        lags = Lags.of(architecture, before=reader)
        below = lags and lags.everywhere
        own = [part for part in architecture.layers[reader] if part.reading]
        if below is None or any(part.fed_bits(n) and "conv" not in part.sizes() for part in own):
            return None
        lag = below.reach + max(0, *(part.sizes().get("conv", 0) - 1 for part in own))
        s = sizes_of(architecture, n)
        # without windows and convolutions Theorem III says the same
        return replace(s, sigma=(below.bits, s.sigma[1]), lag=lag) if lag else None

    def said_of(self, sizes: Sizes) -> str:
        return f"{super().said_of(replace(sizes, lag=0))}, lag {sizes.lag:,} tokens"
