"""`separatrix theorems` and `separatrix theorems show`."""

from __future__ import annotations

from typing import Annotated

import typer

from separatrix.cli import complete
from separatrix.cli.groups import Listing
from separatrix.cli.printing import JsonFlag, print_description, print_rows

theorems_app = typer.Typer(cls=Listing, rich_markup_mode=None)


@theorems_app.callback(invoke_without_command=True)
def theorems(context: typer.Context, as_json: JsonFlag = False) -> None:
    """The theorems that `analyze` and `reproduce` apply, further known statements, and the
    counts behind Theorem I.
    """
    if context.invoked_subcommand:
        return
    from separatrix.cli.report.listing import list_theorems

    print_rows(list_theorems(), as_json)


@theorems_app.command("show")
def theorems_show(
    key: Annotated[str, typer.Argument(autocompletion=complete.theorems)], as_json: JsonFlag = False
) -> None:
    """One theorem: statement, premises, source, sketch of the proof."""
    from separatrix.cli.report.listing import describe_theorem
    from separatrix.cli.report.parts import keyed

    print_description(keyed(describe_theorem(key)), as_json)
