"""The statuses of one task, asked of the theorems as seldom as they allow: those about caches, or
about layers wherever they stand, once per arrangement; those about groups of layers once per sizes,
for what fails with some sizes fails with smaller ones; all others about every stack.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import le
from typing import Any, TypeVar

from separatrix.cards.design.space import Arrangement, Layout
from separatrix.core.errors import Undecided
from separatrix.core.evidence.records import Status, Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp, Task
from separatrix.theory.arguments import Sizes
from separatrix.theory.base import Theorem
from separatrix.theory.fails.reading_layers import DepthTheorem
from separatrix.theory.judge import THEOREMS, said_by
from separatrix.theory.solves.room import Construction

Answer = TypeVar("Answer")


class TaskJudge:
    """What `judge` says of one task on many layouts. Same answers, fewer questions."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._memo: dict[Hashable, Any] = {}
        self._failing: dict[tuple[str, int], list[tuple[int, ...]]] = {}
        family = task.family()
        self._least = family.at(family.smallest).prefix_length
        failing = [t for t in THEOREMS.values() if t.fails_at_once()]
        self._about_depth: list[DepthTheorem[Any]] = [
            t for t in failing if isinstance(t, DepthTheorem)
        ]
        others = [t for t in failing if not isinstance(t, DepthTheorem)]
        self._fail_anywhere = [t for t in others if t.anywhere]
        self._fail_somewhere = [t for t in others if not t.anywhere]
        self._solve = [
            t
            for t in THEOREMS.values()
            if t.solves_at_once() and (not isinstance(t, Construction) or task.name in t.about)
        ]

    def arrangement_fails(self, arrangement: Arrangement) -> str | None:
        """A theorem that says FAILS wherever the reading layers stand, or None."""
        stack = Layout(arrangement, next(arrangement.placements())).architecture
        asked = [x for x in self._fail_anywhere if not (x.key == "I" and self._holds_all(stack))]
        return self._first(asked, "FAILS", stack)

    def _holds_all(self, stack: Architecture) -> bool:
        """Whether Theorem I is surely silent: what the task tells apart has room after the least
        prefix of its family, and so at every size between.
        """
        count, least = self.task.prefix_classes(), self._least
        try:
            return count is not None and not count.exceeds_bits(stack.cache_bits(least))
        except Undecided:
            return False

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

    def _sizes_fail(self, theorem: DepthTheorem[Any], sizes: Sizes) -> bool:
        """Whether the theorem shows failure of the task with these sizes; what fails with some
        sizes fails with smaller ones.
        """
        assert isinstance(self.task, SeqComp)
        numbers = tuple(sizes.numbers.values())
        if (theorem.key, numbers) in self._memo:
            return self._memo[theorem.key, numbers]
        # only sizes of as many reading layers compare
        failing = self._failing.setdefault((theorem.key, len(numbers)), [])
        fails = any(all(map(le, numbers, larger)) for larger in failing)
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
        for theorem in theorems:
            verdict = self.verdict(theorem, stack)
            if verdict is not None and verdict.status == status:
                return theorem.key
        return None

    def verdict(self, theorem: Theorem, stack: Architecture) -> Verdict | None:
        """What `judge` hears of one theorem about one stack."""
        return said_by(theorem, stack, self.task)
