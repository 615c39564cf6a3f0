"""Why a point cannot be had for less: its neighbours with one reading layer fewer, the next
smaller memory, or readers elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from separatrix.design.costs import Cost, Costs
from separatrix.design.space import Family, Layout, Space
from separatrix.design.status import Oracle
from separatrix.errors import Undecided
from separatrix.evidence.records import Status
from separatrix.theory.judge import THEOREMS

if TYPE_CHECKING:
    from separatrix.design.search import Point


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


class Explainer:
    """Neighbours within a space, judged by the oracles of the search."""

    def __init__(
        self,
        space: Space,
        families: Sequence[Family],
        costs: Costs,
        oracles: Sequence[Oracle],
        context: int,
    ) -> None:
        self.space = space
        self.costs = costs
        self.oracles = oracles
        self.context = context
        self._by_kind: dict[tuple[object, int, int], list[Family]] = {}
        for family in families:
            self._by_kind.setdefault((id(family.reader), family.reading, family.depth), []).append(
                family
            )
        self._smallest: dict[tuple[object, str, str], int | None] = {}

    def neighbours(self, point: Point, *, proved: bool) -> tuple[Neighbour, ...]:
        """What stands beside a point: with `proved`, layouts for which no construction is known
        count too.
        """
        found = []
        family = point.layout.family
        fewer = self._fewer(family)
        if fewer is not None:
            found.append(self._whole(self._fewer_text(family), fewer, proved))
        smaller = self._smaller(family)
        if smaller is not None:
            found.append(
                self._whole("the next smaller memory in the other layers", smaller, proved)
            )
        found.append(self._elsewhere(point, proved))
        return tuple(neighbour for neighbour in found if neighbour is not None)

    @staticmethod
    def _fewer_text(family: Family) -> str:
        kind = (
            "full"
            if family.reader and all(part.group == "full" for part in family.reader if part.reading)
            else "reading"
        )
        return f"one {kind} layer fewer"

    def _fewer(self, family: Family) -> Family | None:
        if not family.reading:
            return None
        reader = family.reader if family.reading > 1 else None
        others = self._by_kind.get((id(reader), family.reading - 1, family.depth), ())
        own = [other for other in others if other.fill[: len(family.fill)] == family.fill]
        return min(own, key=self._cost, default=None)

    def _smaller(self, family: Family) -> Family | None:
        same = self._by_kind[(id(family.reader), family.reading, family.depth)]
        mine = self._cost(family)
        return max(
            (other for other in same if self._cost(other)[0] < mine[0]),
            key=self._cost,
            default=None,
        )

    def _cost(self, family: Family) -> tuple[int, int]:
        cost = self.costs.cost(family, self.context)
        return cost.cache_bits, cost.flops

    def _whole(self, change: str, family: Family, proved: bool) -> Neighbour | None:
        """A family that is excluded wherever its readers stand, or that nothing solves."""
        for oracle in self.oracles:
            key = oracle.family_fails(family, self.costs.cache_bits)
            if key is not None:
                return self._fails(
                    change, Layout(family, next(family.placements(self.space.places))), oracle, key
                )
        placements = list(family.placements(self.space.places))
        excluded = [self.excludes(Layout(family, gaps)) for gaps in placements]
        decided = next((found for found in excluded if found is not None), None)
        if decided is not None and None not in excluded:
            return self._fails(change, Layout(family, placements[0]), *decided)
        if proved:
            kept = [gaps for gaps, found in zip(placements, excluded, strict=True) if found is None]
            return self._unsolved(change, [Layout(family, gaps) for gaps in kept])
        return None

    def _elsewhere(self, point: Point, proved: bool) -> Neighbour | None:
        """Other placements of the point's own layers."""
        family = point.layout.family
        own = {layout.gaps for layout in point.layouts if layout.family == point.layout.family}
        others = [gaps for gaps in family.placements(self.space.places) if gaps not in own]
        change = f"readers elsewhere ({len(others):,} of {len(others) + len(own):,} placements)"
        for gaps in others:
            found = self.excludes(Layout(family, gaps))
            if found is not None:
                return self._fails(change, Layout(family, gaps), *found)
        return (
            self._unsolved(change, [Layout(family, gaps) for gaps in others])
            if proved and others
            else None
        )

    def excludes(self, layout: Layout) -> tuple[Oracle, str] | None:
        """The first task and theorem that exclude a layout for where its readers stand; None if
        none does.
        """
        prefixes: dict[int, list[int]] = {}

        def prefix(family: Family, t: int) -> list[int]:
            if t not in prefixes:
                prefixes[t] = self.costs.prefix(family, t)
            return prefixes[t]

        for oracle in self.oracles:
            key = oracle.placement_fails(layout.family, layout.gaps, prefix)
            if key is not None:
                return oracle, key
        return None

    def _unsolved(self, change: str, layouts: list[Layout]) -> Neighbour | None:
        for oracle in self.oracles:
            if not any(oracle.solvable(layout.family, layout.gaps) for layout in layouts):
                return Neighbour(
                    change,
                    layouts[0],
                    self.costs.cost(layouts[0].family, self.context),
                    "OPEN",
                    oracle.task.spec,
                    "none",
                    None,
                )
        return None

    def _fails(self, change: str, layout: Layout, oracle: Oracle, key: str) -> Neighbour:
        """The record with the n from which the theorem bites."""
        mark = (layout, key, oracle.task.spec)
        if mark not in self._smallest:
            try:
                verdict = THEOREMS[key].judge(layout.architecture, oracle.task)
            except Undecided:
                verdict = None
            self._smallest[mark] = None if verdict is None else verdict.n
        return Neighbour(
            change,
            layout,
            self.costs.cost(layout.family, self.context),
            "FAILS",
            oracle.task.spec,
            key,
            self._smallest[mark],
        )
