"""The search: arrangements in order of cost, so that what comes later never dominates what is kept,
and most need not be judged at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

from separatrix.cards.design.explain import Explainer, Point
from separatrix.cards.design.space import TOLD_APART, Arrangement, Cost, Costs, Layout, Space
from separatrix.cards.design.status import TaskJudge
from separatrix.cards.design.tasks import check_fits
from separatrix.core.errors import SizeError
from separatrix.core.numbers.amounts import check_context
from separatrix.stacks.architecture import Layer
from separatrix.tasks import SeqComp, Task
from separatrix.theory.arguments import Sizes
from separatrix.theory.base import Theorem, one_token_per_value
from separatrix.theory.fails.many_layers import ManyLayers
from separatrix.theory.fails.many_search import MOST_READERS
from separatrix.theory.judge import THEOREMS
from separatrix.theory.judge import judge as verdicts_on

MOST_EXPLAINED = 64
"""Points whose neighbours are looked at."""
Progress = Callable[[int, int], None]


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
    """With nothing proved within the budget: the smallest cache that is proved sufficient, if
    any.
    """

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

    def closed_to(self, cost: Cost) -> bool:
        """Whether a point that is kept costs less."""
        return any(kept.dominates(cost) for kept in self.points)

    def take(self, cost: Cost, layouts: list[Layout], within: bool) -> None:
        if not layouts:
            return
        if within:
            self.points.setdefault(cost, []).extend(layouts)
        elif not self.points and (self.beyond is None or self.beyond[0] == cost):
            self.beyond = (cost, [*(self.beyond[1] if self.beyond else []), *layouts])

    def wants(self, cost: Cost, within: bool) -> bool:
        """Whether a layout of that cost, no cheaper than those seen before, can still matter."""
        return (
            not self.closed_to(cost)
            if within
            else not self.points and (self.beyond is None or self.beyond[0] == cost)
        )


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


class _Search:
    def __init__(self, tasks: tuple[Task, ...], context: int, budget: int, space: Space) -> None:
        self.tasks = tasks
        self.context = context
        self.budget = budget
        self.space = replace(space, told_apart=told_apart(tasks, space))
        self.costs = Costs(context)
        self.judges = [TaskJudge(task) for task in tasks]
        self.open = _Front()
        self.proved = _Front()
        self.judged = 0
        self.excluded = Counter[tuple[str, str]]()

    def run(self, progress: Progress) -> DesignResult:
        arrangements = self.space.arrangements()
        classes = [arrangement.classes(self.space.places) for arrangement in arrangements]
        total = sum(classes)
        done = 0
        costed = [
            (self.costs.cost(arrangement), number)
            for number, arrangement in enumerate(arrangements)
        ]
        costed.sort()
        for cost, same in groupby(costed, key=lambda item: item[0]):
            within = cost.cache_bits <= self.budget
            # sorted by cache: if nothing fits any more and no front wants more, that stays so
            if (
                not within
                and not self.proved.wants(cost, within)
                and not self.open.wants(cost, within)
            ):
                break
            for _, number in same:
                self._judge(arrangements[number], cost, within, classes[number])
                done += classes[number]
                progress(done, total)
        progress(total, total)
        explainer = Explainer(self.space, arrangements, self.costs, self.judges)
        return DesignResult(
            tasks=self.tasks,
            context=self.context,
            budget_bits=self.budget,
            space=self.space,
            not_excluded=_explained(_points(self.open.points.items()), explainer, proved=False),
            proved=_explained(_points(self.proved.points.items()), explainer, proved=True),
            layouts=total,
            within=sum(
                classes[number] for cost, number in costed if cost.cache_bits <= self.budget
            ),
            judged=self.judged,
            excluded=dict(self.excluded),
            beyond=next(iter(_points([self.open.beyond] if self.open.beyond else [])), None),
            beyond_proved=next(
                iter(_points([self.proved.beyond] if self.proved.beyond else [])), None
            ),
        )

    def _judge(self, arrangement: Arrangement, cost: Cost, within: bool, classes: int) -> None:
        want_proved = self.proved.wants(cost, within)
        want_open = self.open.wants(cost, within)
        if not (want_proved or want_open):
            return
        self.judged += classes
        for judge in self.judges:
            theorem = judge.arrangement_fails(arrangement)
            if theorem is not None:
                self._exclude(theorem, judge, classes, within)
                return
        gaps = list(arrangement.placements(self.space.places))
        solved = [
            gap for gap in gaps if all(judge.solvable(arrangement, gap) for judge in self.judges)
        ]
        if want_proved:
            self.proved.take(cost, [Layout(arrangement, gap) for gap in solved], within)
        if want_open:
            known = set(solved)
            # what a construction solves no theorem excludes, so none need be asked
            kept = [
                Layout(arrangement, gap)
                for gap in gaps
                if gap in known or not self._fails(arrangement, gap, within)
            ]
            self.open.take(cost, kept, within)

    def _fails(self, arrangement: Arrangement, gap: tuple[int, ...], within: bool) -> bool:
        for judge in self.judges:
            theorem = judge.placement_fails(arrangement, gap)
            if theorem is not None:
                self._exclude(theorem, judge, 1, within)
                return True
        return False

    def _exclude(self, theorem: str, judge: TaskJudge, layouts: int, within: bool) -> None:
        if within:
            self.excluded[theorem, judge.task.spec] += layouts


def _points(found: Iterable[tuple[Cost, list[Layout]]]) -> tuple[Point, ...]:
    return tuple(Point(cost, tuple(sorted(layouts, key=_naturalness))) for cost, layouts in found)


def _explained(
    points: tuple[Point, ...], explainer: Explainer, *, proved: bool
) -> tuple[Point, ...]:
    return (
        tuple(
            replace(point, neighbours=explainer.neighbours(point, proved=proved))
            for point in points[:MOST_EXPLAINED]
        )
        + points[MOST_EXPLAINED:]
    )


def _naturalness(layout: Layout) -> tuple[int, int]:
    """Evenly spaced layouts first, then those at the end, then at the start; of these the
    shallower first.
    """
    order = {"evenly spaced": 0, "at the end": 1, "at the start": 2}
    return order.get(layout.place, 3), layout.arrangement.depth


def ladder(result: DesignResult) -> tuple[Point, ...]:
    """One point for every number of reading layers with which some layout is proved sufficient;
    least cache first, then fewest operations.
    """
    costs = Costs(result.context)
    judges = [TaskJudge(task) for task in result.tasks]
    costed = [
        (costs.cost(arrangement), number, arrangement)
        for number, arrangement in enumerate(result.space.arrangements())
    ]
    costed.sort(key=lambda item: (item[0].reading, item[0]))
    rungs = (
        _cheapest(((cost, arrangement) for cost, _, arrangement in same), judges, result)
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
