"""Theorems III, IV and V applied to architectures: which groups of layers they see, and at which n they bite."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

from separatrix.architecture import Architecture
from separatrix.bits import LogSign
from separatrix.evidence import Verdict
from separatrix.tasks import SeqComp, Task
from separatrix.theory import depth_one, depth_three, depth_two
from separatrix.theory._base import REAL_NUMBERS, Theorem, number, readers

_ROUNDS = 12


@dataclass(frozen=True)
class Found:
    """Certified parameters: the prompt length they show failure at, the numbers, and the tightest of the inequalities."""

    n: int
    numbers: dict[str, int]
    sign: LogSign


class _Depth(Theorem):
    """Failure of L-SeqComp for one number of reading layers; sizes may grow with n (log-linear layers, windows not yet full)."""

    reading_layers: int
    least_steps: int

    @abstractmethod
    def sizes(self, architecture: Architecture, n: int) -> Any:
        """The theorem's sizes with caches as large as they get in prompts of n tokens, or None where it does not apply."""

    @abstractmethod
    def best(self, sizes: Any, steps: int) -> Any:
        """Certified parameters with the shortest prompt found, or None."""

    @abstractmethod
    def best_at(self, sizes: Any, task: SeqComp) -> Any:
        """Certified parameters at the task's own size, or None."""

    @abstractmethod
    def signs(self, parameters: Any, sizes: Any) -> tuple[LogSign, ...]:
        """The theorem's inequalities, certified."""

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, SeqComp) or self.least_steps > task.L or len(architecture.reading) != self.reading_layers:
            return None
        sizes = self.sizes(architecture, task.length)
        if sizes is None:
            return None
        here = self.best_at(sizes, task)
        least = self.threshold(architecture, task.L)
        said = ", ".join(f"{name} = {value:,}" for name, value in asdict(sizes).items())
        if here is not None:
            found = self._found(here, sizes, task.L)
            sentence = f"{self._layers()} ({said} bits): whatever the weights, some prompt of this size is answered wrongly"
            if least is not None:
                sentence += f"; so from n = {number(min(least.n, task.length))} on ({_parameters(least)})"
            n = task.length if least is None else min(least.n, task.length)
            return self.verdict(architecture, task, "FAILS", sentence, n=n, numbers=found.numbers, sign=found.sign)
        if least is None:
            return None
        sentence = f"{self._layers()} ({said} bits): {task.L}-SeqComp provably fails from n = {number(least.n)} on ({_parameters(least)})"
        return self.verdict(architecture, task, "OPEN", sentence, n=least.n, numbers=least.numbers, sign=least.sign)

    def threshold(self, architecture: Architecture, steps: int) -> Found | None:
        """The shortest prompt of L-SeqComp found to fail, over all m and n_l, with caches sized for that prompt; None if none is found."""
        n = 1 << 10
        for _ in range(_ROUNDS):
            sizes = self.sizes(architecture, n)
            parameters = None if sizes is None else self.best(sizes, steps)
            if parameters is None:
                return None
            length = parameters.length(steps)
            if length <= n or self.sizes(architecture, length) == sizes:
                return self._found(parameters, sizes, steps)
            n = length
        return None

    def _found(self, parameters: Any, sizes: Any, steps: int) -> Found:
        signs = [sign for sign in self.signs(parameters, sizes) if sign.sign]
        return Found(parameters.length(steps), asdict(parameters) | asdict(sizes), signs[-1])

    def _layers(self) -> str:
        return "one reading layer" if self.reading_layers == 1 else f"{self.reading_layers} reading layers"


def _parameters(found: Found) -> str:
    skipped = ("h", "sigma")
    return ", ".join(f"{name} = {value:,}" for name, value in found.numbers.items() if not name.startswith(skipped))


class TheoremIII(_Depth):
    key = "III"
    title = "one reading layer fails L-SeqComp, L >= 2, at finite n"
    statement = (
        "One reading layer of h bits, bounded layers of sigma_0 bits before and sigma_1 after it. With 1 <= t, r <= m it fails 2-SeqComp of "
        "N_1 = n_1 m, n = N_1 + m + 2, if (a) r = 1 or t log(m/(r-1)) > sigma_0 and (b) n_1 r log N_1 > sigma_0 + n_1 h + "
        "min{r sigma_1, sigma_1 + (rt+1) h}. Lifting: so it fails L-SeqComp for every L >= 2."
    )
    premises = ("exactly one reading layer", "softmax accumulators hold the declared bits", REAL_NUMBERS)
    source = "theory.md, section 5, Theorem III and Lifting; asymptotic form [Ye26, Theorem 1.1]"
    proof_sketch = (
        "Fix the first caches after z_2 and part of z_1; by (a) r contents of the rest lead to one cache and differ at one place c = z_0. The "
        "queries of z_0 and w then know nothing more; fixing what w reads of z_2 and the last caches makes the answers at n_1 r points the same "
        "for all z_2 that remain, and by (b) more remain than agree there."
    )
    reading_layers, least_steps = 1, 2

    def sizes(self, architecture: Architecture, n: int) -> depth_one.Sizes | None:
        before, after = architecture.groups(n)
        return depth_one.Sizes(h=readers(architecture)[0], sigma_0=before.sigma, sigma_1=after.sigma)

    def best(self, sizes: Any, steps: int) -> Any:
        return depth_one.best(sizes, steps=steps)

    def best_at(self, sizes: Any, task: SeqComp) -> Any:
        return depth_one.best_at(sizes, task.m, task.branching[0])

    def signs(self, parameters: Any, sizes: Any) -> tuple[LogSign, ...]:
        return depth_one.conditions(parameters, sizes)


