"""Theorems VI, VII and VII': R reading layers fail L-SeqComp at a finite n, L >= R + 1 with bounded
layers anywhere, L >= R >= 3 with none before the second; a closed form for three.
"""

from __future__ import annotations

from separatrix.stacks.architecture import Architecture
from separatrix.tasks.seqcomp import MOST_STEPS
from separatrix.theory.arguments import Sizes
from separatrix.theory.base import listed
from separatrix.theory.fails.many_proof import Parameters
from separatrix.theory.fails.many_search import ClosedForm, ManyReadings, first_answer
from separatrix.theory.fails.reading_layers import FAR, DepthTheorem, Found, sizes_of


class ManyLayers(DepthTheorem[Parameters]):
    """Failure of L-SeqComp for any number of reading layers."""

    least_steps = ManyReadings.least_steps
    first_length = 1 << 20

    def silent_up_to(self, architecture: Architecture, steps: int, tokens: int) -> bool:
        readers = len(architecture.reading)
        if readers not in self.reading_layers or self.argument.functions(readers) > steps:
            return False
        if self.sizes(architecture, FAR) is None:
            return False
        # caches grow with the prompt: those of the shortest one that is not ruled out count
        n = 0
        for _ in range(2):
            s = sizes_of(architecture, n)
            n = min(self.argument.least_entries(s, tokens.bit_length()), tokens)
        return n == tokens

    def listed(self, parameters: Parameters) -> str:
        task = {"m": parameters.m}
        task |= {f"n_{level}": n for level, n in enumerate(parameters.branching, 1)}
        return listed(task)


class TheoremVII(ManyLayers):
    key = "VII"
    reading_layers = range(3, MOST_STEPS + 1)
    argument = ManyReadings(1)

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        before, first, *_ = architecture.groups(n)
        # layers between the first two, and whatever feeds the second, know the first's results
        return None if before.sigma or first.between else sizes_of(architecture, n)


class TheoremVI(ManyLayers):
    key = "VI"
    reading_layers = range(2, MOST_STEPS)
    argument = ManyReadings(0)

    def threshold(self, architecture: Architecture, steps: int) -> Found[Parameters] | None:
        """As for every theorem, but where Theorem VII speaks: it names shorter failing sizes."""
        readers = len(architecture.reading)
        if readers in TheoremVII.reading_layers and TheoremVII().sizes(architecture, FAR):
            return None
        return super().threshold(architecture, steps)


class TheoremVIIPrime(ManyLayers):
    key = "VII'"
    reading_layers = range(3, 4)
    argument = ClosedForm(1)

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        sizes = TheoremVII().sizes(architecture, n)
        return None if sizes is None or first_answer(sizes) is None else sizes

    def silent_up_to(self, architecture: Architecture, steps: int, tokens: int) -> bool:
        # its n takes no search
        return False
