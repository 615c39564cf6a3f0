"""The cheapest layout with every number of reading layers that constructions prove sufficient:
what one more of them costs, whatever the budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from separatrix.design.costs import Cost, Costs
from separatrix.design.search import DesignResult, Point
from separatrix.design.space import Family, Layout
from separatrix.design.status import Oracle


def ladder(result: DesignResult) -> tuple[Point, ...]:
    """One point for every number of reading layers with which some layout is proved sufficient;
    least cache first, then fewest operations.
    """
    costs = Costs()
    oracles = [Oracle(task) for task in result.tasks]
    costed = [
        (costs.cost(family, result.context), number, family)
        for number, family in enumerate(result.space.families())
    ]
    costed.sort(key=lambda item: (item[0].reading, item[0]))
    rungs = (
        _cheapest(((cost, family) for cost, _, family in same), oracles, result)
        for _, same in groupby(costed, key=lambda item: item[0].reading)
    )
    return tuple(rung for rung in rungs if rung is not None)


def _cheapest(
    families: Iterable[tuple[Cost, Family]], oracles: list[Oracle], result: DesignResult
) -> Point | None:
    for cost, family in families:
        for gaps in family.placements(result.space.places):
            if all(oracle.solvable(family, gaps) for oracle in oracles):
                return Point(cost, (Layout(family, gaps),))
    return None
