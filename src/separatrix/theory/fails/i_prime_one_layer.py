"""Theorem I': one full layer with memory, and a query that is fixed."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.first_size import first_size
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.theory.base import FAILS, REAL_NUMBERS, Sees, Theorem, number, size_in_words
from separatrix.theory.words import Words, WordsByTask


class TheoremIPrime(Theorem):
    key = "I'"
    title = "one full layer: fewer readable values than prefix classes"
    statement = (
        "Exactly one layer has memory, it is full attention, and prompts read A B q with the query"
        " token q fixed. The model fails if h < log2 C_A, where C_A counts the A that some B tells"
        " apart with that same q. Composition g(f(x)), g first: C_A = n^n. Equality, disjointness:"
        " C_A = 2^n."
    )
    premises = ("exactly one layer has memory", "it is full attention", REAL_NUMBERS)
    source = "[Peng24] for composition; theory.md, section 3, Theorem I'"
    proof_sketch = (
        "With one layer the query of the last token is fixed. What it takes from A is the softmax"
        " accumulator after A, one of 2^h values; two inequivalent A share one, and with them the"
        " same answer for every B."
    )
    shows = FAILS
    sees = Sees.ONE_MEMORY
    # h does not change with n, and a family's first parts only gain contents
    larger_fail_too = True
    words: ClassVar[WordsByTask] = {
        "seqcomp": Words(
            "one full layer reads {h} bits, and the table has m^m contents",
            "The last token has to ask without knowing the place, and reads too little in one go to"
            " take the whole table along.",
        ),
        "twosum": Words(
            "more sets of n values than one full layer reads in {h} bits",
            "Its only layer with memory reads {h} bits of all values, in one go, and there are more"
            " sets of values than such readings.",
        ),
        "equality": Words(
            "strings of n bits, of which one full layer reads {h}",
            "Its only layer with memory reads {h} bits of the first string, in one go, and two"
            " strings with the same reading look alike.",
        ),
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        h = sole_full_layer(architecture)
        first = task.first_part()
        if h is None or first is None:
            return None
        sign = first.contents.compare_bits(h)
        n = self.threshold(h, task)
        if n is None and not sign.positive:
            return None
        sentence = (
            f"one full layer reads at most 2^{number(h)} values; {first.named} has at least"
            f" {first.contents} contents to tell apart"
        )
        if n is not None:
            sentence += f"; it fails {self.failing(n)} ({task.family().described})"
        return self.verdict(
            architecture,
            task,
            "FAILS" if sign.positive else "OPEN",
            sentence,
            n=n,
            numbers={"h": h},
            sign=sign,
        )

    def threshold(self, h: int, task: Task) -> int | None:
        """The smallest n of the family (of composed functions the prompt length) with more than 2^h
        contents; None if none up to 10^12.
        """
        tasks = task.family()

        def bites(n: int) -> bool:
            first = tasks.at(n).first_part()
            return first is not None and first.contents.exceeds_bits(h)

        found = first_size(bites, tasks.smallest, limit=tasks.largest)
        return None if found is None else size_in_words(tasks.at(found))[1]


def sole_full_layer(architecture: Architecture) -> int | None:
    """h of the only layer with memory when that is full attention alone, else None."""
    memory = [
        (layer, times)
        for layer, times in architecture.counted()
        if any(part.cache_bits(1 << 20) for part in layer)
    ]
    if sum(times for _, times in memory) != 1:
        return None
    layer = memory[0][0]
    # a short convolution before q, k and v would be a layer with memory of its own
    if any(part.name != "full" or part.sizes().get("conv") for part in layer):
        return None
    return sum(part.read_bits() for part in layer)
