"""Theorem VII': a closed form for three reading layers alone, which needs no search."""

from __future__ import annotations

from typing import ClassVar

from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp
from separatrix.theory.fails.many_layers import ManyLayers, first_answer
from separatrix.theory.fails.many_prices import Sizes
from separatrix.theory.fails.many_proof import Parameters
from separatrix.theory.fails.vii_steps_as_readers import TheoremVII
from separatrix.theory.words import Words, WordsByTask


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
