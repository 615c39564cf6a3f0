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
from separatrix.theory.base import REAL_NUMBERS, listed
from separatrix.theory.fails.many_proof import Parameters, conditions
from separatrix.theory.fails.many_search import (
    ManyLayersSearch,
    at_size_of,
    least_entries,
    shortest_of,
)
from separatrix.theory.fails.reading_layers import FAR, IN_ORDER, DepthTheorem, Found, sizes_of
from separatrix.theory.words import Words, WordsByTask


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

    def threshold(self, architecture: Architecture, steps: int) -> Found[Parameters] | None:
        """As for every theorem, but where Theorem VII speaks: it names shorter failing sizes."""
        readers = len(architecture.reading)
        if readers in TheoremVII.reading_layers and TheoremVII().sizes(architecture, FAR):
            return None
        return super().threshold(architecture, steps)


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
