"""Why a point cannot be had for less: its neighbours with one reading layer fewer, the next
smaller memory, or readers elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from separatrix.cards.design.space import Arrangement, Cost, Costs, Layout, Space
from separatrix.cards.design.status import TaskJudge
from separatrix.core.evidence.records import Status
from separatrix.theory.judge import THEOREMS, graded
from separatrix.theory.words import counted_as


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
    """FAILS: the smallest n from which the theorem bites, in the family of the task; for seqcomp
    the prompt length in tokens.
    """
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


_Kind = tuple[int, int, int]


def _kind(arrangement: Arrangement) -> _Kind:
    """The reading layer, which is one object in all of a space, how many read, and of how many."""
    return id(arrangement.reader), arrangement.reading, arrangement.depth


class Explainer:
    """Neighbours within a space, as the judges of the search see them."""

    def __init__(
        self,
        space: Space,
        arrangements: Sequence[Arrangement],
        costs: Costs,
        judges: Sequence[TaskJudge],
    ) -> None:
        self.space = space
        self.costs = costs
        self.judges = judges
        self._by_kind: dict[_Kind, list[Arrangement]] = {}
        for arrangement in arrangements:
            self._by_kind.setdefault(_kind(arrangement), []).append(arrangement)
        self._bites: dict[tuple[object, str, str], tuple[int | None, int | None]] = {}

    def neighbours(self, point: Point, *, proved: bool) -> tuple[Neighbour, ...]:
        """What stands beside a point: with `proved`, layouts for which no construction is known
        count too.
        """
        found: list[Neighbour | None] = []
        arrangement = point.layout.arrangement
        fewer = self._fewer(arrangement)
        if fewer is not None:
            found.append(self._whole(self._fewer_text(arrangement), fewer, proved))
        smaller = self._smaller(arrangement)
        if smaller is not None:
            found.append(
                self._whole("the next smaller memory in the other layers", smaller, proved)
            )
        found.append(self._elsewhere(point, proved))
        return tuple(neighbour for neighbour in found if neighbour is not None)

    @staticmethod
    def _fewer_text(arrangement: Arrangement) -> str:
        reading = [part.group for part in arrangement.reader or () if part.reading]
        kind = "full" if reading and set(reading) == {"full"} else "reading"
        return f"one {kind} layer fewer"

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
        same = self._by_kind[_kind(arrangement)]
        mine = self._cost(arrangement)
        return max(
            (other for other in same if self._cost(other)[0] < mine[0]),
            key=self._cost,
            default=None,
        )

    def _cost(self, arrangement: Arrangement) -> tuple[int, int]:
        cost = self.costs.cost(arrangement)
        return cost.cache_bits, cost.flops

    def _whole(self, change: str, arrangement: Arrangement, proved: bool) -> Neighbour | None:
        placements = list(arrangement.placements(self.space.places))
        for judge in self.judges:
            key = judge.arrangement_fails(arrangement)
            if key is not None:
                return self._fails(change, Layout(arrangement, placements[0]), judge, key)
        excluded = [self.excludes(Layout(arrangement, gaps)) for gaps in placements]
        decided = next((found for found in excluded if found is not None), None)
        if decided is not None and None not in excluded:
            return self._fails(change, Layout(arrangement, placements[0]), *decided)
        if proved:
            kept = [gaps for gaps, found in zip(placements, excluded, strict=True) if found is None]
            return self._unsolved(change, [Layout(arrangement, gaps) for gaps in kept])
        return None

    def _elsewhere(self, point: Point, proved: bool) -> Neighbour | None:
        arrangement = point.layout.arrangement
        own = {
            layout.gaps
            for layout in point.layouts
            if layout.arrangement == point.layout.arrangement
        }
        others = [gaps for gaps in arrangement.placements(self.space.places) if gaps not in own]
        change = f"the reading layers elsewhere ({counted_as(len(others), 'other placement')})"
        for gaps in others:
            found = self.excludes(Layout(arrangement, gaps))
            if found is not None:
                return self._fails(change, Layout(arrangement, gaps), *found)
        return (
            self._unsolved(change, [Layout(arrangement, gaps) for gaps in others])
            if proved and others
            else None
        )

    def excludes(self, layout: Layout) -> tuple[TaskJudge, str] | None:
        """The first task and theorem that exclude a layout for where its readers stand; None if
        none does.
        """
        for judge in self.judges:
            key = judge.placement_fails(layout.arrangement, layout.gaps)
            if key is not None:
                return judge, key
        return None

    def _unsolved(self, change: str, layouts: list[Layout]) -> Neighbour | None:
        for judge in self.judges:
            if not any(judge.solvable(layout.arrangement, layout.gaps) for layout in layouts):
                return Neighbour(
                    change,
                    layouts[0],
                    self.costs.cost(layouts[0].arrangement),
                    "OPEN",
                    judge.task.spec,
                    "none",
                    None,
                )
        return None

    def _fails(self, change: str, layout: Layout, judge: TaskJudge, key: str) -> Neighbour:
        """The record with the n from which the theorem bites, and how badly the task fails."""
        mark = (layout, key, judge.task.spec)
        if mark not in self._bites:
            verdict = judge.verdict(THEOREMS[key], layout.architecture)
            grade = graded(layout.architecture, judge.task)
            self._bites[mark] = (
                None if verdict is None else verdict.n,
                None if grade is None else grade.numbers["ceiling_millionths"],
            )
        return Neighbour(
            change,
            layout,
            self.costs.cost(layout.arrangement),
            "FAILS",
            judge.task.spec,
            key,
            *self._bites[mark],
        )
