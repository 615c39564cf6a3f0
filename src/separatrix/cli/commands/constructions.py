"""`separatrix constructions`: what can be written down, and how far each number format carries."""

from __future__ import annotations

from typing import Annotated

import typer

from separatrix.cli.printing import JsonFlag, print_json, print_rows, print_text
from separatrix.core.errors import SpecError


def constructions(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table of docs/constructions.md.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """The constructions: explicit weights with a proof, which task each solves, what it takes of a
    stack, and how far each number format is proved to carry it.
    """
    from separatrix.cli.report.constructions.listing import LEGEND, brief, markdown_table, rows
    from separatrix.cli.report.constructions.recorded import read_recorded

    if markdown and as_json:
        raise SpecError("--markdown and --json are two forms of the same list; give one")
    recorded = read_recorded()
    if markdown:
        typer.echo(markdown_table(recorded), nl=False)
    elif as_json:
        print_json(rows(recorded))
    else:
        print_rows(brief(recorded), False)
        print_text(f"\n{LEGEND}")
