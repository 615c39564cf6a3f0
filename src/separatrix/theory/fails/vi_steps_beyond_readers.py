"""Theorem VI: R reading layers with bounded layers anywhere fail L-SeqComp, L >= R + 1, at a finite
n.
"""

from __future__ import annotations

from separatrix.stacks.architecture import Architecture
from separatrix.tasks.seqcomp import MOST_STEPS
from separatrix.theory.base import REAL_NUMBERS
from separatrix.theory.fails.many_layers import ManyLayers, sizes_of
from separatrix.theory.fails.many_prices import Sizes
from separatrix.theory.fails.many_proof import Parameters
from separatrix.theory.fails.reading_layers import FAR, IN_ORDER, Found
from separatrix.theory.fails.vii_steps_as_readers import TheoremVII


class TheoremVI(ManyLayers):
    key = "VI"
    title = "R reading layers fail L-SeqComp, L >= R + 1, at finite n, bounded layers anywhere"
    statement = (
        "R >= 2 reading layers of h_1, ..., h_R bits, bounded groups of sigma_0 bits before them"
        " and sigma_j after and inside the j-th. Let m = G m', n_2 = g G, N_0 = m, N_l = n_l"
        " N_{l-1}, W = n_1 ... n_{L-1}, x <= t <= m, y_1 <= min(m', Delta_1 x), tok_2 = N_1 + m -"
        " t, tok_l = N_{l-1}, Pi_l = Delta_2 ... Delta_{l-1}, Mid_l = sum of tok_i Delta_i ..."
        " Delta_{l-1} for 2 <= i < l, Low_l = Mid_l + Pi_l G Delta_1 (t+x), U_2 = G n_1 y_1, U_3 ="
        " g Y_2, U_l = n_{l-1} Y_{l-1}, V_2 = G N_1, V_l = N_{l-1}, c_2 = G, c_l = 1, and lambda(V,"
        " b, y; c) = sup over u > 0 and 0 < z <= 1 of (y-1) log z - V log(1 + z(e^u - 1)) + b"
        " log(uV/c) - c log((b/c)!). With L = R + 1 they fail L-SeqComp if (A) y_1 = 1, or v ="
        " ceil(y_1/Delta_1) <= x and x log(m'/(y_1+v-2)) - log binom(m', v-1) > sigma_0 x/t, or"
        " lambda(m', Delta_1 x, y_1; 1) > Delta_1 sigma_0 x/t; (B_l) lambda(V_l, Delta_l U_l, Y_l;"
        " c_l) >= Delta_l X_l + 1 for l = 2, ..., L-1; (C) U_L log N_{L-1} > X_L. There X_2 ="
        " sigma_0 + h_1 x W + [f_2 = 1: sigma_1 + h_1 G (Delta_1 t + x); f_2 = 0: sigma_1 G Delta_1"
        " x] and X_{l+1} = Delta_l X_l + 1 + sigma_0 + ... + sigma_{l-1} + Delta_l tok_l (h_1 + ..."
        " + h_{l-1}) + h_l Pi_l Delta_1 x W + (1-f_l) h_{l-1} Low'_l + [f_{l+1} = 1: sigma_l + h_l"
        " (Delta_l tok_l + Low_l if f_l = 1, Delta_l Low_l else); f_{l+1} = 0: sigma_l Delta_l Pi_l"
        " G Delta_1 x], Low'_2 = G (Delta_1 t + x), Low'_l = Low_l. A sparse layer owes its open"
        " block once more in X_l where its reads are fixed at that cut. Values of w_2 and of z_1"
        " that are left over are not used. Lifting extends it to every L >= R + 1."
    )
    premises = (
        "at least two reading layers",
        "accumulators hold the declared bits",
        IN_ORDER,
        REAL_NUMBERS,
    )
    source = "theory.md, section 11, Theorem VI and Lifting"
    proof_sketch = (
        "Fix the first caches after z_2 and the constant part of z_1: for each group of w_2"
        " contents of z_1 remain that lead to one cache and take y_1 values (Lemma C), so that the"
        " first queries of w know z_0 and w only; fix what they read. Level by level, Delta_l"
        " contents of z_l are drawn inside the family that survived (Lemma J), so that together"
        " they hit Y_l values (Lemma S); all that their tokens read is fixed per content, at a"
        " price X_{l+1}, and w's next query never depends on z_l. At the end the answers at U_L"
        " entries of z_L are fixed, against (C)."
    )
    reading_layers = range(2, MOST_STEPS)
    ahead = 0

    def sizes(self, architecture: Architecture, n: int) -> Sizes:
        return sizes_of(architecture, n)

    def threshold(self, architecture: Architecture, steps: int) -> Found[Sizes, Parameters] | None:
        """As for every theorem, but where Theorem VII speaks: it names shorter failing sizes."""
        readers = len(architecture.reading)
        if readers in TheoremVII.reading_layers and TheoremVII().sizes(architecture, FAR):
            return None
        return super().threshold(architecture, steps)
