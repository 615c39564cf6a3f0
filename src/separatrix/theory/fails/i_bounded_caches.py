"""Theorem I: a cache with fewer states than the task has prefix classes fails; and Theorem I': one
full layer with memory, and a query that is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.theory.base import (
    FAILS,
    Theorem,
    counted,
    first_excess,
    first_failing,
    number,
)


class TheoremI(Theorem):
    key = "I"
    shows = FAILS
    anywhere = True
    after_thought = True
    # a longer prompt has the shorter one's prefixes, and what tells them apart, at the same place
    larger_fail_too = True

    def fails_at(self, architecture: Architecture, task: Task) -> bool:
        own = task.sizes()[task.family().grows]
        least = partial(self._least, architecture, task, own)
        return self._decisive(architecture, task, least) is not None

    def _least(
        self,
        architecture: Architecture,
        task: Task,
        limit: int | None = None,
        *,
        alone: bool = False,
    ) -> Task | None:
        """The smallest task of the family that fails, up to a limit, where all larger ones fail
        too: they tell its prefixes apart at the same place; `alone`: of that in which n alone
        grows. None for a family that does not keep its prefixes so.
        """
        tasks = task.others_kept() if alone else task.family()
        if tasks is None or not tasks.keeps_prefixes:
            return None
        found = first_excess(
            lambda n: counted(_member(task, n, alone)),
            lambda n: architecture.cache_bits(_member(task, n, alone).prefix_length),
            tasks.smallest,
            limit=limit or tasks.largest,
        )
        return None if found is None else tasks.at(found)

    def _decisive(
        self, architecture: Architecture, task: Task, least: Callable[[], Task | None]
    ) -> Task | None:
        """The task, or else a smaller one, whose prefixes its caches cannot tell apart, as this one
        has to: caches may have grown again since. None where there is none. `least`: of its family.
        """
        if task.prefix_classes() is None:
            return None
        if counted(task).compare_bits(architecture.cache_bits(task.prefix_length)).positive:
            return task
        grows = task.family().grows
        own, smaller = task.sizes()[grows], least()
        if smaller is not None and smaller.sizes()[grows] <= own:
            return smaller
        return self._least(architecture, task, own, alone=True)

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if task.prefix_classes() is None:
            return None
        least = self._least(architecture, task)
        fails = self._decisive(architecture, task, lambda: least)
        decisive = fails or task
        if least is None and fails is None:
            return None
        cache = architecture.cache_bits(decisive.prefix_length)
        count = counted(decisive)
        n, since = self.since(task, least)
        if fails not in (None, task, least):
            n, since = None, "and fewer of the same are a part of these"
        tells = f"cannot tell {count} prefixes apart" if fails else f"could hold {count} prefixes"
        sentence = (
            f"{number(cache)} bits of cache after {decisive.prefix_length:,} tokens {tells} (log2 ="
            f" {count.log2_str()}); {since}{', with or without chain of thought' * bool(fails)}"
        )
        numbers = {"prefix": decisive.prefix_length, "cache_bits": cache}
        sign = count.compare_bits(cache)
        status = "FAILS" if fails else "OPEN"
        return self.verdict(architecture, task, status, sentence, n=n, numbers=numbers, sign=sign)


# one task is asked of many stacks
@lru_cache(maxsize=1 << 14)
def _member(task: Task, n: int, alone: bool) -> Task:
    tasks = (task.others_kept() if alone else None) or task.family()
    return tasks.at(n)


class TheoremIPrime(Theorem):
    key = "I'"
    shows = FAILS
    anywhere = True
    # h does not change with n, and a family's first parts only gain contents
    larger_fail_too = True

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
            f"its only layer with memory reads at most 2^{number(h)} values; {first.named} has"
            f" at least {first.contents} contents to tell apart"
        )
        if n is not None:
            sentence += f"; {since}"
        status = "FAILS" if sign.positive else "OPEN"
        return self.verdict(architecture, task, status, sentence, n=n, numbers={"h": h}, sign=sign)


def sole_full_layer(architecture: Architecture) -> int | None:
    """h of the only layer with memory when that is full attention alone, or windows or chunks of
    it, which read no more of the prompt; else None.
    """
    memory = architecture.remembering
    if sum(times for _, times in memory) != 1:
        return None
    layer = [part.within(1) for part in memory[0][0]]
    # a short convolution before q, k and v would be a layer with memory of its own
    if any(part.name != "full" or part.sizes().get("conv") for part in layer):
        return None
    return sum(part.read_bits() for part in layer)
