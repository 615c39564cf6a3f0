"""The table of constructions, for the terminal, as data and as Markdown."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from separatrix.cli.report.constructions.recorded import (
    FORMATS,
    Limit,
    Recorded,
    Row,
    read_recorded,
)
from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.document.markdown import table
from separatrix.core.errors import UnknownNameError
from separatrix.core.evidence.records import to_plain

COLUMNS = (
    "construction",
    "task",
    "layers",
    "heads",
    "d",
    "width",
    "non-zero",
    "theorem's least",
    "every input run",
    "grows",
    *FORMATS,
)
LEGEND = (
    "d: dimensions of keys or values that a head uses, the larger of both. Theorem's least: the"
    " fewest layers, and dimensions of one head in each, with which the theorem behind it calls the"
    " task solvable. Every input run: the largest size of which all inputs were answered, and how"
    " many they are. fp64 to fp16: the largest size proved in that format, all other sizes fixed;"
    " >= where no larger one was tried."
)


def rows(recorded: Recorded) -> list[dict[str, Any]]:
    """Every construction as data: what it solves and takes, and what is recorded of it."""
    found = {row.name: row for row in recorded.rows}
    return [
        {
            "construction": recipe.name,
            "solves": recipe.task.name,
            "theorem": recipe.theorem,
            "takes": recipe.takes,
            "recorded": to_plain(asdict(found[recipe.name])) if recipe.name in found else None,
        }
        for recipe in CONSTRUCTIONS.values()
    ]


def brief(recorded: Recorded) -> list[dict[str, str]]:
    """The table as a terminal has room for it."""
    shown = ("construction", "task", "layers", "d", "width", "grows", *FORMATS)
    lines = [dict(zip(COLUMNS, _cells(row), strict=True)) for row in recorded.rows]
    return [{name: line[name] for name in shown} for line in lines]


def describe(name: str) -> list[tuple[str, str]]:
    """(heading, text) pairs of one construction. Raises UnknownNameError."""
    if name not in CONSTRUCTIONS:
        listing = "separatrix list constructions"
        raise UnknownNameError.of("construction", name[:60], CONSTRUCTIONS, listing=listing)
    recipe = CONSTRUCTIONS[name]
    parts = [
        (f"{name}: solves {recipe.task.name}", recipe.takes),
        ("theorem", f"{recipe.theorem}; `separatrix list theorems {recipe.theorem}` explains it"),
    ]
    for row in (one for one in read_recorded().rows if one.name == name):
        carried = (f"{one}: {_limit(limit)}" for one, limit in row.proved.items())
        parts += [
            ("an example", f"{row.task} by {row.architecture}"),
            (f"the largest {row.grows} proved in each format", "\n".join(carried)),
            ("written", f"separatrix construct {row.task} --kind {name} --out model/"),
        ]
    return parts


def page() -> str:
    """The recorded table, as docs/constructions.md has it."""
    return markdown_table(read_recorded())


def markdown_table(recorded: Recorded) -> str:
    """The table as Markdown, with its legend and where it comes from."""
    made = (
        f"Derived by `{recorded.command}` at commit {recorded.commit[:12]}, {recorded.date}."
        " A test derives rows again."
    )
    return f"{table(COLUMNS, [_cells(row) for row in recorded.rows])}\n\n{LEGEND}\n\n{made}\n"


def _cells(row: Row) -> tuple[str, ...]:
    least = "-"
    if row.least_layers is not None:
        dims = "" if row.least_head_dim is None else f", d = {row.least_head_dim:,}"
        least = f"{row.least_layers:,} layer{'s' * (row.least_layers > 1)}{dims}"
    exhaustive = f"{row.exhaustive} ({row.inputs:,})" if row.exhaustive else "-"
    return (
        row.name,
        row.task,
        f"{row.layers:,}",
        f"{row.heads:,}",
        f"{row.head_dim:,}",
        f"{row.width:,}",
        f"{row.nonzero:,}",
        least,
        exhaustive,
        row.grows,
        *(_limit(row.proved[one]) for one in FORMATS),
    )


def _limit(limit: Limit) -> str:
    if limit.size is None:
        return "none"
    return f">= {limit.size:,}" if limit.capped else f"{limit.size:,}"
