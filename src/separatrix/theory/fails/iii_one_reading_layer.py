"""Theorem III: one reading layer fails L-SeqComp, L >= 2, at a finite n; and where windows that
forget stand before it (theory.md, section 12).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.logs import LogSign
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.forgetting import Lags
from separatrix.tasks import SeqComp
from separatrix.theory.base import REAL_NUMBERS, readers
from separatrix.theory.fails.r_windows_forget import FORGETS, LAYERWISE, STATES, granted
from separatrix.theory.fails.reading_layers import (
    IN_ORDER,
    CacheSizes,
    DrivenTheorem,
    Found,
    open_bits,
)
from separatrix.theory.inequalities import Counting, Inequality, N, Pigeonhole, smaller
from separatrix.theory.search.driver import CountingSearch, Derived, ProofParameters
from separatrix.theory.search.evolve import Grid, Point
from separatrix.theory.search.reals import LN2, exp, ln

_LARGEST = 1e12
"""The largest m that is proposed."""


@dataclass(frozen=True)
class Sizes(CacheSizes):
    """Bits: what one token reads of a prefix (h), bounded layers before (sigma_0) and after
    (sigma_1) the reading layer, bounded heads in it counted after; and the open block of a sparse
    reading layer, owed once where the prompt is cut.
    """

    h: int
    sigma_0: int
    sigma_1: int
    open_block: int = 0


@dataclass(frozen=True)
class Parameters(ProofParameters):
    """m, n_1 of the task and r, t of the proof: 1 <= r <= m, 1 <= t <= m. Raises SizeError
    outside.
    """

    r: int
    t: int

    def __post_init__(self) -> None:
        self.within(
            1 <= self.r <= self.m and 1 <= self.t <= self.m and self.n_1 >= 1,
            "Theorem III needs 1 <= r <= m, 1 <= t <= m and n_1 >= 1",
        )


def contents(s: Sizes, m: N, r: N, t: N) -> Pigeonhole[N]:
    """(a) r = 1 or t log(m/(r-1)) > sigma_0."""
    return Pigeonhole(places=t, values=m, kept=r, bits=s.sigma_0)


def answers(s: Sizes, m: N, n_1: N, r: N, t: N, beside: int = 0) -> Counting[N]:
    """(b) n_1 r log N_1 > sigma_0 + n_1 h + min{r sigma_1, sigma_1 + (rt+1) h}, and the open block
    is owed as sigma_0 is. `beside`: so many tokens behind the t entries still see them.
    """
    # tokens that read A after the cut: those of each of the r contents, and those up to w
    late = r * (t + beside) + 1
    # the last caches are fixed just before w, once per content, or at the cut along with
    # the reads that lead on from there (theory.md, section 5, Theorem III)
    after = smaller(r * s.sigma_1, s.sigma_1 + late * s.h)
    return Counting(x=n_1, r=r, base=m, each=s.h, owed=s.sigma_0 + s.open_block + after)


@dataclass(frozen=True)
class OneReadingSearch(CountingSearch[Parameters]):
    """Points (m, r), or (r) at a task's size; t is the smallest that (a) allows. `beside` entries
    before and as many behind the t are fixed.
    """

    s: Sizes
    size: tuple[int, ...] | None = None
    beside: int = 0
    least_steps: ClassVar[int] = 2

    def grid(self) -> Grid:
        if self.size is not None:
            return Grid((1,), (float(self.size[0]),))
        return Grid((2 + 2 * self.beside, 1), (_LARGEST, _LARGEST))

    def derive(self, point: Point) -> Derived | None:
        r = point[-1]
        m, n_1 = map(float, self.size) if self.size is not None else (point[0], 1.0)
        if r > m:
            return None
        t = contents(self.s, m, r, 1.0).least_places()
        if t + 2 * self.beside > m:
            return None
        return Derived(answers(self.s, m, n_1, r, t, self.beside), m)

    def starts(self) -> Iterable[Sequence[float]]:
        """Grids that are spaced geometrically from both ends: r close to 1 and r close to m."""
        if self.size is not None:
            return [(r,) for r in self._rows(float(self.size[0]), 60)]
        places = (exp(ln(2.0) + step / 24 * ln(_LARGEST / 2)) for step in range(25))
        return [(m, r) for m in places for r in self._rows(m, 8)]

    def _rows(self, m: float, count: int) -> list[float]:
        far = [exp(step / count * ln(m)) for step in range(count + 1)]
        # (a) with t = m: r - 1 < m 2^(-sigma_0 / m)
        widest = 1 + m * exp(-self.s.sigma_0 / m * LN2)
        return [*far, *(m - r for r in far), *(min(m, widest) - step for step in (0, 1, 2))]

    def proof(self, point: Point) -> Parameters | None:
        m = int(point[0]) if self.size is None else self.size[0]
        r = min(int(point[-1]), m)  # a float next to a large m may be above it
        t = contents(self.s, m, r, 1).certified_places()
        room = m - 2 * self.beside
        return None if t is None or t > room else Parameters(m=m, n_1=1, r=r, t=t)

    def inequalities(self, parameters: Parameters) -> tuple[Inequality, ...]:
        p = parameters
        return (
            contents(self.s, p.m, p.r, p.t),
            answers(self.s, p.m, p.n_1, p.r, p.t, self.beside),
        )


class TheoremIII(DrivenTheorem[Sizes, Parameters]):
    key = "III"
    title = "one reading layer fails L-SeqComp, L >= 2, at finite n"
    statement = (
        "One reading layer of h bits, bounded layers of sigma_0 bits before and sigma_1 after it."
        " With 1 <= t, r <= m it fails 2-SeqComp of N_1 = n_1 m, n = N_1 + m + 2, if (a) r = 1 or t"
        " log(m/(r-1)) > sigma_0 and (b) n_1 r log N_1 > sigma_0 + n_1 h + min{r sigma_1, sigma_1 +"
        " (rt+1) h}. A sparse layer owes the block open at the cut as well. Lifting: so it fails"
        " L-SeqComp for every L >= 2, and whatever the further n_l are."
    )
    premises = (
        "exactly one reading layer",
        "softmax accumulators hold the declared bits",
        IN_ORDER,
        REAL_NUMBERS,
    )
    source = "theory.md, section 5, Theorem III and Lifting; asymptotic form [Ye26, Theorem 1.1]"
    proof_sketch = (
        "Fix the first caches after z_2 and part of z_1; by (a) r contents of the rest lead to one"
        " cache and differ at one place c = z_0. The queries of z_0 and w then know nothing more;"
        " fixing what w reads of z_2 and the last caches makes the answers at n_1 r points the same"
        " for all z_2 that remain, and by (b) more remain than agree there."
    )
    reading_layers = range(1, 2)
    least_steps = OneReadingSearch.least_steps
    parameters = Parameters

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        before, after = architecture.groups(n)
        opened = open_bits(architecture, architecture.reading[0], n)
        return Sizes(
            h=readers(architecture)[0],
            sigma_0=before.sigma,
            # the group counts the open block, which is owed once and not per content
            sigma_1=after.sigma - opened,
            open_block=opened,
        )

    def surely_silent(self, sizes: Sizes, size: tuple[int, ...]) -> bool:
        """r <= m; and n_1 log N_1 > min(sigma_1, t h), where t > sigma_0 / log m unless r = 1."""
        m, n_1 = size[:2]
        bits = (n_1 * m).bit_length()
        t = 1 if bits > sizes.h else max(1, sizes.sigma_0 // m.bit_length())
        owed = sizes.sigma_0 + sizes.open_block + n_1 * sizes.h
        return n_1 * bits <= min(sizes.sigma_1, t * sizes.h) or n_1 * m * bits <= owed

    def search(self, sizes: Sizes, size: tuple[int, ...] | None = None) -> OneReadingSearch:
        return OneReadingSearch(sizes, size)


@dataclass(frozen=True)
class Staggered(Sizes):
    """Those of Theorem III, sigma_0 without windows and convolutions, and their lag in tokens."""

    lag: int = 0


class TheoremRDepth(TheoremIII):
    key = "R-depth"
    title = "windows forget before one reading layer: Theorem III of states alone"
    statement = (
        "Theorem III with sigma_0 = S_0, the bits of the recurrent states before the reading"
        " layer, where G_0 is the lag of all that stands there, a short convolution of the reading"
        " layer included: if 2 G_0 + t <= m and (a), and (b) with r (t + G_0) + 1 in place of"
        " rt + 1. With windows and convolutions alone, and no bounded layer behind: 2-SeqComp"
        " fails if m >= 2 G_0 + 1 and m log2 (n_1 m) > h."
    )
    premises = (*TheoremIII.premises, f"before it, {FORGETS}", LAYERWISE, STATES)
    source = "theory.md, sections 5 and 12, Theorems III and R [here]"
    proof_sketch = (
        "In the proof of Theorem III let the first and the last G_0 entries of z_1 be fixed, and t"
        " entries between them vary. By Theorem R, cut behind z_2, what enters the reading layer"
        " from the first of the t entries on knows S_0 bits of z_2; cut behind the t entries, what"
        " enters at z_0 and w knows S_0 bits of their contents. The G_0 tokens between read the"
        " prefix once for each content, which is the new term in (b)."
    )

    def sizes(self, architecture: Architecture, n: int) -> Staggered | None:
        (reader,) = architecture.reading
        lags = Lags.of(architecture, before=reader)
        below = lags and lags.everywhere
        own = [part for part in architecture.layers[reader] if part.reading]
        if below is None or any(part.fed_bits(n) and "conv" not in part.sizes() for part in own):
            return None
        lag = below.reach + max(0, *(part.sizes().get("conv", 0) - 1 for part in own))
        s = super().sizes(architecture, n)
        # without windows and convolutions Theorem III says the same
        return Staggered(s.h, below.bits, s.sigma_1, s.open_block, lag) if s and lag else None

    def search(self, sizes: Sizes, size: tuple[int, ...] | None = None) -> OneReadingSearch:
        return OneReadingSearch(sizes, size, beside=_lag(sizes))

    def signs(self, parameters: Parameters, sizes: Sizes) -> tuple[LogSign, ...]:
        if parameters.t + 2 * _lag(sizes) > parameters.m:
            return (LogSign(-1, "integers", "no room for entries that stay fixed"),)
        return super().signs(parameters, sizes)

    def _state(
        self,
        architecture: Architecture,
        task: SeqComp,
        here: Found[Sizes, Parameters] | None,
        least: Found[Sizes, Parameters] | None,
    ) -> Verdict | None:
        found = super()._state(architecture, task, here, least)
        if found is None:
            return None
        said = dict.fromkeys((*granted(architecture), *found.assumptions))
        return replace(found, assumptions=tuple(said))

    def said_of(self, sizes: Mapping[str, int]) -> str:
        bits = {name: value for name, value in sizes.items() if name != "lag"}
        return f"{super().said_of(bits)}, lag {sizes['lag']:,} tokens"


def _lag(sizes: Sizes) -> int:
    return sizes.lag if isinstance(sizes, Staggered) else 0
