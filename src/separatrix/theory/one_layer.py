"""Theorem I': one full layer with memory, and a query that is fixed."""

from __future__ import annotations

from separatrix.architecture import Architecture
from separatrix.bits import LogSign, Power
from separatrix.evidence import Verdict
from separatrix.tasks import SeqComp, Task
from separatrix.theory._base import REAL_NUMBERS, Theorem, first_size, number


class TheoremIPrime(Theorem):
    key = "I'"
    title = "one full layer: fewer readable values than prefix classes"
    statement = (
        "Exactly one layer has memory, it is full attention, and prompts read A B q with the query token q fixed. The model fails if "
        "h < log2 C_A, where C_A counts the A that some B tells apart with that same q. Composition g(f(x)), g first: C_A = n^n."
    )
    premises = ("exactly one layer has memory", "it is full attention", REAL_NUMBERS)
    source = "[Peng24] for composition; theory.md, section 3, Theorem I'"
    proof_sketch = (
        "With one layer the query of the last token is fixed. What it takes from A is the softmax accumulator after A, one of 2^h values; "
        "two inequivalent A share one, and with them the same answer for every B."
    )

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        h = sole_full_layer(architecture)
        if h is None or not isinstance(task, SeqComp) or task.L < 2:
            return None
        values, entries = task.N(task.L - 1), task.N(task.L - 2)
        sign = Power(values, entries).compare_bits(h)
        n = self.threshold(h, task)
        sentence = f"one full layer reads at most 2^{number(h)} values; a row of z_{task.L} has {values:,}^{entries:,} contents"
        sentence += f"; it fails from n = {number(n)} on (n_l as given)" if n is not None else ""
        numbers = {"h": h, "values": values, "entries": entries}
        return self.verdict(architecture, task, "FAILS" if sign.positive else "OPEN", sentence, n=n, numbers=numbers, sign=sign)

    def threshold(self, h: int, task: SeqComp) -> int | None:
        """The smallest prompt length, over m at the task's n_l, at which a row of z_L has more than 2^h contents."""

        def member(m: int) -> SeqComp:
            return SeqComp(L=task.L, m=m, branching=task.branching)

        def bites(m: int) -> bool:
            return self.compare(h, member(m)).positive

        found = first_size(bites, 2, limit=10**12 // (task.length // task.m + 1))
        return None if found is None else member(found).length

    @staticmethod
    def compare(h: int, task: SeqComp) -> LogSign:
        """The certified sign of N_{L-2} log2 N_{L-1} - h: one row of z_L against what can be read."""
        return Power(task.N(task.L - 1), task.N(task.L - 2)).compare_bits(h)


def sole_full_layer(architecture: Architecture) -> int | None:
    """h of the only layer with memory when that is full attention alone, else None."""
    memory = [layer for layer in architecture if any(part.cache_bits(1 << 20) for part in layer)]
    if len(memory) != 1 or any(part.name != "full" or part.sizes().get("conv") for part in memory[0]):
        return None
    return sum(part.read_bits() for part in memory[0])
