"""Results of `design`, as a table for terminals and as plain data. Nothing here decides
anything: see design/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from separatrix.cards.design.search import DesignResult, Neighbour, Point
from separatrix.cards.design.space import NAMED
from separatrix.cli.report.card import tokens
from separatrix.cli.report.notation import theorem_name, where
from separatrix.cli.report.tried import designed, measured_parts, tried
from separatrix.core.document import Cells, Document, Heading, Line, Part, Table
from separatrix.core.numbers.accuracy import WHOLE, percent
from separatrix.core.numbers.amounts import bytes_of, format_bytes, format_count

_SHOWN = 12


def design_json(result: DesignResult) -> dict[str, Any]:
    """The result as plain data: bytes, operations and layers are exact integers (bytes a float
    where a number format leaves a fraction).
    """
    return {
        "tasks": [task.spec for task in result.tasks],
        "context": result.context,
        "budget_bytes": bytes_of(result.budget_bits),
        "layouts": result.layouts,
        "within_budget": result.within,
        "judged": result.judged,
        "excluded": [
            {"theorem": theorem, "task": task, "layouts": count}
            for (theorem, task), count in result.excluded.items()
        ],
        "proved_sufficient": [_point_json(point) for point in result.proved],
        "not_excluded": [_point_json(point) for point in result.not_excluded],
        "smallest_not_excluded_beyond_budget": result.beyond and _point_json(result.beyond),
        "smallest_proved_beyond_budget": result.beyond_proved and _point_json(result.beyond_proved),
        "assumptions": assumptions(result),
        "measured": [one.to_json() for one in designed(result)],
        "trial": tried(result).command,
    }


def _point_json(point: Point) -> dict[str, Any]:
    return {
        **_cost_json(point),
        "architecture": point.layout.architecture.spec,
        "place": point.layout.place,
        "placements": len(point.layouts),
        "neighbours": [
            {
                "change": other.change,
                "architecture": other.layout.architecture.spec,
                **_cost_json(other),
                "status": other.status,
            }
            | {"task": other.task, "theorem": other.theorem, "n": other.n}
            | ({} if other.ceiling is None else {"accuracy_at_most": other.ceiling / WHOLE})
            for other in point.neighbours
        ],
    }


def _cost_json(found: Point | Neighbour) -> dict[str, Any]:
    cost = found.cost
    return {
        "cache_bytes": bytes_of(cost.cache_bits),
        "flops_per_token": cost.flops,
        "reading_layers": cost.reading,
    }


def assumptions(result: DesignResult) -> list[str]:
    """What verdicts and the layouts' sizes take for granted, each said once."""
    stacks = [point.layout.architecture for point in (*result.proved, *result.not_excluded)]
    granted = (text for stack in stacks for text in stack.assumptions)
    return list(dict.fromkeys((*result.rests_on, *granted)))


def design_document(result: DesignResult, *, context_from: str = "") -> Document:
    """What proofs leave: layouts that are proved to suffice, those that no theorem excludes, and
    what is excluded. `context_from` says who chose the context.
    """
    head = Document(_header(result, context_from))
    if not result.not_excluded:
        first, *others = obstacles(result)
        return head + Document(Heading(f"Nothing fits: {first}"), *_lines(others))
    proved = [_front(result.proved)]
    if not result.proved:
        proved = _lines([_nothing_proved(result)])
    costs = {point.cost for point in result.proved}
    left = [point for point in result.not_excluded if point.cost not in costs]
    found = head + Document(
        Heading("Proved sufficient: a construction solves every task"),
        *proved,
        Heading("Not excluded: no theorem says that a task fails; whether weights exist is open"),
        _front(left) if left else Line("  nothing that costs less than what is proved"),
    )
    if lines := excluded(result):
        found += Document(Heading("Excluded"), *_lines(lines))
    found += Document(*measured_parts(designed(result), tried(result)))
    if lines := assumptions(result):
        found += Document(Heading("Assumptions"), *_lines(lines))
    return found


def _lines(texts: Sequence[str]) -> list[Part]:
    return [Line(f"  {text}") for text in texts]


