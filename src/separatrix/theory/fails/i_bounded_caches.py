"""Theorem I: a cache with fewer states than the task has prefix classes fails; and Theorem I': one
full layer with memory, and a query that is fixed.
"""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.logs import LogSign
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Questions, SeqComp, Task
from separatrix.theory.base import (
    FAILS,
    REAL_NUMBERS,
    Theorem,
    counted,
    first_excess,
    first_failing,
    number,
    size_in_words,
)
from separatrix.theory.words import Words, WordsByTask


class TheoremI(Theorem):
    key = "I"
    title = "bounded caches: fewer cache states than prefix classes"
    statement = (
        "A causal model fails at length n if, over all layers together, cache_bits(n) < log2 C(n),"
        " where C(n) counts the prefixes that some continuation tells apart. Chain of thought does"
        " not help: what is written is a function of the cache."
    )
    premises = ("the model is causal", REAL_NUMBERS, "the cache holds the declared number of bits")
    source = "[Ye26, Lemma 2.2 and its bounds]; theory.md, section 3, Theorem I"
    proof_sketch = (
        "There are fewer caches than classes, so two inequivalent prefixes leave the same cache."
        " Continue both with a suffix that tells them apart: the model gives one answer where two"
        " are right. Anything it writes in between is a function of the cache and the suffix."
    )
    shows = FAILS
    anywhere = True
    after_thought = True
    # a longer prompt has the shorter one's prefixes, and what tells them apart, at the same place
    larger_fail_too = True
    words: ClassVar[WordsByTask] = {
        "eva": Words(
            "n log2 {V} > {cache_bits} bits of cache, which hold {fewer} such facts at the most",
            "All it keeps of them is {kept} of {cache_bits} bits, and there are more lists of facts"
            " than contents of that cache.",
        ),
        "seqcomp": Words(
            "its last function alone: N log2 N > {cache_bits} bits of cache",
            "The second function must be kept whole, since the place to look at comes last, and"
            " {kept} of {cache_bits} bits cannot hold every such function.",
        ),
        "twosum": Words(
            "more sets of n values than {cache_bits} bits of cache can hold, with or without chain"
            " of thought",
            "It keeps {kept} of {cache_bits} bits, and there are more sets of values than contents"
            " of that cache.",
        ),
        "equality": Words(
            "two strings of n bits differ in 2^n ways; {cache_bits} bits of cache",
            "It keeps {kept} of {cache_bits} bits, too few to hold every such string.",
        ),
        "dyck": Words(
            "from nesting depth {D} on: more stacks of open brackets than {cache_bits} bits of"
            " cache can hold",
            "It has to remember which brackets are open, a bit each, and keeps {kept} of"
            " {cache_bits} bits; whether it uses them well at smaller depths is another question.",
        ),
        "permutation": Words(
            "more products of permutations than {cache_bits} bits of cache can hold",
            "It keeps {kept} of {cache_bits} bits, and any product may be the one to remember.",
        ),
    }
    words_after_thought: ClassVar[WordsByTask] = {
        "eva": Words(
            "what is written is a function of the cache",
            "What it writes is worked out from the same cache, so two lists of facts that look"
            " alike to the cache still look alike afterwards.",
        ),
        "seqcomp": Words(
            "what is written is a function of the cache",
            "What is written is worked out from a cache that has already lost part of the"
            " function.",
        ),
    }

    def compare(self, architecture: Architecture, task: Task) -> LogSign | None:
        """The certified sign of log2 C - cache_bits for the task's prefixes; None for a task
        without a count.
        """
        count = task.prefix_classes()
        return (
            None
            if count is None
            else count.compare_bits(architecture.cache_bits(task.prefix_length))
        )

    def told(
        self, verdict: Verdict, task: Task, architecture: Architecture, *, thought: bool = False
    ) -> Words:
        words = super().told(verdict, task, architecture, thought=thought)
        asked = task.task if isinstance(task, Questions) else task
        if isinstance(asked, SeqComp) and asked.L != 2:
            # the words are those of two steps, which cards ask for most
            why = words.why.replace("The second function", "The last function")
            words = words._replace(why=why)
        return words

    def threshold(self, architecture: Architecture, task: Task) -> int | None:
        """The smallest n of the task's family at which the theorem bites (for composed
        functions: the prompt length); None if none up to 10^12.
        """
        if task.prefix_classes() is None:
            return None
        least = self._least(architecture, task)
        return None if least is None else size_in_words(least)[1]

    def _least(self, architecture: Architecture, task: Task) -> Task | None:
        """The smallest task of the family that fails, where all larger ones fail too: they tell its
        prefixes apart at the same place. None for a family that does not keep its prefixes so.
        """
        tasks = task.family()
        if not tasks.keeps_prefixes:
            return None
        found = first_excess(
            lambda n: counted(tasks.at(n)),
            lambda n: architecture.cache_bits(tasks.at(n).prefix_length),
            tasks.smallest,
            limit=tasks.largest,
        )
        return None if found is None else tasks.at(found)

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        sign = self.compare(architecture, task)
        if sign is None:
            return None
        least = self._least(architecture, task)
        decisive = task
        fails = sign.positive
        grows = task.family().grows
        if not fails and least is not None and least.sizes()[grows] <= task.sizes()[grows]:
            # The caches have grown again since a smaller member of the family, whose prefixes they
            # could not tell apart: it decides.
            decisive = least
            fails = True
        if least is None and not fails:
            return None
        cache = architecture.cache_bits(decisive.prefix_length)
        count = counted(decisive)
        n, since = self.since(task, least)
        tells = f"cannot tell {count} prefixes apart" if fails else f"could hold {count} prefixes"
        sentence = (
            f"{number(cache)} bits of cache after {decisive.prefix_length:,} tokens {tells} (log2 ="
            f" {count.log2_str()}); {since}{', with or without chain of thought' * fails}"
        )
        numbers = {"prefix": decisive.prefix_length, "cache_bits": cache}
        sign = count.compare_bits(cache)
        return self.verdict(
            architecture,
            task,
            "FAILS" if fails else "OPEN",
            sentence,
            n=n,
            numbers=numbers,
            sign=sign,
        )


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
    anywhere = True
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

        def bites(larger: Task) -> bool:
            first = larger.first_part()
            return first is not None and first.contents.exceeds_bits(h)

        n, since = self.since(task, first_failing(task, bites))
        if n is None and not sign.positive:
            return None
        sentence = (
            f"one full layer reads at most 2^{number(h)} values; {first.named} has at least"
            f" {first.contents} contents to tell apart"
        )
        if n is not None:
            sentence += f"; {since}"
        return self.verdict(
            architecture,
            task,
            "FAILS" if sign.positive else "OPEN",
            sentence,
            n=n,
            numbers={"h": h},
            sign=sign,
        )


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
