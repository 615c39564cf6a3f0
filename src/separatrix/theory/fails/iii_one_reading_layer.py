"""Theorem III: one reading layer fails L-SeqComp, L >= 2, at a finite n."""

from __future__ import annotations

from typing import Any

from separatrix.architecture import Architecture
from separatrix.numbers.logs import LogSign
from separatrix.tasks import SeqComp
from separatrix.theory import depth_one
from separatrix.theory.base import REAL_NUMBERS, readers
from separatrix.theory.depth import DepthTheorem, open_bits


class TheoremIII(DepthTheorem):
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
        REAL_NUMBERS,
    )
    source = "theory.md, section 5, Theorem III and Lifting; asymptotic form [Ye26, Theorem 1.1]"
    proof_sketch = (
        "Fix the first caches after z_2 and part of z_1; by (a) r contents of the rest lead to one"
        " cache and differ at one place c = z_0. The queries of z_0 and w then know nothing more;"
        " fixing what w reads of z_2 and the last caches makes the answers at n_1 r points the same"
        " for all z_2 that remain, and by (b) more remain than agree there."
    )
    reading_layers = 1
    least_steps = 2
    parameters = depth_one.Parameters

    def sizes(self, architecture: Architecture, n: int) -> depth_one.Sizes | None:
        (before, after), opened = (
            architecture.groups(n),
            open_bits(architecture, architecture.reading[0], n),
        )
        return depth_one.Sizes(
            h=readers(architecture)[0],
            sigma_0=before.sigma,
            sigma_1=after.sigma - opened,
            open_block=opened,
        )

    def best(self, sizes: Any, steps: int, *, quick: bool = False) -> Any:
        return depth_one.best(sizes, steps=steps, spelling=depth_one.PLAIN)

    def best_at(self, sizes: Any, task: SeqComp) -> Any:
        return depth_one.best_at(sizes, task.m, task.branching[0], steps=task.L)

    def signs(self, parameters: Any, sizes: Any) -> tuple[LogSign, ...]:
        return depth_one.conditions(parameters, sizes)
