"""A group of commands about named things: `theorems III` means `theorems show III`."""

from __future__ import annotations

import click
from typer.core import TyperGroup

SHOW = "show"


class Listing(TyperGroup):
    """A group whose first argument may be a name: no command of its own is called so."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        import difflib

        first, *others = args
        alone = not others or others[0].startswith("-")
        known = first in self.commands or difflib.get_close_matches(first, self.commands)
        # two words, or one that nearly is a command: somebody misspelt the command
        if alone and not known:
            return super().resolve_command(ctx, [SHOW, *args])
        return super().resolve_command(ctx, args)
