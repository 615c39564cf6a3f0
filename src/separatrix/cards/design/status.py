"""The statuses of one task, asked of the theorems as seldom as they allow: once for everything they
cannot tell apart.

What a theorem looks at of a stack is a trait of its class (`Sees`), and says how often it is asked:

- the cache, or how many layers of each kind: once per arrangement;
- which layers there are, reading layers, or what stands before the second of them: once for these;
- sizes of groups of layers: once per sizes, and what fails with some sizes fails with smaller ones.

A theorem that names no such trait is asked about every single stack, so that a new one can only
make `design` slower, not wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from math import isqrt
from typing import Any, TypeVar, cast

from separatrix.cards.design.space import Arrangement, Layout
from separatrix.core.errors import Undecided
from separatrix.core.evidence.records import Status, Verdict
from separatrix.stacks.architecture import Architecture, Layer
from separatrix.tasks import Family, SeqComp, Task
from separatrix.theory.base import CacheTheorem, Sees, Theorem
from separatrix.theory.fails.reading_layers import CacheSizes, DepthTheorem
from separatrix.theory.judge import THEOREMS, judge

Answer = TypeVar("Answer")
_BySight = list[tuple[Sees, list[Theorem]]]


def _by_sight(theorems: Sequence[Theorem], *sights: Sees) -> _BySight:
    """Theorems by what they look at, in that order; those that look at anything else left out."""
    groups = ((sees, [t for t in theorems if t.sees is sees]) for sees in sights)
    return [(sees, alike) for sees, alike in groups if alike]


class TaskJudge:
    """What `judge` says of one task on many layouts. Same answers, fewer questions."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._memo: dict[Hashable, Any] = {}
        self._failing: dict[tuple[str, int], list[tuple[int, ...]]] = {}
        deciding = [t for t in THEOREMS.values() if t.at_once]
        failing = [t for t in deciding if "FAILS" in t.shows]
        self._about_caches = [t for t in failing if isinstance(t, CacheTheorem)]
        self._about_depth: list[DepthTheorem[Any, Any]] = [
            t for t in failing if isinstance(t, DepthTheorem)
        ]
        others = [t for t in failing if t not in self._about_depth]
        solving = [t for t in deciding if "SOLVABLE" in t.shows]
        self._fail_anywhere = _by_sight(others, Sees.READERS, Sees.COUNTS)
        self._fail_somewhere = _by_sight(others, Sees.CARRIERS, Sees.STACK)
        # those that are asked about every stack come last
        self._solve = _by_sight(solving, Sees.LAYERS, Sees.READERS, Sees.CARRIERS, Sees.STACK)

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
        # these theorems see the same wherever the reading layers stand
        anywhere = next(arrangement.placements())
        return self._any(self._fail_anywhere, "FAILS", arrangement, anywhere)

    def placement_fails(self, arrangement: Arrangement, gaps: tuple[int, ...]) -> str | None:
        """A theorem that says FAILS with the reading layers there, beside those of
        `arrangement_fails`; None if none does.
        """
        for theorem in self._about_depth:
            if not isinstance(self.task, SeqComp) or not theorem.covers(
                arrangement.reading, self.task
            ):
                continue
            sizes = theorem.sizes(Layout(arrangement, gaps).architecture, self.task.length)
            if sizes is not None and self._sizes_fail(theorem, sizes):
                return theorem.key
        return self._any(self._fail_somewhere, "FAILS", arrangement, gaps)

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
        return self._any(self._solve, "SOLVABLE", arrangement, gaps)

    def _any(
        self, theorems: _BySight, status: Status, arrangement: Arrangement, gaps: tuple[int, ...]
    ) -> str | None:
        """The first of the theorems that gives a layout that status, or None."""
        for sees, alike in theorems:
            seen = self._seen(sees, arrangement, gaps)
            if seen is None:
                continue
            mark, layers = seen
            key = (sees, status, mark)
            if key not in self._memo:
                self._memo[key] = self._first(alike, status, Architecture(layers))
            if self._memo[key] is not None:
                return self._memo[key]
        return None

    def _first(
        self, theorems: Sequence[Theorem], status: Status, stack: Architecture
    ) -> str | None:
        """The first of the theorems that gives a stack that status, or None."""
        for theorem in theorems:
            verdict = self.verdict(theorem, stack)
            if verdict is not None and verdict.status == status:
                return theorem.key
        return None

    def _seen(
        self, sees: Sees, arrangement: Arrangement, gaps: tuple[int, ...]
    ) -> tuple[Hashable, tuple[Layer, ...]] | None:
        """What such a theorem looks at of a layout: a mark that tells it apart, and the layers of a
        stack that agrees with the layout in it. None where the theorem is silent.
        """
        reader = arrangement.reader
        if self._sees_whole(arrangement) or (
            sees in (Sees.READERS, Sees.CARRIERS) and self._places_matter(arrangement)
        ):
            layout = Layout(arrangement, gaps)
            return layout, layout.layers
        if sees is Sees.LAYERS:
            readers = () if reader is None else (reader,)
            layers = tuple(dict.fromkeys((*arrangement.filled(), *readers)))
            return layers, layers
        if sees is Sees.READERS:
            # two of a kind stand for more of it
            layers = arrangement.fill
            if reader is not None:
                layers = (reader,) * min(arrangement.reading, 2)
            return layers, layers
        if sees is Sees.CARRIERS:
            if reader is None:
                return None
            # a second round of the cycle brings no new kind of layer
            before = min(sum(gaps[: min(2, arrangement.reading)]), len(arrangement.fill))
            carriers = arrangement.fill[:before]
            mark = (carriers, reader, arrangement.reading)
            return mark, (*carriers, *(reader,) * arrangement.reading)
        layout = Layout(arrangement, gaps)
        # wherever they stand, the layers are the same
        return arrangement if sees is Sees.COUNTS else layout, layout.layers

    def _sees_whole(self, arrangement: Arrangement) -> bool:
        """Whether a window reads the whole prompt, and so is no bounded layer to constructions."""
        tokens = self.task.length
        return any(
            self._once(
                ("whole", layer), lambda layer=layer: any(p.within(tokens) is not p for p in layer)
            )
            for layer in arrangement.fill
        )

    def _places_matter(self, arrangement: Arrangement) -> bool:
        """Whether what reading layers know of places depends on the bounded layers, and on where
        these stand: they may lack embeddings, or count tokens for readers that have none.
        """
        if arrangement.reader is None:
            return False
        alone = Architecture((arrangement.reader,)).positions
        with_fill = Architecture((arrangement.reader, *arrangement.fill)).positions
        if alone != with_fill:
            return True
        counts = any(part.counted_bits for layer in arrangement.fill for part in layer)
        return alone == "none" and counts

    def verdict(self, theorem: Theorem, stack: Architecture) -> Verdict | None:
        """What `judge` hears of one theorem about one stack."""
        found = judge(stack, self.task, among=lambda other: other is theorem)
        return found[0] if found else None
