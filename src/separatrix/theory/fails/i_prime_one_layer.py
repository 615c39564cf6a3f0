"""Theorem I': one full layer with memory, and a query that is fixed."""

from __future__ import annotations

from typing import ClassVar

from separatrix.architecture import Architecture
from separatrix.evidence.records import Verdict
from separatrix.numbers.binomials import BinomialSum
from separatrix.numbers.counts import Count, OneMoreThanPower, Power
from separatrix.numbers.first_size import first_size
from separatrix.numbers.logs import LogSign
from separatrix.tasks import Disjointness, Equality, SeqComp, Task, TwoSum
from separatrix.theory.base import FAILS, REAL_NUMBERS, Sees, Theorem, number
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
        count = prefixes(task)
        if h is None or count is None:
            return None
        sign = count.compare_bits(h)
        n = self.threshold(h, task)
        if n is None and not sign.positive:
            return None
        what = (
            f"a row of z_{task.L}"
            if isinstance(task, SeqComp)
            else (
                "the first string"
                if isinstance(task, Equality)
                else (
                    "the first set"
                    if isinstance(task, Disjointness)
                    else "what stands before the last two tokens"
                )
            )
        )
        sentence = (
            f"one full layer reads at most 2^{number(h)} values; {what} has at least {count}"
            " contents to tell apart"
        )
        sentence += (
            f"; it fails from n = {number(n)} on ({task.family().described})"
            if n is not None
            else ""
        )
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
        """The smallest n of the task's family (for SeqComp the prompt length) with more than 2^h
        contents; None if none up to 10^12.
        """
        tasks = task.family()

        def bites(n: int) -> bool:
            count = prefixes(tasks.at(n))
            return count is not None and count.exceeds_bits(h)

        found = first_size(bites, tasks.smallest, limit=tasks.largest)
        return (
            None
            if found is None
            else tasks.at(found).length
            if isinstance(task, SeqComp)
            else found
        )

    @staticmethod
    def compare(h: int, task: SeqComp) -> LogSign:
        """The certified sign of N_{L-2} log2 N_{L-1} - h: one row of z_L against what can be
        read.
        """
        return Power(task.N(task.L - 1), task.N(max(task.L - 2, 0))).compare_bits(h)


def prefixes(task: Task) -> Count | None:
    """A number of prefixes A that some B tells apart under one fixed last token; None where the
    theorem says nothing.

    SeqComp: the row of z_L that w asks for; every place in it is reached by some z_{L-1}, ..., z_0.
    2-Sum as a decision: sets of values of one sign, other than the last token's, by the n-2 tokens
    before the last two; the one before the last asks for a value. Equality: the last token is the
    last bit of v, say 0; the strings u that end in 0 are told apart by the rest of v, and those
    that end in 1 never match. Disjointness: the last token is the last bit of v, say 1; the sets u
    without the last element are told apart by the rest of v, and those with it always meet v.
    """
    if isinstance(task, SeqComp):
        return Power(task.N(task.L - 1), task.N(max(task.L - 2, 0)))
    if isinstance(task, Equality | Disjointness):
        return OneMoreThanPower(task.n - 1) if task.n > 1 else None
    if isinstance(task, TwoSum) and task.form == "decision" and task.n >= 3 and task.pairs >= 2:
        return BinomialSum(task.pairs - 1, min(task.n - 2, task.pairs - 1))
    return None


def sole_full_layer(architecture: Architecture) -> int | None:
    """h of the only layer with memory when that is full attention alone, else None."""
    memory = [
        (layer, times)
        for layer, times in architecture.counted()
        if any(part.cache_bits(1 << 20) for part in layer)
    ]
    if sum(times for _, times in memory) != 1 or any(
        part.name != "full" or part.sizes().get("conv") for part in memory[0][0]
    ):
        return None
    return sum(part.read_bits() for part in memory[0][0])
