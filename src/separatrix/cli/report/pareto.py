"""Results of `design`, as a table for terminals and as plain data. Nothing here decides
anything: see design/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from separatrix.cards.design import DesignResult, Layout, Neighbour, Point
from separatrix.cli.report.statuses import COLOURS, theorem_name, where
from separatrix.core.numbers.accuracy import WHOLE, percent
from separatrix.core.numbers.amounts import bytes_of, format_bytes, format_bytes_apart, format_count

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHOWN = 12
PROVED = "proved sufficient"
OPEN = "not excluded"


def design_json(result: DesignResult) -> dict[str, Any]:
    """The result as plain data: bytes, operations and layers are exact integers (bytes a float
    where a number format leaves a fraction).
    """
    return {
        "tasks": [task.spec for task in result.tasks],
        "context": result.context,
        "budget_bytes": bytes_of(result.budget_bits),
        "layouts": result.layouts,
        "layouts_within_budget": result.within,
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


def render_design(
    result: DesignResult,
    *,
    everything: bool = False,
    context_from: str = "",
) -> RenderableType:
    """Both fronts as something rich prints, in ASCII; `everything` for more than the first 12
    points of each, `context_from` for who chose the context.
    """
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [_header(result, context_from), Text()]
    if not result.not_excluded:
        return Group(*parts, *_nothing(result))
    proved_costs = {point.cost for point in result.proved}
    parts += [
        Text.assemble(
            (PROVED.capitalize(), COLOURS["SOLVABLE"]), ": a construction solves every task"
        )
    ]
    if result.proved:
        parts += _front(result.proved, everything)
    else:
        parts.append(_indented(_nothing_proved(result)))
    parts += [
        Text(),
        Text.assemble(
            (OPEN.capitalize(), COLOURS["OPEN"]),
            ": no theorem says that a task fails; whether weights exist is open",
        ),
    ]
    parts += _front(result.not_excluded, everything, proved_costs)
    granted = assumptions(result)
    if granted:
        parts += [Text(), Text("Assumptions", "bold"), *(_indented(text) for text in granted)]
    return Group(*parts)


def _header(result: DesignResult, context_from: str) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3))
    for number, task in enumerate(result.tasks):
        grid.add_row("" if number else "tasks", Text(task.spec, "bold"))
    length = f"{result.context:,} token{'s' if result.context > 1 else ''}"
    grid.add_row("context", ", ".join(filter(None, (length, context_from))))
    grid.add_row(
        "cache", f"at most {_amounts(result)[result.budget_bits]} for one sequence of that length"
    )
    depths = ", ".join(f"{depth:,}" for depth in result.space.depths)
    grid.add_row(
        "layouts",
        f"{result.layouts:,} of {depths} layers; placements that no theorem tells apart count once",
    )
    grid.add_row("", f"{result.judged:,} judged; the others cost no less than one that was found")
    return grid


def _front(
    points: Sequence[Point], everything: bool, proved: set[Any] | None = None
) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    shown = points if everything else points[:_SHOWN]
    figures = [
        (format_bytes(point.cost.cache_bits), f"{format_count(point.cost.flops)} FLOPs/token")
        for point in shown
    ]
    wide = [max(len(figure[column]) for figure in figures) for column in (0, 1)]
    parts: list[RenderableType] = []
    for point, (memory, work) in zip(shown, figures, strict=True):
        mark = "o" if proved is not None and point.cost not in proved else "*"
        parts.append(
            _indented(
                Text.assemble(
                    f"{mark} ",
                    (f"{memory:>{wide[0]}}   {work:>{wide[1]}}", "bold"),
                    f"   {_places(point)}",
                )
            )
        )
        lines = [
            Text(layout_text(point.layout)),
            *(_neighbour(other) for other in point.neighbours),
        ]
        parts += [Padding(line, (0, 0, 0, 6)) for line in lines]
    if len(points) > len(shown):
        parts.append(_indented(f"and {len(points) - len(shown):,} more; --all prints them"))
    return parts


def layout_text(layout: Layout) -> str:
    """The stack as a spec, without the sizes its layers share."""
    return layout.architecture.spec


def _places(point: Point) -> str:
    layout = point.layout
    other = len(point.layouts) - 1
    k = layout.arrangement.reading
    if not k:
        return "no reading layer"
    text = (
        f"{k:,} reading layer{'s' if k > 1 else ''} {layout.place}"
        if layout.arrangement.bounded
        else f"all {k:,} layers read"
    )
    return f"{text} (+ {other:,} other placement{'s' if other > 1 else ''})" if other else text


def _neighbour(other: Neighbour) -> Any:
    from rich.text import Text

    text = Text(f"{other.change}: ", "dim").append(other.status, COLOURS[other.status])
    if other.status == "OPEN":
        return text.append(f", no construction known for {other.task}", "not dim")
    cited = theorem_name(other.theorem)
    text.append(f" on {other.task} by {cited}{where(other.n, other.theorem)}", "not dim")
    if other.ceiling is not None and other.ceiling < WHOLE:
        text.append(f"; at most {percent(other.ceiling)} of random questions answered", "not dim")
    return text


def _nothing(result: DesignResult) -> list[RenderableType]:
    from rich.text import Text

    return [
        Text.assemble(("Nothing fits: ", COLOURS["FAILS"]), line) if not i else _indented(line)
        for i, line in enumerate(obstacles(result))
    ]


def obstacles(result: DesignResult) -> list[str]:
    """With nothing within the budget: what excludes everything, and which budget would do."""
    lines = [
        f"{theorem_name(theorem)} says FAILS on {task} for {count:,}"
        f" layout{'s' if count > 1 else ''} within the budget"
        for (theorem, task), count in sorted(result.excluded.items(), key=lambda item: -item[1])
    ]
    outside = result.layouts - result.within
    if outside:
        who = (
            f"{outside:,} of {result.layouts:,} layouts carry"
            if result.within
            else "every layout carries"
        )
        lines.append(
            f"{who} more than {_amounts(result)[result.budget_bits]} at {result.context:,} tokens"
        )
    if result.beyond is not None:
        lines.append(
            f"the smallest cache that no theorem excludes is {_budget(result, result.beyond)}"
        )
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
    return (
        f"the smallest cache that is proved sufficient is {_budget(result, result.beyond_proved)}"
    )


def _amounts(result: DesignResult) -> dict[int, str]:
    """The budget, and what goes beyond it, in words that differ where they do."""
    beyond = (result.beyond, result.beyond_proved)
    costs = (point.cost.cache_bits for point in beyond if point is not None)
    return format_bytes_apart((result.budget_bits, *costs))


def _budget(result: DesignResult, point: Point) -> str:
    bits = point.cost.cache_bits
    exact = f"{bits // 8}bytes" if bits % 8 == 0 else f"{bits}bits"
    return f"{_amounts(result)[bits]} (--cache {exact}): {layout_text(point.layout)}"


def _indented(text: Any) -> RenderableType:
    from rich.padding import Padding
    from rich.text import Text

    return Padding(Text(text) if isinstance(text, str) else text, (0, 0, 0, 2))
