"""Theorems VI, VII and VII': R reading layers fail L-SeqComp at a finite n, L >= R + 1 with bounded
layers anywhere, L >= R >= 3 with none before the second; a closed form for three.
"""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.numbers.logs import LogSign
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp
from separatrix.tasks.seqcomp import MOST_STEPS
from separatrix.theory.arguments import Sizes
from separatrix.theory.base import listed
from separatrix.theory.fails.many_proof import Parameters, conditions
from separatrix.theory.fails.many_search import (
    ManyLayersSearch,
    at_size_of,
    least_entries,
    shortest_of,
)
from separatrix.theory.fails.reading_layers import FAR, DepthTheorem, Found, sizes_of


class ManyLayers(DepthTheorem[Parameters]):
    """Failure of L-SeqComp for any number of reading layers."""

    ahead: ClassVar[int]
    """0 for Theorem VI and 1 for VII, which knows more at each level by one stage."""
    least_steps = 3
    first_length = 1 << 20
    parameters = Parameters

    def best(self, sizes: Sizes, steps: int, *, quick: bool = False) -> Parameters | None:
        found = shortest_of(ManyLayersSearch(self.ahead, sizes), quick=quick)
        return found or (first_answer(sizes) if self.ahead else None)

    def surely_silent(self, sizes: Sizes, size: tuple[int, ...]) -> bool:
        """By (B_l) and (C).

        lambda_l <= Delta_l U_l log N_{l-1}, so U_l log N_{l-1} > X_l for 3 <= l <= L. With D =
        Delta_{l-1}, U_l <= n_{l-1} N_{l-2} and X_l >= D N_{l-2} h_1: n_{l-1} log N_{l-1} > D h_1.
        And U_l <= W' D P y_1, X_l >= h P Delta_1 x W' for some P, W' and h, y_1 <= Delta_1 x: D log
        N_{l-1} > h. (B_l) may also hold for Y_l = 1, but then U_{l+1} log N_l > h U_{l+1}, or so
        further on.
        """
        m, n_1, *further = size
        levels: list[tuple[int, int]] = []
        entries = m * n_1
        for n_l in further:
            entries *= n_l
            levels.append((n_l, entries.bit_length()))
        h = min(sizes.h)
        return entries.bit_length() <= h and any(
            n_l * bits <= sizes.h[0] or n_l * bits**2 <= sizes.h[0] * h for n_l, bits in levels
        )

    def best_at(self, sizes: Sizes, task: SeqComp) -> Parameters | None:
        size = self.size(sizes, task)
        known = self.at(self.best(sizes, task.L), sizes, size)
        return known or at_size_of(ManyLayersSearch(self.ahead, sizes, size))

    def silent_up_to(self, architecture: Architecture, steps: int, tokens: int) -> bool:
        readers = len(architecture.reading)
        if readers not in self.reading_layers or self.functions(readers) > steps:
            return False
        if self.sizes(architecture, FAR) is None:
            return False
        # caches grow with the prompt: those of the shortest one that is not ruled out count
        n = 0
        for _ in range(2):
            s = sizes_of(architecture, n)
            n = min(least_entries(self.ahead, s, tokens.bit_length()), tokens)
        return n == tokens

    def at(
        self, anywhere: Parameters | None, sizes: Sizes, size: tuple[int, ...]
    ) -> Parameters | None:
        """The same argument at this m and these n_l, where it differs from its own only in the
        last n_l, and holds there; else None.
        """
        if (
            anywhere is None
            or anywhere.size[:-1] != size[:-1]
            or not anywhere.least_last <= size[-1]
        ):
            return None
        here = anywhere.with_last(size[-1])
        return here if self.holds(here, sizes) else None

    def signs(self, parameters: Parameters, sizes: Sizes) -> tuple[LogSign, ...]:
        return conditions(self.ahead, sizes, parameters).signs()

    def sides(self, parameters: Parameters, sizes: Sizes) -> dict[str, int]:
        return conditions(self.ahead, sizes, parameters).numbers

    def functions(self, readers: int) -> int:
        return max(self.least_steps, readers + 1 - self.ahead)

    def listed(self, parameters: Parameters) -> str:
        task = {"m": parameters.m}
        task |= {f"n_{level}": n for level, n in enumerate(parameters.branching, 1)}
        return listed(task)


def closed_form(h: int) -> Parameters:
    """The parameters of the corollary: three reading layers of at most h bits each, no bounded
    layers (Theorem VII).
    """
    return Parameters(
        m=556 * h**6,
        n_1=3 * h,
        further=(6 * h * h,),
        part=278 * h**5,
        G=2 * h,
        g=3 * h,
        t=18 * h**3,
        x=18 * h**3,
        contents=(13 * h * h, 3 * h),
        y_1=95 * h**5,
        hit=(526 * h**8,),
        flags=(0, 0),
    )


def first_answer(sizes: Sizes) -> Parameters | None:
    """The closed form where it applies, without a search: three reading layers and nothing else
    that carries anything.
    """
    if sizes.readers != 3 or any((*sizes.sigma, *sizes.opened)):
        return None
    return closed_form(max(sizes.h))


class TheoremVII(ManyLayers):
    key = "VII"
    reading_layers = range(3, MOST_STEPS + 1)
    ahead = 1

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        before, first, *_ = architecture.groups(n)
        # layers between the first two, and whatever feeds the second, know the first's results
        return None if before.sigma or first.between else sizes_of(architecture, n)


class TheoremVI(ManyLayers):
    key = "VI"
    reading_layers = range(2, MOST_STEPS)
    ahead = 0

    def threshold(self, architecture: Architecture, steps: int) -> Found[Parameters] | None:
        """As for every theorem, but where Theorem VII speaks: it names shorter failing sizes."""
        readers = len(architecture.reading)
        if readers in TheoremVII.reading_layers and TheoremVII().sizes(architecture, FAR):
            return None
        return super().threshold(architecture, steps)


class TheoremVIIPrime(ManyLayers):
    key = "VII'"
    reading_layers = range(3, 4)
    ahead = 1
    spares = TheoremVII.key

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        sizes = TheoremVII().sizes(architecture, n)
        return None if sizes is None or first_answer(sizes) is None else sizes

    def silent_up_to(self, architecture: Architecture, steps: int, tokens: int) -> bool:
        # its n takes no search
        return False

    def best(self, sizes: Sizes, steps: int, *, quick: bool = False) -> Parameters | None:
        return first_answer(sizes)

    def best_at(self, sizes: Sizes, task: SeqComp) -> Parameters | None:
        return self.at(self.best(sizes, task.L), sizes, self.size(sizes, task))
