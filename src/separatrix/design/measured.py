"""Layouts by what training found on tasks like those asked, scaled down: an order among those that
no theorem excludes, what another place of the full layers changes, and what one more of them buys.

Nothing here is proved. Rows of recorded experiments stand for layouts that are laid out alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from separatrix.cards.composition import filling
from separatrix.design.costs import Cost, Costs
from separatrix.design.explain import Explainer
from separatrix.design.search import DesignResult
from separatrix.design.space import Arrangement, Layout
from separatrix.design.space import Place as Allowed
from separatrix.design.status import TaskJudge
from separatrix.evidence.records import SOLVED
from separatrix.numbers.first_size import first_size
from separatrix.practice.depth import composed_like
from separatrix.practice.matching import (
    ASKED,
    Match,
    by_depth,
    by_mixture,
    by_standing,
    places,
)
from separatrix.practice.shape import Place, Shape
from separatrix.practice.table import Row
from separatrix.practice.words import interval
from separatrix.tasks import Task
from separatrix.tasks.seqcomp import MOST_STEPS
from separatrix.theory.words import counted_as

Way = Callable[[Shape, Task], Match | None]
WAYS: tuple[Way, ...] = (by_depth, by_mixture, by_standing)
"""How experiments are asked for a task, in this order: by the number of full layers, by their
ratio, and by where they stand.
"""
_NAMED: tuple[Allowed, ...] = ("even", "end", "start")
_Kind = tuple[int, int, int, tuple[str, ...]]


@dataclass(frozen=True)
class Ranked:
    """A layout within the budget that no theorem excludes, with the rows that stand for it."""

    layout: Layout
    cost: Cost
    proved: bool
    """Whether constructions solve every task."""
    matches: tuple[tuple[Task, Match], ...]
    """Of each task that an experiment measured, the row that ranks it."""
    places: tuple[tuple[Task, Match], ...]
    """Where the full layers stand, where that was measured for this place."""
    others: int = 0
    """Dearer layouts for which the same rows stand."""

    @property
    def row(self) -> Row:
        """The row with the least accuracy of all tasks, which ranks it."""
        return min((match.row for _, match in self.matches), key=lambda row: row.median)

    @property
    def solved(self) -> bool:
        """Whether the median seed solved each task, scaled down."""
        return self.row.median >= SOLVED

    @property
    def order(self) -> tuple[Fraction, Fraction, Cost]:
        """Most accurate first, then by what its place gave, then the cheapest."""
        standing = min((match.row.median for _, match in self.places), default=Fraction(0))
        return -self.row.median, -standing, self.cost


@dataclass(frozen=True)
class Rung:
    """The cheapest layout with so many full layers: steps that are proved, what is measured."""

    full: int
    cost: Cost
    steps: int
    """Steps of composition that a construction solves at the context; 0 for none."""
    measured: tuple[tuple[str, Row | None], ...]
    """What is asked, in words -> the row of exactly so many full layers; None where none is."""


@dataclass(frozen=True)
class Measured:
    """What training found that bears on a design."""

    ranked: tuple[Ranked, ...]
    """Best first; one for layouts that the same rows stand for."""
    unmatched: int
    """Layouts within the budget, not excluded, for which no row stands."""
    unmeasured: tuple[Task, ...]
    """Tasks that no experiment measured with layouts of this space."""
    places: tuple[tuple[Task, tuple[tuple[Place, Row], ...]], ...]
    """Of each task, what it changed in trained stacks where the full layers stand."""
    rungs: tuple[Rung, ...]
    """By number of full layers, those that were measured."""


def measured(result: DesignResult) -> Measured:
    """What experiments found of layouts of the space that fit the budget."""
    return _Measuring(result).run()


def told_apart(better: Ranked, worse: Ranked) -> bool:
    """Whether neither intervals nor seeds of the rows that rank two layouts overlap."""
    first, second = better.row, worse.row
    return interval(first)[0] > interval(second)[1] and first.least > second.most


class _Measuring:
    def __init__(self, result: DesignResult) -> None:
        self.result = result
        self.costs = Costs()
        self.judges = [TaskJudge(task) for task in result.tasks]
        self.arrangements = result.space.arrangements()
        self.explainer = Explainer(
            result.space, self.arrangements, self.costs, self.judges, result.context
        )

    def run(self) -> Measured:
        found = [(layout, Shape.of(layout.architecture)) for layout in self._layouts()]
        shaped = [(layout, shape) for layout, shape in found if shape is not None]
        ways = _ways(self.result.tasks, [shape for _, shape in shaped])
        ranked: dict[Hashable, list[Ranked]] = {}
        for layout, shape in shaped:
            one = self._ranked(layout, shape, ways)
            if one is not None:
                ranked.setdefault(_evidence(one), []).append(one)
        best = sorted(map(_cheapest, ranked.values()), key=lambda one: one.order)
        first = best[0].layout if best else next((layout for layout, _ in shaped), None)
        return Measured(
            ranked=tuple(best),
            unmatched=len(found) - sum(map(len, ranked.values())),
            unmeasured=tuple(task for task in self.result.tasks if task not in ways),
            places=() if first is None else tuple(self._places(first)),
            rungs=() if first is None else tuple(self._rungs(first.arrangement)),
        )

    def _layouts(self) -> Iterator[Layout]:
        """Of every number and kind of layers the cheapest within the budget, with the reading
        layers in each place that has a name, where no theorem excludes it.
        """
        cheapest: set[_Kind] = set()
        for arrangement in sorted(self.arrangements, key=self._cost):
            kind = _kind(arrangement)
            within = self._cost(arrangement).cache_bits <= self.result.budget_bits
            if not within or kind in cheapest:
                continue
            if not self._fails(arrangement):
                cheapest.add(kind)
                for gaps in _named(arrangement, self.result.space.places):
                    layout = Layout(arrangement, gaps)
                    if self.explainer.excludes(layout) is None:
                        yield layout

    def _fails(self, arrangement: Arrangement) -> bool:
        return any(
            judge.arrangement_fails(arrangement, self.costs.cache_bits) is not None
            for judge in self.judges
        )

    def _cost(self, arrangement: Arrangement) -> Cost:
        return self.costs.cost(arrangement, self.result.context)

    def _ranked(self, layout: Layout, shape: Shape, ways: dict[Task, Way]) -> Ranked | None:
        """The layout with its rows; None where a task that is measured has none for it."""
        found = [(task, way(shape, task)) for task, way in ways.items()]
        matches = tuple((task, match) for task, match in found if match is not None)
        if not ways or len(matches) < len(ways):
            return None
        standing = ((task, by_standing(shape, task)) for task in ways)
        arrangement, gaps = layout.arrangement, layout.gaps
        return Ranked(
            layout=layout,
            cost=self._cost(arrangement),
            proved=all(judge.solvable(arrangement, gaps) for judge in self.judges),
            matches=matches,
            places=tuple((task, match) for task, match in standing if match is not None),
        )

    def _places(self, layout: Layout) -> Iterator[tuple[Task, tuple[tuple[Place, Row], ...]]]:
        """What places gave at the share of full layers nearest to a layout's."""
        arrangement = layout.arrangement
        for task in self.result.tasks:
            for gaps in arrangement.placements(_NAMED):
                shape = Shape.of(Layout(arrangement, gaps).architecture)
                alike = {} if shape is None else places(shape, task)
                if len(alike) > 1:
                    yield task, tuple(alike.items())
                    break

    def _rungs(self, like: Arrangement) -> Iterator[Rung]:
        """The cheapest layouts that differ from one in their number of full layers, evenly spaced,
        where these were measured.
        """
        alike = {
            arrangement.reading: arrangement
            for arrangement in sorted(self.arrangements, key=self._cost, reverse=True)
            if _differs_in_readers(arrangement, like)
        }
        columns = [(title, found) for title, found in self._columns(alike) if found]
        wanted = {full for _, found in columns for full in found}
        for full in sorted(wanted):
            if full in alike:
                arrangement = alike[full]
                yield Rung(
                    full=full,
                    cost=self._cost(arrangement),
                    steps=self._steps(arrangement),
                    measured=tuple((title, found.get(full)) for title, found in columns),
                )

    def _columns(self, alike: dict[int, Arrangement]) -> Iterator[tuple[str, dict[int, Row]]]:
        """What was measured at exactly so many full layers: steps of composition, and recall at
        exactly that ratio.
        """
        shapes = {
            full: shape
            for full, arrangement in alike.items()
            if (shape := Shape.of(Layout(arrangement, _evenly(arrangement)).architecture))
        }
        composed = {
            full: found[1]
            for full, shape in shapes.items()
            if (found := composed_like(shape)) is not None and found[0] == full
        }
        for steps in self._steps_shown(composed):
            rows = {full: found[steps] for full, found in composed.items() if steps in found}
            yield f"composition, {counted_as(steps, 'step')}", rows
        for task in self.result.tasks:
            if ASKED.get(task.name) == "recall":
                matches = {full: by_mixture(shape, task) for full, shape in shapes.items()}
                yield (
                    task.spec,
                    {
                        full: match.row
                        for full, match in matches.items()
                        if match is not None and match.exact
                    },
                )

    def _steps_shown(self, composed: dict[int, dict[int, Row]]) -> list[int]:
        """The steps of a task that is asked, where they were measured with several numbers of full
        layers; else all that were measured.
        """
        known = Counter(steps for found in composed.values() for steps in found)
        sizes = (task.sizes() for task in self.result.tasks)
        asked = {steps for each in sizes if isinstance(steps := each.get("L"), int)}
        compared = sorted(steps for steps in asked if known[steps] > 1)
        return compared or sorted(known)

    def _steps(self, arrangement: Arrangement) -> int:
        """The most steps that a construction solves at the context."""
        gaps = _evenly(arrangement)

        def beyond(steps: int) -> bool:
            judge = TaskJudge(filling(self.result.context, steps))
            return judge.solvable(arrangement, gaps) is None

        first = first_size(beyond, 1, limit=MOST_STEPS, near=arrangement.reading + 1)
        return MOST_STEPS if first is None else first - 1


