"""Theorem V: two reading layers with bounded layers anywhere fail L-SeqComp, L >= 3, at a finite
n.
"""

from __future__ import annotations

from typing import Any

from separatrix.architecture import Architecture
from separatrix.numbers.logs import LogSign
from separatrix.tasks import SeqComp
from separatrix.theory import depth_three
from separatrix.theory.base import REAL_NUMBERS, readers
from separatrix.theory.depth import DepthTheorem, open_bits


class TheoremV(DepthTheorem):
    key = "V"
    title = "two reading layers fail L-SeqComp, L >= 3, at finite n, bounded layers anywhere"
    statement = (
        "Two reading layers of h_1 and h_2 bits, bounded groups of sigma_0 bits before, sigma_1"
        " between and inside the first, sigma_2 after and inside the second. With 1 <= t, X, beta"
        " <= m, 2 <= r <= q <= N_1, g <= n_2, u_0 = floor(sigma_0/log(N_1/(q-1))) < beta, b ="
        " ceil(m/beta), y = ceil((X - b u_0)/(beta - u_0)) >= 1 and E = min{X sigma_1, sigma_1 +"
        " (m-t+Xt+1) h_1} they fail 3-SeqComp if (a) X = 1 or t log(m/(X-1)) > sigma_0, (b) y"
        " log(q/(r-1)) > E/n_1 + g h_1 and (c) n_2 r log N_2 > sigma_0 + sigma_1 + [N_1 + (q-1) n_1"
        " y beta + m-t+Xt+1] h_1 + n_2 (h_1 + h_2) + ceil(n_2/g) r sigma_2. Lifting extends it to"
        " every L >= 3."
    )
    premises = ("exactly two reading layers", "accumulators hold the declared bits", REAL_NUMBERS)
    source = "theory.md, section 5, Theorem V and Lifting"
    proof_sketch = (
        "Blocks of each row of z_2 keep q contents at one effective place under the most frequent"
        " caches; z_1 keeps X contents under one. Fix the layer-1 reads; some row of z_2 stays rich"
        " though the middle cache is fixed; groups of values of w_2 then see r alike contents, w's"
        " second query knows w only, and z_3 is counted as in III."
    )
    reading_layers = 2
    least_steps = 3
    parameters = depth_three.Parameters

    def sizes(self, architecture: Architecture, n: int) -> depth_three.Sizes | None:
        before, between, after = architecture.groups(n)
        open_1, open_2 = (open_bits(architecture, index, n) for index in architecture.reading)
        h_1, h_2 = readers(architecture)
        return depth_three.Sizes(
            h_1=h_1,
            h_2=h_2,
            sigma_0=before.sigma,
            sigma_1=between.sigma - open_1,
            sigma_2=after.sigma - open_2,
            open_1=open_1,
            open_2=open_2,
        )

    def best(self, sizes: Any, steps: int, *, quick: bool = False) -> Any:
        return depth_three.best(sizes, steps=steps, quick=quick)

    def best_at(self, sizes: Any, task: SeqComp) -> Any:
        return depth_three.best_at(
            sizes, task.m, task.branching[0], task.branching[1], steps=task.L
        )

    def signs(self, parameters: Any, sizes: Any) -> tuple[LogSign, ...]:
        return depth_three.conditions(parameters, sizes)
