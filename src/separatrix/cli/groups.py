"""The table of commands (commands.toml) as the command line reads it: commands under headings."""

from __future__ import annotations

import difflib
import tomllib
from importlib import import_module
from importlib.resources import files
from typing import Any

import click
from typer.core import TyperGroup

from separatrix.core.errors import SpecError

TABLE: dict[str, Any] = tomllib.loads(
    (files("separatrix.cli") / "commands.toml").read_text(encoding="utf-8")
)
COMMANDS: dict[str, dict[str, Any]] = TABLE["commands"]
HEADINGS = {
    heading: {name: COMMANDS[name]["line"] for name in names.split()}
    for heading, names in TABLE["groups"].items()
}
"""Heading -> the commands below it, each in a line."""
ABOUT = ("home", "line", "example", "uses")
"""What stands in a command's table beside what it takes."""
EXAMPLES: dict[str, str] = {name: one["example"] for name, one in COMMANDS.items()}
"""Command -> one use that works."""
FORMER: dict[str, str] = TABLE["former"]
"""Command or option of before -> what stands for it."""


class Commands(TyperGroup):
    """All commands: listed under headings; what is misspelt or of an earlier version is told."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The file of a command is loaded when it is asked for."""
        if cmd_name not in COMMANDS:
            return None
        home = import_module(f"separatrix.cli.commands.{COMMANDS[cmd_name].get('home', cmd_name)}")
        own = cmd_name.replace("-", "_")
        return getattr(home, own if hasattr(home, own) else f"{own}_")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        longest = max(map(len, COMMANDS))
        for heading, lines in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{longest}}", line) for name, line in lines.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in FORMER and not name.startswith("-"):
            raise SpecError(f"`separatrix {name}` is now: separatrix {FORMER[name]}")
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise SpecError(f"No such command '{name[:60]}'.{hint} `separatrix --help` lists all.")
        return super().resolve_command(ctx, args)
