"""The search: arrangements in order of cost, so that what comes later never dominates what is kept,
and most need not be judged at all; and why a point cannot be had for less: its neighbours with one
reading layer fewer, the next smaller memory, or readers elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import compress, groupby
from operator import methodcaller

from separatrix.cards.design.space import (
    NAMED,
    TOLD_APART,
    Arrangement,
    Cost,
    Layout,
    Space,
    check_fits,
)
from separatrix.core.errors import SizeError, Undecided
from separatrix.core.evidence.records import Status
from separatrix.core.numbers.amounts import check_context
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp, Task
from separatrix.theory.arguments import Sizes
from separatrix.theory.base import OF_THE_MODEL, Theorem, one_token_per_value
from separatrix.theory.fails.many_layers import MOST_READERS, ManyLayers
from separatrix.theory.judge import THEOREMS, graded, judge, said_by
from separatrix.theory.solves.room import Construction
from separatrix.theory.words import counted_as

MOST_EXPLAINED = 64
"""Points whose neighbours are looked at."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Neighbour:
    """A layout beside a point and what decides it: FAILS by a theorem at every placement named,
    or OPEN where no construction covers it.
    """

    change: str
    layout: Layout
    cost: Cost
    status: Status
    task: str
    theorem: str
    n: int | None
    """FAILS: the smallest n at which the theorem bites; for seqcomp the prompt's tokens."""
    ceiling: int | None = None
    """FAILS: how many of random questions any weights answer, at most, in millionths."""


@dataclass(frozen=True)
class Point:
    """A cost on the front and the layouts that have it, one for every placement the theorems can
    tell apart, evenly spaced ones first.
    """

    cost: Cost
    layouts: tuple[Layout, ...]
    neighbours: tuple[Neighbour, ...] = ()

    @property
    def layout(self) -> Layout:
        """The layout that stands for the point."""
        return self.layouts[0]


@dataclass(frozen=True)
class DesignResult:
    """The two Pareto fronts over (cache bits, flops, reading layers), least cache first, and what
    kept other layouts out.

    `not_excluded`: no theorem says FAILS on any task, and the cache fits the budget. `proved`:
    constructions solve every task, too.
    """

    tasks: tuple[Task, ...]
    context: int
    budget_bits: int
    space: Space
    not_excluded: tuple[Point, ...]
    proved: tuple[Point, ...]
    layouts: int
    """Layouts looked at, one for every placement the theorems can tell apart."""
    within: int
    """How many of them fit the budget."""
    judged: int
    """How many of them had to be judged; the others cost no less than one that was kept."""
    excluded: dict[tuple[str, str], int] = field(default_factory=dict)
    """(theorem, task) -> judged layouts within the budget that it excludes."""
    beyond: Point | None = None
    """With nothing within the budget: the smallest cache that is not excluded, if any."""
    beyond_proved: Point | None = None
    """With nothing proved within the budget: the smallest cache proved sufficient, if any."""

    @cached_property
    def rests_on(self) -> tuple[str, ...]:
        """What verdicts on these tasks take for granted, and constructions of the proved layouts
        above all: where tokens know their places from.
        """
        proved = self.proved or ((self.beyond_proved,) if self.beyond_proved else ())
        said = [
            text
            for point in proved[:MOST_EXPLAINED]
            for task in self.tasks
            for verdict in judge(point.layout.architecture, task, among=Theorem.solves_at_once)[:1]
            for text in verdict.assumptions
            if text.startswith(OF_THE_MODEL)
        ]
        return tuple(dict.fromkeys((*said, *map(one_token_per_value, self.tasks))))


def design(
    tasks: Sequence[Task],
    *,
    context: int,
    cache_bits: int,
    space: Space,
    progress: Progress | None = None,
) -> DesignResult:
    """Every layout of the space judged against every task at a context of that many tokens and a
    cache budget in bits, one sequence.

    `progress` is called with (layouts done, all). Raises SizeError for no tasks, a context or
    budget out of range, and a task that does not fit in the context.
    """
    check_context(context)
    if not tasks:
        raise SizeError("no task is given; name at least one, such as --task seqcomp:L=2")
    if type(cache_bits) is not int or cache_bits < 0:
        raise SizeError(f"cache budget is {cache_bits!r} bits; it must be an integer of at least 0")
    for task in tasks:
        check_fits(task, context)
    return _Search(tuple(dict.fromkeys(tasks)), context, cache_bits, space).run(
        progress or (lambda done, total: None)
    )


class _Front(dict[Cost, list[Layout]]):
    """Layouts that no cheaper one replaces, by cost; with none within the budget, those of the
    smallest cache beyond it.
    """

    def take(self, cost: Cost, layouts: list[Layout], within: bool) -> None:
        if layouts and self.wants(cost, within):
            self.setdefault(cost, []).extend(layouts)

    def wants(self, cost: Cost, within: bool) -> bool:
        """Whether a layout of that cost, no cheaper than those seen before, can still matter."""
        if not within:
            return not self or cost in self
        return not any(kept.dominates(cost) for kept in self)


