"""What the theorems say about one task, asked as seldom as they allow: once for everything they
cannot tell apart.

Position-free theorems are asked once per family, the composition of retrieval heads once per set of
bounded layers before the second reading layer, Theorems III, IV and V once per sizes; what they
show for some sizes they show for smaller ones. A theorem that is not named here is asked about
every single stack, so that a new one can only make `design` slower, not wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from functools import cached_property
from math import isqrt
from typing import Any, cast

from separatrix.architecture import Architecture, Group, Layer, bounded_bits
from separatrix.design.reach import surely_silent
from separatrix.design.space import Family, Layout
from separatrix.errors import Undecided
from separatrix.evidence.records import Status
from separatrix.tasks import Family as TaskFamily
from separatrix.tasks import SeqComp, Task
from separatrix.theory.base import Theorem
from separatrix.theory.depth import DepthTheorem
from separatrix.theory.judge import THEOREMS

NEVER_DECIDE = frozenset({"none", "lifting", "CPW-1.1", "Ye26-1.1", "thought"})
"""Theorems that say OPEN, or nothing, at every finite size about answers given at once."""
ONE_MEMORY = frozenset({"I'", "II"})
"""Theorems about stacks with one layer that has memory."""
ANYWHERE = frozenset(
    {"retrieval", "block-retrieval", "indexed-retrieval", "match2", "pairs", "equality"}
)
"""Constructions that ask for one reading layer or two, wherever they stand."""
_LONG = 1 << 20


class _Outline:
    """What Theorems III, IV and V look at of a stack, without its layers written out: see
    `Architecture` for each name.
    """

    def __init__(self, family: Family, gaps: tuple[int, ...], prefix: list[int]) -> None:
        self.family = family
        self.gaps = gaps
        self.prefix = prefix
        self.reading = tuple(range(family.reading))
        self.layers: dict[int, Layer | None] = dict.fromkeys(self.reading, family.reader)

    def read_bits(self, index: int) -> int:
        return sum(part.read_bits() for part in self.family.reader or ())

    def groups(self, t: int) -> tuple[Group, ...]:
        inside, convolution = _reader_bits(self.family.reader or (), t)
        groups = []
        start = 0
        for number, gap in enumerate(self.gaps):
            between = self.prefix[start + gap] - self.prefix[start]
            start += gap
            groups.append(
                Group(
                    inside if number else 0,
                    between + (convolution if number < self.family.reading else 0),
                )
            )
        return tuple(groups)


def _reader_bits(reader: Layer, t: int) -> tuple[int, int]:
    """Bits of a reading layer that join the group after it, and those of its short convolutions,
    which join the group before it.
    """
    alone = Architecture((reader,)).groups(t)
    return bounded_bits(reader, t), alone[0].between


class Oracle:
    """The statuses of one task. Same arguments, same answers as `judge`."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._memo: dict[Any, Any] = {}
        self._failing: dict[str, list[tuple[int, ...]]] = {}
        self._depth = [t for t in THEOREMS.values() if isinstance(t, DepthTheorem)]
        self._others = [
            t
            for key, t in THEOREMS.items()
            if not isinstance(t, DepthTheorem)
            and key not in NEVER_DECIDE | ONE_MEMORY | ANYWHERE | {"I", "composition"}
        ]

    def _once(self, key: Any, answer: Callable[[], Any]) -> Any:
        if key not in self._memo:
            self._memo[key] = answer()
        return self._memo[key]

    @cached_property
    def _family(self) -> TaskFamily[Task]:
        return self.task.family()

    def _needed(self, n: int) -> int:
        """Bits of cache with which Theorem I is silent about the prefix of the task's family at n;
        0 where there is no count, or its comparison stays open.
        """

        def needed() -> int:
            count = self._family.at(n).prefix_classes()
            return 0 if count is None else count.ceil_log2()

        try:
            return self._once(("needed", n), needed)
        except Undecided:
            return 0

    def cache_fails(self, cache: Callable[[int], int]) -> bool:
        """Whether Theorem I says FAILS with so much cache after so many tokens: at the task's own
        prefix, or at a shorter one of its family.

        Caches and classes only grow with n, so an interval is settled when the cache at its start
        is enough for the classes at its end.
        """

        def enough(low: int, high: int) -> bool:
            if cache(self._prefix_length(low)) >= self._needed(high):
                return True
            if low == high:
                return False
            middle = max(low, min(isqrt(low * high), high - 1))
            return enough(middle + 1, high) and enough(low, middle)

        own = self.task.sizes()[self._family.grows]
        return not enough(min(self._family.smallest, own), own)

    def _prefix_length(self, n: int) -> int:
        return self._once(("prefix", n), lambda: self._family.at(n).prefix_length)

    def family_fails(self, family: Family, cache_bits: Callable[[Family, int], int]) -> str | None:
        """A theorem that says FAILS wherever the reading layers stand, or None."""
        if "I" in THEOREMS and self.cache_fails(lambda t: cache_bits(family, t)):
            return "I"
        if (
            family.reading < 2
            and family.reading + sum(self._remembers(layer) for layer in family.filled()) == 1
        ):
            stack = Layout(family, next(family.placements())).architecture
            return next(
                (key for key in sorted(ONE_MEMORY) if self._says(THEOREMS[key], stack) == "FAILS"),
                None,
            )
        return None

    def placement_fails(
        self, family: Family, gaps: tuple[int, ...], prefix: Callable[[Family, int], list[int]]
    ) -> str | None:
        """A theorem that says FAILS with the reading layers there, beside those of
        `family_fails`; None if none does.
        """
        for theorem in self._depth:
            if (
                not isinstance(self.task, SeqComp)
                or family.reading != theorem.reading_layers
                or theorem.least_steps > self.task.L
            ):
                continue
            outline = cast(Architecture, _Outline(family, gaps, prefix(family, self.task.length)))
            sizes = theorem.sizes(outline, self.task.length)
            if sizes is not None and self._sizes_fail(theorem, sizes):
                return theorem.key
        return next((key for key, status in self._rest(family, gaps) if status == "FAILS"), None)

    def _sizes_fail(self, theorem: DepthTheorem, sizes: Any) -> bool:
        """Whether the theorem shows failure of the task with these sizes; what fails with some
        sizes fails with smaller ones.
        """
        assert isinstance(self.task, SeqComp)
        numbers = astuple(sizes)
        if (theorem.key, numbers) in self._memo:
            return self._memo[theorem.key, numbers]
        failing = self._failing.setdefault(theorem.key, [])
        fails = any(
            all(mine <= theirs for mine, theirs in zip(numbers, larger, strict=True))
            for larger in failing
        )
        if not fails and not surely_silent(sizes, self.task):
            try:
                fails = theorem.best_at(sizes, self.task) is not None
            except Undecided:
                fails = False
            if fails:
                failing.append(numbers)
        self._memo[theorem.key, numbers] = fails
        return fails

    def solvable(self, family: Family, gaps: tuple[int, ...]) -> str | None:
        """A construction that solves the task, or None."""
        layers = (
            (family.reader,) * min(family.reading, 2) if family.reader is not None else family.fill
        )
        for key in sorted(ANYWHERE & THEOREMS.keys()):
            if (
                self._once(
                    (key, layers),
                    lambda key=key, layers=layers: self._says(THEOREMS[key], Architecture(layers)),
                )
                == "SOLVABLE"
            ):
                return key
        if "composition" in THEOREMS and self._composes(family, gaps):
            return "composition"
        return next((key for key, status in self._rest(family, gaps) if status == "SOLVABLE"), None)

    def _composes(self, family: Family, gaps: tuple[int, ...]) -> bool:
        """Whether retrieval heads compose: only the bounded layers before the second reading
        layer (the first, of one) count.
        """
        if not isinstance(self.task, SeqComp) or family.reader is None:
            return False
        before = min(sum(gaps[: min(2, family.reading)]), len(family.fill))
        carriers = family.fill[:before]
        readers = (family.reader,) * family.reading
        key = ("composition", carriers, family.reader, family.reading)
        return (
            self._once(
                key,
                lambda: self._says(THEOREMS["composition"], Architecture((*carriers, *readers))),
            )
            == "SOLVABLE"
        )

    def _rest(self, family: Family, gaps: tuple[int, ...]) -> list[tuple[str, Status | None]]:
        if not self._others:
            return []
        stack = Layout(family, gaps)
        return self._once(
            ("rest", family, gaps),
            lambda: [(t.key, self._says(t, stack.architecture)) for t in self._others],
        )

    def _says(self, theorem: Theorem, architecture: Architecture) -> Status | None:
        try:
            verdict = theorem.judge(architecture, self.task)
        except Undecided:
            return None
        return None if verdict is None else verdict.status

    def _remembers(self, layer: Layer) -> bool:
        return self._once(("memory", layer), lambda: any(part.cache_bits(_LONG) for part in layer))
