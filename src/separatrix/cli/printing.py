"""How commands print: JSON for machines, tables and descriptions for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def console() -> Any:
    from rich.console import Console

    return Console(highlight=False)


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def print_rows(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Rows with the same keys, as JSON or as a table."""
    if as_json:
        print_json(list(rows))
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console().print(table)


def print_description(parts: Iterable[tuple[str, str]], as_json: bool) -> None:
    """(heading, text) pairs, as JSON or as headings with indented text."""
    if as_json:
        print_json(dict(parts))
        return
    for title, text in parts:
        typer.echo(f"{title}\n  " + text.replace("\n", "\n  "))