def _ways(tasks: Sequence[Task], shapes: Sequence[Shape]) -> dict[Task, Way]:
    """For every task the one experiment that ranks all layouts, since accuracies of different
    experiments do not compare: the one with rows for most numbers of full layers, of equals the
    first in order.
    """
    ways: dict[Task, Way] = {}
    for task in tasks:
        told = {way: {shape.full for shape in shapes if way(shape, task)} for way in WAYS}
        best = max(WAYS, key=lambda way: len(told[way]))
        if told[best]:
            ways[task] = best
    return ways


def _evidence(one: Ranked) -> Hashable:
    """The rows of a layout, by their labels: one for all layouts that they stand for."""
    return tuple(
        (match.experiment, tuple(sorted(row.labels.items())))
        for _, match in (*one.matches, *one.places)
        for row in match.rows
    )


def _cheapest(alike: list[Ranked]) -> Ranked:
    """The cheapest of layouts for which the same rows stand."""
    best = min(alike, key=lambda one: one.cost)
    return replace(best, others=len(alike) - 1)


def _kind(arrangement: Arrangement) -> _Kind:
    """What rows can tell apart: the reading layer, how many read, of how many, and what kinds the
    others are.
    """
    kinds = tuple(part.measured_as for layer in arrangement.fill for part in layer)
    return id(arrangement.reader), arrangement.reading, arrangement.depth, kinds


def _evenly(arrangement: Arrangement) -> tuple[int, ...]:
    """The gaps of evenly spaced reading layers."""
    return next(arrangement.placements(("even",)))


def _named(arrangement: Arrangement, asked: Sequence[Allowed]) -> list[tuple[int, ...]]:
    """The places that have a name, among those asked for; in the middle where any will do."""
    wanted: list[Allowed] = [place for place in _NAMED if place in asked or "any" in asked]
    gaps = list(arrangement.placements(wanted))
    if "any" in asked and arrangement.reading:
        before = arrangement.bounded // 2
        between = (0,) * (arrangement.reading - 1)
        gaps.append((before, *between, arrangement.bounded - before))
    return list(dict.fromkeys(gaps))


def _differs_in_readers(one: Arrangement, other: Arrangement) -> bool:
    """Whether two arrangements have as many layers of the same kinds, but for how many read."""
    readers = {id(found.reader) for found in (one, other) if found.reader is not None}
    fills = {found.fill[:1] for found in (one, other) if found.bounded}
    return one.depth == other.depth and len(readers) <= 1 and len(fills) <= 1
