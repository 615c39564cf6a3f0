"""The statuses of one task, asked of the theorems as seldom as they allow: those about caches, or
about layers wherever they stand, once per arrangement; those about groups of layers once per sizes,
for what fails with some sizes fails with smaller ones; all others about every stack.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from math import isqrt
from typing import Any, TypeVar, cast

from separatrix.cards.design.space import Arrangement, Layout
from separatrix.core.errors import Undecided
from separatrix.core.evidence.records import Status, Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Family, SeqComp, Task
from separatrix.theory.base import CacheTheorem, Theorem
from separatrix.theory.fails.reading_layers import CacheSizes, DepthTheorem
from separatrix.theory.judge import THEOREMS, judge
from separatrix.theory.solves.room import Construction

Answer = TypeVar("Answer")


class TaskJudge:
    """What `judge` says of one task on many layouts. Same answers, fewer questions."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._memo: dict[Hashable, Any] = {}
        self._failing: dict[tuple[str, int], list[tuple[int, ...]]] = {}
        failing = [t for t in THEOREMS.values() if t.fails_at_once()]
        self._about_caches = [t for t in failing if isinstance(t, CacheTheorem)]
        self._about_depth: list[DepthTheorem[Any, Any]] = [
            t for t in failing if isinstance(t, DepthTheorem)
        ]
        others = [t for t in failing if not isinstance(t, CacheTheorem | DepthTheorem)]
        self._fail_anywhere = [t for t in others if t.anywhere]
        self._fail_somewhere = [t for t in others if not t.anywhere]
        self._solve = [
            t
            for t in THEOREMS.values()
            if t.solves_at_once() and (not isinstance(t, Construction) or isinstance(task, t.about))
        ]

    def _once(self, key: Hashable, answer: Callable[[], Answer]) -> Answer:
        if key not in self._memo:
            self._memo[key] = answer()
        return cast(Answer, self._memo[key])

    @cached_property
    def _family(self) -> Family[Task]:
        return self.task.family()

    def _needed(self, theorem: CacheTheorem, n: int) -> int:
        """Bits of cache with which the theorem is silent about the prefix of the task's family at
        n; 0 where its comparison stays open.
        """
        try:
            return self._once((theorem.key, n), lambda: theorem.bits_needed(self._family.at(n)))
        except Undecided:
            return 0

    def cache_fails(self, theorem: CacheTheorem, cache: Callable[[int], int]) -> bool:
        """Whether the theorem says FAILS with so much cache after so many tokens: at the task's own
        prefix, or at a shorter one of its family.

        Caches and classes only grow with n, so an interval is settled when the cache at its start
        is enough for the classes at its end.
        """

        def enough(low: int, high: int) -> bool:
            if cache(self._prefix_length(low)) >= self._needed(theorem, high):
                return True
            if low == high:
                return False
            # the geometric middle, since n spans many powers of two
            middle = max(low, min(isqrt(low * high), high - 1))
            return enough(middle + 1, high) and enough(low, middle)

        own = self.task.sizes()[self._family.grows]
        return not enough(min(self._family.smallest, own), own)

    def _prefix_length(self, n: int) -> int:
        return self._once(("prefix", n), lambda: self._family.at(n).prefix_length)

    def arrangement_fails(
        self, arrangement: Arrangement, cache_bits: Callable[[Arrangement, int], int]
    ) -> str | None:
        """A theorem that says FAILS wherever the reading layers stand, or None."""
        for theorem in self._about_caches:
            if self.cache_fails(theorem, lambda t: cache_bits(arrangement, t)):
                return theorem.key
        anywhere = Layout(arrangement, next(arrangement.placements()))
        return self._first(self._fail_anywhere, "FAILS", anywhere.architecture)

    def placement_fails(self, arrangement: Arrangement, gaps: tuple[int, ...]) -> str | None:
        """A theorem that says FAILS with the reading layers there, beside those of
        `arrangement_fails`; None if none does.
        """
        stack = Layout(arrangement, gaps).architecture
        for theorem in self._about_depth:
            if not isinstance(self.task, SeqComp) or not theorem.covers(
                arrangement.reading, self.task
            ):
                continue
            sizes = theorem.sizes(stack, self.task.length)
            if sizes is not None and self._sizes_fail(theorem, sizes):
                return theorem.key
        return self._first(self._fail_somewhere, "FAILS", stack)

    def _sizes_fail(self, theorem: DepthTheorem[Any, Any], sizes: CacheSizes) -> bool:
        """Whether the theorem shows failure of the task with these sizes; what fails with some
        sizes fails with smaller ones.
        """
        assert isinstance(self.task, SeqComp)
        numbers = tuple(sizes.numbers.values())
        if (theorem.key, numbers) in self._memo:
            return self._memo[theorem.key, numbers]
        # only sizes of as many reading layers compare
        failing = self._failing.setdefault((theorem.key, len(numbers)), [])
        fails = any(
            all(mine <= theirs for mine, theirs in zip(numbers, larger, strict=True))
            for larger in failing
        )
        if not fails and not theorem.surely_silent(sizes, theorem.size(sizes, self.task)):
            try:
                fails = theorem.best_at(sizes, self.task) is not None
            # a comparison that stays open excludes nothing
            except Undecided:
                fails = False
            if fails:
                failing.append(numbers)
        self._memo[theorem.key, numbers] = fails
        return fails

    def solvable(self, arrangement: Arrangement, gaps: tuple[int, ...]) -> str | None:
        """A construction that solves the task, or None."""
        return self._first(self._solve, "SOLVABLE", Layout(arrangement, gaps).architecture)

    def _first(
        self, theorems: Sequence[Theorem], status: Status, stack: Architecture
    ) -> str | None:
        """The first of the theorems that gives a stack that status, or None."""
        for theorem in theorems:
            verdict = self.verdict(theorem, stack)
            if verdict is not None and verdict.status == status:
                return theorem.key
        return None

    def verdict(self, theorem: Theorem, stack: Architecture) -> Verdict | None:
        """What `judge` hears of one theorem about one stack."""
        found = judge(stack, self.task, among=lambda other: other is theorem)
        return found[0] if found else None