def _header(result: DesignResult, context_from: str) -> Table:
    depths = ", ".join(f"{depth:,}" for depth in result.space.depths)
    budget = format_bytes(result.budget_bits)
    rows = [("" if number else "tasks", task.spec) for number, task in enumerate(result.tasks)]
    rows += [
        ("context", ", ".join(filter(None, (tokens(result.context), context_from)))),
        ("cache", f"at most {budget} for one sequence of that length"),
        (
            "layouts",
            f"{result.layouts:,} of depth {depths}; those no theorem tells apart count once",
        ),
        ("", f"{result.judged:,} judged; the others cost no less than one that was found"),
    ]
    return Table(rows, labels=True)


def _front(points: Sequence[Point]) -> Table:
    """Each point's costs, its layers, and what stands beside it."""
    shown = points[:_SHOWN]
    rows: list[Cells | str] = []
    for point in shown:
        memory, work = format_bytes(point.cost.cache_bits), format_count(point.cost.flops)
        rows.append(f"  {memory}   {work} FLOPs/token   {_places(point)}")
        rows.append((f"      {point.layout.architecture.spec}",))
        rows += [(f"      {other.change}: {_neighbour(other)}",) for other in point.neighbours]
    if len(points) > len(shown):
        rows.append(f"  and {len(points) - len(shown):,} more; --json has them")
    return Table(rows)


def _places(point: Point) -> str:
    layout = point.layout
    other = len(point.layouts) - 1
    k = layout.arrangement.reading
    if not k:
        return "no reading layer"
    # where one stands alone, its share of the others lies before it
    place = "at the end" if k == 1 and layout.place == NAMED["even"] else layout.place
    text = (
        f"{k:,} reading layer{'s' if k > 1 else ''} {place}"
        if layout.arrangement.bounded
        else f"all {k:,} layers read"
    )
    return f"{text} (+ {other:,} other placement{'s' if other > 1 else ''})" if other else text


def _neighbour(other: Neighbour) -> str:
    if other.status == "OPEN":
        return f"OPEN, no construction known for {other.task}"
    cited = f"{theorem_name(other.theorem)}{where(other.n, other.theorem)}"
    text = f"FAILS on {other.task} by {cited}"
    if other.ceiling is not None and other.ceiling < WHOLE:
        text += f"; at most {percent(other.ceiling)} of random questions answered"
    return text


def excluded(result: DesignResult) -> list[str]:
    """Which theorems exclude layouts within the budget, those that exclude most first."""
    return [
        f"{theorem_name(theorem)} says FAILS on {task} for {count:,}"
        f" layout{'s' if count > 1 else ''} within the budget"
        for (theorem, task), count in sorted(result.excluded.items(), key=lambda item: -item[1])
    ]


def obstacles(result: DesignResult) -> list[str]:
    """With nothing within the budget: what excludes everything, and which budget would do."""
    lines = excluded(result)
    outside = result.layouts - result.within
    if outside:
        who = (
            f"{outside:,} of {result.layouts:,} layouts carry"
            if result.within
            else "every layout carries"
        )
        lines.append(
            f"{who} more than {format_bytes(result.budget_bits)} at {result.context:,} tokens"
        )
    if result.beyond is not None:
        lines.append(f"the smallest cache that no theorem excludes is {_budget(result.beyond)}")
    else:
        lines.append(
            "no budget would do: theorems exclude every layout; allow more reading layers, wider"
            " ones, or larger states"
        )
    if result.beyond_proved is not None:
        lines.append(_nothing_proved(result))
    return lines


def _nothing_proved(result: DesignResult) -> str:
    if result.beyond_proved is None:
        return (
            "no construction here covers these tasks with any of the layouts, whatever the budget"
        )
    return f"the smallest cache that is proved sufficient is {_budget(result.beyond_proved)}"


def _budget(point: Point) -> str:
    """With the bytes, which say more than rounded units."""
    bits = point.cost.cache_bits
    exact = f"{bits // 8}bytes" if bits % 8 == 0 else f"{bits}bits"
    return f"{format_bytes(bits)} (--cache {exact}): {point.layout.architecture.spec}"