def told_apart(tasks: Sequence[Task], space: Space) -> int:
    """Up to how many reading layers theorems may see what stands in every gap: two, or as many as
    Theorem VI or VII may speak of.
    """
    many = [theorem for theorem in THEOREMS.values() if isinstance(theorem, ManyLayers)]
    composed = [task for task in tasks if isinstance(task, SeqComp)]
    for readers in range(MOST_READERS, TOLD_APART, -1):
        for h in {sum(part.read_bits() for part in reader) for reader in space.readers}:
            sizes = Sizes((h,) * readers, (0,) * (readers + 1), (0,) * readers)
            if any(
                theorem.covers(readers, task)
                and not theorem.surely_silent(sizes, theorem.size(sizes, task))
                for theorem in many
                for task in composed
            ):
                return readers
    return TOLD_APART


def says(status: Status, theorem: Theorem, stack: Architecture, task: Task) -> bool:
    """Whether it says so at this size; from which one on it says FAILS, which takes a search of its
    own, is not asked, and of a construction only whether it has room, which no record tells.
    """
    if isinstance(theorem, Construction):
        return (
            status == "SOLVABLE" and theorem.speaks_of(stack) and bool(theorem.found(stack, task))
        )
    if status == "FAILS":
        with suppress(Undecided):
            return theorem.speaks_of(stack) and theorem.fails_at(stack, task)
        return False
    verdict = said_by(theorem, stack, task)
    return verdict is not None and verdict.status == status


