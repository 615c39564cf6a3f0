"""Theorem I: a cache with fewer states than the task has prefix classes fails."""

from __future__ import annotations

from separatrix.architecture import Architecture
from separatrix.bits import LogSign
from separatrix.evidence import Verdict
from separatrix.tasks import SeqComp, Task
from separatrix.theory._base import REAL_NUMBERS, Theorem, family, first_excess, number


class TheoremI(Theorem):
    key = "I"
    title = "bounded caches: fewer cache states than prefix classes"
    statement = (
        "A causal model fails at length n if, over all layers together, cache_bits(n) < log2 C(n), where C(n) counts the prefixes "
        "that some continuation tells apart. Chain of thought does not help: what is written is a function of the cache."
    )
    premises = ("the model is causal", REAL_NUMBERS, "the cache holds the declared number of bits")
    source = "[Ye26, Lemma 2.2 and its bounds]; theory.md, section 3, Theorem I"
    proof_sketch = (
        "There are fewer caches than classes, so two inequivalent prefixes leave the same cache. Continue both with a suffix that tells "
        "them apart: the model gives one answer where two are right. Anything it writes in between is a function of the cache and the suffix."
    )

    def compare(self, architecture: Architecture, task: Task) -> LogSign:
        """The certified sign of log2 C - cache_bits for the task's prefixes."""
        return task.prefix_classes().compare_bits(architecture.cache_bits(task.prefix_length))

    def threshold(self, architecture: Architecture, task: Task) -> int | None:
        """The smallest n of the task's family at which the theorem bites (for SeqComp: the prompt length); None if none up to 10^12."""
        tasks = family(task)
        found = first_excess(
            lambda n: tasks.at(n).prefix_classes(),
            lambda n: architecture.cache_bits(tasks.at(n).prefix_length),
            tasks.smallest,
            limit=tasks.largest,
        )
        if found is None:
            return None
        return tasks.at(found).length if isinstance(task, SeqComp) else found

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        cache, count = architecture.cache_bits(task.prefix_length), task.prefix_classes()
        sign = count.compare_bits(cache)
        n = self.threshold(architecture, task)
        tokens = f"{task.prefix_length:,} tokens"
        if sign.positive:
            sentence = (
                f"{number(cache)} bits of cache after {tokens} cannot tell {count} prefixes apart (log2 = {count.log2_str()}); "
                f"it fails from n = {number(n) if n is not None else 'unknown'} on, with or without chain of thought"
            )
        elif n is not None:
            sentence = (
                f"{number(cache)} bits of cache after {tokens} could hold {count} prefixes (log2 = {count.log2_str()}); "
                f"it fails from n = {number(n)} on ({family(task).described})"
            )
        else:
            return None
        numbers = {"prefix": task.prefix_length, "cache_bits": cache}
        return self.verdict(architecture, task, "FAILS" if sign.positive else "OPEN", sentence, n=n, numbers=numbers, sign=sign)
