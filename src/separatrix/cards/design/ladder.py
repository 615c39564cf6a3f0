"""The cheapest layout with every number of reading layers that constructions prove sufficient:
what one more of them costs, whatever the budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from separatrix.cards.design.costs import Cost, Costs
from separatrix.cards.design.explain import Point
from separatrix.cards.design.search import DesignResult
from separatrix.cards.design.space import Arrangement, Layout
from separatrix.cards.design.status import TaskJudge


def ladder(result: DesignResult) -> tuple[Point, ...]:
    """One point for every number of reading layers with which some layout is proved sufficient;
    least cache first, then fewest operations.
    """
    costs = Costs()
    judges = [TaskJudge(task) for task in result.tasks]
    costed = [
        (costs.cost(arrangement, result.context), number, arrangement)
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
