"""Theorem IV: two reading layers without bounded layers before or between fail L-SeqComp, L >=
2, at a finite n.
"""

from __future__ import annotations

from typing import Any

from separatrix.architecture import Architecture
from separatrix.numbers.logs import LogSign
from separatrix.tasks import SeqComp
from separatrix.theory import depth_two
from separatrix.theory.base import REAL_NUMBERS, readers
from separatrix.theory.depth import DepthTheorem, open_bits


class TheoremIV(DepthTheorem):
    key = "IV"
    title = "two reading layers fail L-SeqComp, L >= 2, at finite n"
    statement = (
        "Two reading layers of h_1 and h_2 bits, bounded heads of sigma_1 bits inside the first,"
        " bounded heads inside the second and layers after it of sigma_2 bits, none before or"
        " between. With 2 <= r <= q <= m, t <= m, g <= n_1 they fail 2-SeqComp if (a) t"
        " log(q/(r-1)) > sigma_1 + g h_1 and (b) n_1 r log N_1 > sigma_1 + n_1 (h_1 + h_2) + (qt +"
        " min(t, ceil(n_1/g))) h_1 + ceil(n_1/g) r sigma_2. Lifting extends it to every L >= 2."
    )
    premises = (
        "exactly two reading layers",
        "no bounded layer before or between them",
        "accumulators hold the declared bits",
        REAL_NUMBERS,
    )
    source = "theory.md, section 5, Theorem IV and Lifting"
    proof_sketch = (
        "Layer-1 queries depend on token and place only: fix all reads of z_2. Cut the values of w"
        " into groups of g; by (a) for each group r contents of z_1 differ at one place and look"
        " alike to it. Then w's second query knows w only; fix its read and the last caches and"
        " count as in III."
    )
    reading_layers = 2
    least_steps = 2
    parameters = depth_two.Parameters

    def sizes(self, architecture: Architecture, n: int) -> depth_two.Sizes | None:
        before, between, after = architecture.groups(n)
        if before.sigma or between.between:
            return None
        (h_1, h_2), opened = (
            readers(architecture),
            open_bits(architecture, architecture.reading[1], n),
        )
        return depth_two.Sizes(
            h_1=h_1, h_2=h_2, sigma_1=between.inside, sigma_2=after.sigma - opened, open_2=opened
        )

    def best(self, sizes: Any, steps: int, *, quick: bool = False) -> Any:
        return depth_two.best(sizes, steps=steps, quick=quick)

    def best_at(self, sizes: Any, task: SeqComp) -> Any:
        return depth_two.best_at(sizes, task.m, task.branching[0], steps=task.L)

    def signs(self, parameters: Any, sizes: Any) -> tuple[LogSign, ...]:
        return depth_two.conditions(parameters, sizes)
