"""The search: arrangements in order of cost, so that what comes later never dominates what is kept,
and most need not be judged at all; and why a point cannot be had for less: its neighbours with one
reading layer fewer, the next smaller memory, or readers elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import groupby
from operator import le
from typing import Any, TypeVar

from separatrix.cards.design.space import (
    TOLD_APART,
    Arrangement,
    Cost,
    Costs,
    Layout,
    Space,
    check_fits,
)
from separatrix.core.errors import SizeError, Undecided
from separatrix.core.evidence.records import Status, Verdict
from separatrix.core.numbers.amounts import check_context
from separatrix.stacks.architecture import Architecture, Layer
from separatrix.tasks import SeqComp, Task
from separatrix.theory.arguments import Sizes
from separatrix.theory.base import Theorem, one_token_per_value
from separatrix.theory.fails.many_layers import MOST_READERS, ManyLayers
from separatrix.theory.fails.reading_layers import DepthTheorem
from separatrix.theory.judge import THEOREMS, graded, said_by
from separatrix.theory.judge import judge as verdicts_on
from separatrix.theory.solves.room import Construction
from separatrix.theory.words import counted_as

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
        """Whether it shows failure with these sizes; what fails with some fails with smaller."""
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
            for verdict in verdicts_on(
                point.layout.architecture, task, among=Theorem.solves_at_once
            )[:1]
            for text in verdict.assumptions
            if text.startswith("positions:")
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
        raise SizeError(
            "no task is given; name at least one, such as --task seqcomp:L=2 (`separatrix list"
            " tasks` lists all)"
        )
    if type(cache_bits) is not int or cache_bits < 0:
        raise SizeError(f"cache budget is {cache_bits!r} bits; it must be an integer of at least 0")
    for task in tasks:
        check_fits(task, context)
    return _Search(tuple(dict.fromkeys(tasks)), context, cache_bits, space).run(
        progress or (lambda done, total: None)
    )


@dataclass
class _Front:
    points: dict[Cost, list[Layout]] = field(default_factory=dict)
    beyond: tuple[Cost, list[Layout]] | None = None

    def take(self, cost: Cost, layouts: list[Layout], within: bool) -> None:
        if not layouts:
            return
        if within:
            self.points.setdefault(cost, []).extend(layouts)
        elif self.wants(cost, within):
            self.beyond = (cost, [*(self.beyond[1] if self.beyond else []), *layouts])

    def wants(self, cost: Cost, within: bool) -> bool:
        """Whether a layout of that cost, no cheaper than those seen before, can still matter."""
        if within:
            return not any(kept.dominates(cost) for kept in self.points)
        return not self.points and (self.beyond is None or self.beyond[0] == cost)


def told_apart(tasks: Sequence[Task], space: Space) -> int:
    """Up to how many reading layers the theorems may see what stands in every gap."""
    speaking = [
        readers
        for readers in range(TOLD_APART + 1, MOST_READERS + 1)
        for task in tasks
        for reader in space.readers
        if isinstance(task, SeqComp) and may_speak(readers, reader, task)
    ]
    return max(speaking, default=TOLD_APART)


def may_speak(readers: int, reader: Layer, task: SeqComp) -> bool:
    """Whether Theorem VI or VII may show failure of the task in stacks of so many such reading
    layers; False only where they cannot.
    """
    h = sum(part.read_bits() for part in reader)
    sizes = Sizes((h,) * readers, (0,) * (readers + 1), (0,) * readers)
    return any(
        theorem.covers(readers, task)
        and not theorem.surely_silent(sizes, theorem.size(sizes, task))
        for theorem in THEOREMS.values()
        if isinstance(theorem, ManyLayers)
    )


_Excluded = tuple[TaskJudge, str]
_Kind = tuple[int, int, int]


def _kind(arrangement: Arrangement) -> _Kind:
    """The reading layer, which is one object in all of a space, how many read, and of how many."""
    return id(arrangement.reader), arrangement.reading, arrangement.depth


class _Search:
    def __init__(self, tasks: tuple[Task, ...], context: int, budget: int, space: Space) -> None:
        self.tasks = tasks
        self.context = context
        self.budget = budget
        self.space = replace(space, told_apart=told_apart(tasks, space))
        self.costs = Costs(context)
        self.judges = [TaskJudge(task) for task in tasks]
        self.arrangements = self.space.arrangements()
        self.open = _Front()
        self.proved = _Front()
        self.judged = 0
        self.excluded = Counter[tuple[str, str]]()
        self._by_kind: dict[_Kind, list[Arrangement]] = {}
        for arrangement in self.arrangements:
            self._by_kind.setdefault(_kind(arrangement), []).append(arrangement)
        self._bites = cache(_bites)

    def run(self, progress: Progress) -> DesignResult:
        classes = [arrangement.classes(self.space.places) for arrangement in self.arrangements]
        total = sum(classes)
        done = 0
        costed = sorted((self.costs.cost(one), at) for at, one in enumerate(self.arrangements))
        for cost, same in groupby(costed, key=lambda item: item[0]):
            within = cost.cache_bits <= self.budget
            # sorted by cache: if nothing fits any more and no front wants more, that stays so
            if not (within or self.proved.wants(cost, within) or self.open.wants(cost, within)):
                break
            for _, at in same:
                self._judge(self.arrangements[at], cost, within, classes[at])
                done += classes[at]
                progress(done, total)
        progress(total, total)
        return DesignResult(
            tasks=self.tasks,
            context=self.context,
            budget_bits=self.budget,
            space=self.space,
            not_excluded=self._explained(self.open, proved=False),
            proved=self._explained(self.proved, proved=True),
            layouts=total,
            within=sum(classes[at] for cost, at in costed if cost.cache_bits <= self.budget),
            judged=self.judged,
            excluded=dict(self.excluded),
            beyond=self.open.beyond and _point(*self.open.beyond),
            beyond_proved=self.proved.beyond and _point(*self.proved.beyond),
        )

    def _judge(self, arrangement: Arrangement, cost: Cost, within: bool, classes: int) -> None:
        want_proved = self.proved.wants(cost, within)
        want_open = self.open.wants(cost, within)
        if not (want_proved or want_open):
            return
        self.judged += classes
        found = self._fails_anywhere(arrangement)
        if found is not None:
            self._exclude(found, classes, within)
            return
        gaps = list(arrangement.placements(self.space.places))
        solved = [
            gap for gap in gaps if all(judge.solvable(arrangement, gap) for judge in self.judges)
        ]
        if want_proved:
            self.proved.take(cost, [Layout(arrangement, gap) for gap in solved], within)
        if want_open:
            # what a construction solves no theorem excludes, so none need be asked
            known = set(solved)
            others = {gap: self._fails_there(arrangement, gap) for gap in gaps if gap not in known}
            for found in filter(None, others.values()):
                self._exclude(found, 1, within)
            kept = [Layout(arrangement, gap) for gap in gaps if others.get(gap) is None]
            self.open.take(cost, kept, within)

    def _exclude(self, found: _Excluded, layouts: int, within: bool) -> None:
        judge, theorem = found
        if within:
            self.excluded[theorem, judge.task.spec] += layouts

    def _fails_anywhere(self, arrangement: Arrangement) -> _Excluded | None:
        """The first task and theorem that exclude an arrangement wherever its readers stand."""
        asked = ((judge, judge.arrangement_fails(arrangement)) for judge in self.judges)
        return next(((judge, key) for judge, key in asked if key is not None), None)

    def _fails_there(self, arrangement: Arrangement, gaps: tuple[int, ...]) -> _Excluded | None:
        """Those that exclude it for where they stand."""
        asked = ((judge, judge.placement_fails(arrangement, gaps)) for judge in self.judges)
        return next(((judge, key) for judge, key in asked if key is not None), None)

    def _explained(self, front: _Front, *, proved: bool) -> tuple[Point, ...]:
        points = [_point(cost, layouts) for cost, layouts in front.points.items()]
        near = points[:MOST_EXPLAINED]
        told = [replace(point, neighbours=self.neighbours(point, proved=proved)) for point in near]
        return (*told, *points[MOST_EXPLAINED:])

    def neighbours(self, point: Point, *, proved: bool) -> tuple[Neighbour, ...]:
        """What stands beside a point; with `proved`, layouts without a construction count too."""
        arrangement = point.layout.arrangement
        reading = {part.group for part in arrangement.reader or () if part.reading}
        beside = {
            f"one {'full' if reading == {'full'} else 'reading'} layer fewer": self._fewer(
                arrangement
            ),
            "the next smaller memory in the other layers": self._smaller(arrangement),
        }
        found = [self._whole(text, one, proved) for text, one in beside.items() if one is not None]
        return tuple(filter(None, (*found, self._elsewhere(point, proved))))

    def _fewer(self, arrangement: Arrangement) -> Arrangement | None:
        if not arrangement.reading:
            return None
        # without reading layers an arrangement has no reader
        reader = arrangement.reader if arrangement.reading > 1 else None
        others = self._by_kind.get((id(reader), arrangement.reading - 1, arrangement.depth), ())
        # the same cycle of bounded layers, which takes the free place
        own = [other for other in others if other.fill[: len(arrangement.fill)] == arrangement.fill]
        return min(own, key=self._cost, default=None)

    def _smaller(self, arrangement: Arrangement) -> Arrangement | None:
        mine = self._cost(arrangement)
        smaller = [
            other for other in self._by_kind[_kind(arrangement)] if self._cost(other)[0] < mine[0]
        ]
        return max(smaller, key=self._cost, default=None)

    def _cost(self, arrangement: Arrangement) -> tuple[int, int]:
        cost = self.costs.cost(arrangement)
        return cost.cache_bits, cost.flops

    def _whole(self, change: str, arrangement: Arrangement, proved: bool) -> Neighbour | None:
        placements = list(arrangement.placements(self.space.places))
        anywhere = self._fails_anywhere(arrangement)
        if anywhere is not None:
            return self._fails(change, Layout(arrangement, placements[0]), anywhere)
        excluded = {gaps: self._fails_there(arrangement, gaps) for gaps in placements}
        kept = [Layout(arrangement, gaps) for gaps, found in excluded.items() if found is None]
        decided = next(filter(None, excluded.values()), None)
        if decided is not None and not kept:
            return self._fails(change, Layout(arrangement, placements[0]), decided)
        return self._unsolved(change, kept) if proved else None

    def _elsewhere(self, point: Point, proved: bool) -> Neighbour | None:
        arrangement = point.layout.arrangement
        own = {one.gaps for one in point.layouts if one.arrangement == arrangement}
        others = [gaps for gaps in arrangement.placements(self.space.places) if gaps not in own]
        change = f"the reading layers elsewhere ({counted_as(len(others), 'other placement')})"
        for gaps in others:
            found = self._fails_there(arrangement, gaps)
            if found is not None:
                return self._fails(change, Layout(arrangement, gaps), found)
        layouts = [Layout(arrangement, gaps) for gaps in others]
        return self._unsolved(change, layouts) if proved and others else None

    def _unsolved(self, change: str, layouts: list[Layout]) -> Neighbour | None:
        for judge in self.judges:
            if not any(judge.solvable(layout.arrangement, layout.gaps) for layout in layouts):
                cost = self.costs.cost(layouts[0].arrangement)
                return Neighbour(change, layouts[0], cost, "OPEN", judge.task.spec, "none", None)
        return None

    def _fails(self, change: str, layout: Layout, found: _Excluded) -> Neighbour:
        judge, key = found
        cost, bites = self.costs.cost(layout.arrangement), self._bites(judge, key, layout)
        return Neighbour(change, layout, cost, "FAILS", judge.task.spec, key, *bites)


def _bites(judge: TaskJudge, key: str, layout: Layout) -> tuple[int | None, int | None]:
    """The n from which a theorem bites, and how badly the task fails."""
    verdict = judge.verdict(THEOREMS[key], layout.architecture)
    grade = graded(layout.architecture, judge.task)
    return verdict and verdict.n, grade and grade.numbers["ceiling_millionths"]


def _point(cost: Cost, layouts: list[Layout]) -> Point:
    return Point(cost, tuple(sorted(layouts, key=_naturalness)))


def _naturalness(layout: Layout) -> tuple[int, int]:
    """Evenly spaced layouts first, then at the end, then at the start; the shallower first."""
    order = {"evenly spaced": 0, "at the end": 1, "at the start": 2}
    return order.get(layout.place, 3), layout.arrangement.depth


def ladder(result: DesignResult) -> tuple[Point, ...]:
    """One point for every number of reading layers with which some layout is proved sufficient;
    least cache first, then fewest operations.
    """
    costs = Costs(result.context)
    judges = [TaskJudge(task) for task in result.tasks]
    arrangements = result.space.arrangements()
    costed = [(costs.cost(one), at) for at, one in enumerate(arrangements)]
    costed.sort(key=lambda item: (item[0].reading, item))
    rungs = (
        _cheapest(((cost, arrangements[at]) for cost, at in same), judges, result)
        for _, same in groupby(costed, key=lambda item: item[0].reading)
    )
    return tuple(rung for rung in rungs if rung is not None)


def _cheapest(
    arrangements: Iterable[tuple[Cost, Arrangement]], judges: list[TaskJudge], result: DesignResult
) -> Point | None:
    for cost, arrangement in arrangements:
        for gaps in arrangement.placements(result.space.places):
            if all(judge.solvable(arrangement, gaps) for judge in judges):
                return Point(cost, (Layout(arrangement, gaps),))
    return None
