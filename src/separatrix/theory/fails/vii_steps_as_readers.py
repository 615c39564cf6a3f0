"""Theorem VII: R reading layers, none bounded before the second, fail L-SeqComp, L >= R, at a
finite n; and VII', a closed form for three reading layers alone, which needs no search.
"""

from __future__ import annotations

from typing import ClassVar

from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp
from separatrix.tasks.seqcomp import MOST_STEPS
from separatrix.theory.base import REAL_NUMBERS
from separatrix.theory.fails.many_layers import ManyLayers, first_answer, sizes_of
from separatrix.theory.fails.many_prices import Sizes
from separatrix.theory.fails.many_proof import Parameters
from separatrix.theory.fails.reading_layers import IN_ORDER
from separatrix.theory.words import Words, WordsByTask


class TheoremVII(ManyLayers):
    key = "VII"
    title = "R reading layers fail L-SeqComp, L >= R >= 3, at finite n, none bounded before the 2nd"
    statement = (
        "R >= 3 reading layers of h_1, ..., h_R bits, bounded heads of sigma_1 bits inside the"
        " first, bounded heads and layers of sigma_j bits inside and after the j-th from the second"
        " on, no bounded layer before or between the first two. In the notation of Theorem VI, with"
        " L = R they fail L-SeqComp if (A) with sigma_1 + h_1 W/G in place of sigma_0, (B_l) and"
        " (C) hold with X_2 = sigma_1 + h_1 (W + G Delta_1 t + min(Gx, t)) + h_2 x W + [f_2 = 1:"
        " sigma_2 + h_2 G Delta_1 (t+x); f_2 = 0: sigma_2 G Delta_1 x] and X_{l+1} = Delta_l X_l +"
        " 1 + sigma_1 + ... + sigma_l + Delta_l tok_l (h_1 + ... + h_l) + h_{l+1} Pi_l Delta_1 x W"
        " + (1-f_l) h_l Low_l + [f_{l+1} = 1: sigma_{l+1} + h_{l+1} (Delta_l tok_l + Low_l if f_l ="
        " 1, Delta_l Low_l else); f_{l+1} = 0: sigma_{l+1} Delta_l Pi_l G Delta_1 x]. A sparse"
        " first layer owes its open block in (A), too. Lifting extends it to every L >= R."
    )
    premises = (
        "at least three reading layers",
        "no bounded layer before the second reading layer; bounded heads inside the first may be",
        "accumulators hold the declared bits",
        IN_ORDER,
        REAL_NUMBERS,
    )
    source = "theory.md, section 11, Theorem VII and Lifting"
    proof_sketch = (
        "Layer-1 queries know token and place only: fix the layer-1 reads of every w. The state of"
        " the first layer's bounded heads and of its accumulators for the queries of one group of"
        " w_2, after z_1, takes at most 2^(sigma_1 + h_1 W/G) values: for each group, contents of"
        " z_1 remain that lead to one of them and take y_1 values (Lemma C). Then go on as in"
        " Theorem VI, each level one reading layer further."
    )
    reading_layers = range(3, MOST_STEPS + 1)
    ahead = 1

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        before, first, *_ = architecture.groups(n)
        # layers between the first two, and whatever feeds the second, know the first's results
        return None if before.sigma or first.between else sizes_of(architecture, n)


class TheoremVIIPrime(ManyLayers):
    key = "VII'"
    title = "three reading layers fail 3-SeqComp from a closed form, h^9 in the bits they read"
    statement = (
        "Three reading layers of at most h >= 1 bits each and no bounded layer or head fail"
        " 3-SeqComp at m = 556 h^6, n_1 = 3 h, n_2 = 6 h^2, that is at n = 10008 h^9 + 1668 h^7 +"
        " 556 h^6 + 2. Lifting extends it to every L >= 3."
    )
    premises = (
        "exactly three reading layers",
        "no bounded layer or head",
        *TheoremVII.premises[2:],
    )
    source = "theory.md, section 11, Corollary; its conditions are certified at the h in question"
    proof_sketch = (
        "Theorem VII with m' = 278 h^5, G = 2h, g = 3h, t = x = 18 h^3, Delta_1 = 13 h^2, y_1 = 95"
        " h^5, Delta_2 = 3h, Y_2 = 526 h^8 and flags 0: every term of its conditions is a constant"
        " times a power of h."
    )
    words: ClassVar[WordsByTask] = {
        "seqcomp": Words(
            "whatever the weights, in some prompt of {n} tokens, a failing size of closed form",
            f"{TheoremVII.words['seqcomp'].why} The search of Theorem VII, which"
            " `separatrix.judge` runs, finds shorter ones.",
        )
    }
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