class TheoremIV(_Depth):
    key = "IV"
    title = "two reading layers fail L-SeqComp, L >= 2, at finite n"
    statement = (
        "Two reading layers of h_1 and h_2 bits, bounded heads of sigma_1 bits inside the first, bounded heads inside the second and layers after "
        "it of sigma_2 bits, none before or between. With 2 <= r <= q <= m, t <= m, g <= n_1 they fail 2-SeqComp if (a) t log(q/(r-1)) > "
        "sigma_1 + g h_1 and (b) n_1 r log N_1 > sigma_1 + n_1 (h_1 + h_2) + (qt + min(t, ceil(n_1/g))) h_1 + ceil(n_1/g) r sigma_2. Lifting "
        "extends it to every L >= 2."
    )
    premises = (
        "exactly two reading layers",
        "no bounded layer before or between them",
        "accumulators hold the declared bits",
        REAL_NUMBERS,
    )
    source = "theory.md, section 5, Theorem IV and Lifting"
    proof_sketch = (
        "Layer-1 queries depend on token and place only: fix all reads of z_2. Cut the values of w into groups of g; by (a) for each group r contents "
        "of z_1 differ at one place and look alike to it. Then w's second query knows w only; fix its read and the last caches and count as in III."
    )
    reading_layers, least_steps = 2, 2

    def sizes(self, architecture: Architecture, n: int) -> depth_two.Sizes | None:
        before, between, after = architecture.groups(n)
        if before.sigma or between.between:
            return None
        h_1, h_2 = readers(architecture)
        return depth_two.Sizes(h_1=h_1, h_2=h_2, sigma_1=between.inside, sigma_2=after.sigma)

    def best(self, sizes: Any, steps: int) -> Any:
        return depth_two.best(sizes, steps=steps)

    def best_at(self, sizes: Any, task: SeqComp) -> Any:
        return depth_two.best_at(sizes, task.m, task.branching[0])

    def signs(self, parameters: Any, sizes: Any) -> tuple[LogSign, ...]:
        return depth_two.conditions(parameters, sizes)


class TheoremV(_Depth):
    key = "V"
    title = "two reading layers fail L-SeqComp, L >= 3, at finite n, bounded layers anywhere"
    statement = (
        "Two reading layers of h_1 and h_2 bits with bounded groups of sigma_0 bits before, sigma_1 between and inside the first, sigma_2 after and "
        "inside the second fail 3-SeqComp when the inequalities (a), (b), (c) of theory.md hold for some t, X, beta, r, q, g. Lifting extends it "
        "to every L >= 3."
    )
    premises = ("exactly two reading layers", "accumulators hold the declared bits", REAL_NUMBERS)
    source = "theory.md, section 5, Theorem V and Lifting"
    proof_sketch = (
        "Blocks of each row of z_2 keep q contents at one effective place under the most frequent caches; z_1 keeps X contents under one. Fix the "
        "layer-1 reads; some row of z_2 stays rich though the middle cache is fixed; groups of values of w_2 then see r alike contents, w's second "
        "query knows w only, and z_3 is counted as in III."
    )
    reading_layers, least_steps = 2, 3

    def sizes(self, architecture: Architecture, n: int) -> depth_three.Sizes | None:
        before, between, after = architecture.groups(n)
        h_1, h_2 = readers(architecture)
        return depth_three.Sizes(h_1=h_1, h_2=h_2, sigma_0=before.sigma, sigma_1=between.sigma, sigma_2=after.sigma)

    def best(self, sizes: Any, steps: int) -> Any:
        return depth_three.best(sizes, steps=steps)

    def best_at(self, sizes: Any, task: SeqComp) -> Any:
        return depth_three.best_at(sizes, task.m, task.branching[0], task.branching[1])

    def signs(self, parameters: Any, sizes: Any) -> tuple[LogSign, ...]:
        return depth_three.conditions(parameters, sizes)