class _Search:
    def __init__(self, tasks: tuple[Task, ...], context: int, budget: int, space: Space) -> None:
        self.tasks = tasks
        self.context = context
        self.budget = budget
        self.space = space
        self.arrangements = space.arrangements(told_apart(tasks, space))
        failing = [theorem for theorem in THEOREMS.values() if theorem.fails_at_once()]
        # those that say FAILS wherever the reading layers stand, and those that look where
        self.anywhere = [theorem for theorem in failing if theorem.anywhere]
        self.somewhere = [theorem for theorem in failing if not theorem.anywhere]
        self.solving = [theorem for theorem in THEOREMS.values() if theorem.solves_at_once()]
        self.open = _Front()
        self.proved = _Front()
        self.judged = 0
        self.excluded = Counter[tuple[Task, str]]()

    def run(self, progress: Progress) -> DesignResult:
        classes = [arrangement.classes() for arrangement in self.arrangements]
        total = sum(classes)
        done = 0
        costed = sorted((one.cost(self.context), at) for at, one in enumerate(self.arrangements))
        for cost, same in groupby(costed, key=lambda item: item[0]):
            within = cost.cache_bits <= self.budget
            # sorted by cache: if nothing fits any more and no front wants more, that stays so
            if not (within or self.proved.wants(cost, within) or self.open.wants(cost, within)):
                break
            for _, at in same:
                self._judge(self.arrangements[at], cost, within)
                done += classes[at]
                progress(done, total)
        progress(total, total)
        not_excluded, beyond = self._explained(self.open, proved=False)
        proved, beyond_proved = self._explained(self.proved, proved=True)
        return DesignResult(
            tasks=self.tasks,
            context=self.context,
            budget_bits=self.budget,
            space=self.space,
            not_excluded=not_excluded,
            proved=proved,
            layouts=total,
            within=sum(classes[at] for cost, at in costed if cost.cache_bits <= self.budget),
            judged=self.judged,
            excluded={(theorem, task.spec): n for (task, theorem), n in self.excluded.items()},
            beyond=beyond,
            beyond_proved=beyond_proved,
        )

    def _judge(self, arrangement: Arrangement, cost: Cost, within: bool) -> None:
        want_open = self.open.wants(cost, within)
        if not (want_open or self.proved.wants(cost, within)):
            return
        layouts = arrangement.layouts()
        self.judged += len(layouts)
        found = self._fails(self.anywhere, layouts[0])
        fails = [found] * len(layouts)
        if found is None:
            solved = self._solved(layouts)
            self.proved.take(cost, [*compress(layouts, solved)], within)
            if not want_open:
                return
            for at, layout in enumerate(layouts):
                # what a construction solves no theorem excludes, so none need be asked
                fails[at] = None if solved[at] else self._fails(self.somewhere, layout)
            self.open.take(cost, [*compress(layouts, (one is None for one in fails))], within)
        if within:
            self.excluded.update(filter(None, fails))

    def _fails(self, theorems: Sequence[Theorem], layout: Layout) -> tuple[Task, str] | None:
        """The first task, and the first of the theorems, that exclude it."""
        every = ((task, theorem) for task in self.tasks for theorem in theorems)
        stack = layout.architecture
        return next(((task, t.key) for task, t in every if says("FAILS", t, stack, task)), None)

    def _solved(self, layouts: Sequence[Layout]) -> list[bool]:
        """Of layouts of one arrangement, whether constructions solve every task."""
        stack = layouts[0].architecture
        asked = {
            task: [theorem for theorem in self.solving if theorem.may_solve(stack, task)]
            for task in self.tasks
        }
        if not all(asked.values()):
            return [False] * len(layouts)
        return [all(_solves(one, *which) for which in asked.items()) for one in layouts]

    def _explained(self, front: _Front, *, proved: bool) -> tuple[tuple[Point, ...], Point | None]:
        """Its points within the budget, or the one beyond."""
        points = [Point(cost, _in_order(layouts)) for cost, layouts in front.items()]
        if points and points[0].cost.cache_bits > self.budget:
            return (), points[0]
        near = points[:MOST_EXPLAINED]
        told = [replace(point, neighbours=self.neighbours(point, proved=proved)) for point in near]
        return (*told, *points[MOST_EXPLAINED:]), None

    def neighbours(self, point: Point, *, proved: bool) -> tuple[Neighbour, ...]:
        """What stands beside a point; with `proved`, layouts without a construction count too."""
        mine = point.layout.arrangement
        reading = {part.group for part in mine.reader or () if part.reading}
        kind = "full" if reading == {"full"} else "reading"
        # the same cycle of bounded layers, which takes the free place
        fewer = [one for one in self._like(mine, 1) if one.fill[: len(mine.fill)] == mine.fill]
        cost = methodcaller("cost", self.context)
        smaller = [one for one in self._like(mine) if cost(one).cache_bits < point.cost.cache_bits]
        beside = {
            f"one {kind} layer fewer": min(fewer, key=cost, default=None),
            "the next smaller memory in the other layers": max(smaller, key=cost, default=None),
        }
        own = {one.gaps for one in point.layouts if one.arrangement == mine}
        elsewhere = [one for one in mine.layouts() if one.gaps not in own]
        moved = f"the reading layers elsewhere ({counted_as(len(elsewhere), 'other placement')})"
        found = [self._beside(text, one.layouts(), proved) for text, one in beside.items() if one]
        found.append(self._beside(moved, elsewhere, proved, some=True))
        return tuple(filter(None, found))

    def _like(self, mine: Arrangement, fewer: int = 0) -> Iterator[Arrangement]:
        """Those of as many layers, so many fewer of them reading ones of the same kind."""
        reading = mine.reading - fewer
        # without reading layers an arrangement has no reader
        reader = mine.reader if reading else None
        for one in self.arrangements:
            if (one.reading, one.depth) == (reading, mine.depth) and one.reader == reader:
                yield one

    def _beside(
        self, change: str, layouts: Sequence[Layout], proved: bool, *, some: bool = False
    ) -> Neighbour | None:
        """What decides these layouts: a theorem that excludes all of them, or `some`; else a task
        that is not known to be solved by any.
        """
        if not layouts:
            return None
        anywhere = None if some else self._fails(self.anywhere, layouts[0])
        said = [(one, anywhere or self._fails(self.somewhere, one)) for one in layouts]
        failing = [(one, found) for one, found in said if found is not None]
        if failing and (some or len(failing) == len(layouts)):
            layout, (task, key) = failing[0]
            bites = _bites(key, layout.architecture, task)
            cost = layout.arrangement.cost(self.context)
            return Neighbour(change, layout, cost, "FAILS", task.spec, key, *bites)
        left = [one for one, found in said if found is None]
        for task in self.tasks if proved else ():
            if not any(_solves(one, task, self.solving) for one in left):
                cost = left[0].arrangement.cost(self.context)
                return Neighbour(change, left[0], cost, "OPEN", task.spec, "none", None)
        return None


def _solves(layout: Layout, task: Task, theorems: Sequence[Theorem]) -> bool:
    return any(says("SOLVABLE", theorem, layout.architecture, task) for theorem in theorems)


@lru_cache(maxsize=MOST_EXPLAINED)
def _bites(key: str, stack: Architecture, task: Task) -> tuple[int | None, int | None]:
    """The n from which a theorem bites, and how badly the task fails."""
    verdict = said_by(THEOREMS[key], stack, task)
    grade = graded(stack, task)
    return verdict and verdict.n, grade and grade.numbers["ceiling_millionths"]


def _in_order(layouts: Sequence[Layout]) -> tuple[Layout, ...]:
    """Evenly spaced layouts first, then at the end, then at the start; the shallower first."""

    def order(layout: Layout) -> tuple[int, int]:
        return [*NAMED.values(), layout.place].index(layout.place), layout.arrangement.depth

    return tuple(sorted(layouts, key=order))
