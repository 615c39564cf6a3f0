"""The table of commands (commands.toml) as the command line reads it: commands under headings, and
what became of commands and options of earlier versions.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Sequence
from importlib import import_module
from importlib.resources import files
from shlex import join
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
        name, *others = args
        if name not in COMMANDS and (new := now(name, others)):
            raise SpecError(f"`separatrix {name}` is now: {new}")
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise SpecError(f"No such command '{name[:60]}'.{hint} `separatrix --help` lists all.")
        return super().resolve_command(ctx, args)


_VALUE = re.compile(r"\{(.+)\}")


def _former(lines: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Options of one command -> what stands for each ("" for nothing), and why; in the table the
    one, the other, or both with a semicolon between.
    """
    named = lines.get("set", "").replace("_", "-").split()
    found = {f"--{name}": (f"--set {name.replace('-', '_')}={{VALUE}}", "") for name in named}
    for option, text in lines.items():
        new, _, why = text.partition("; ")
        if option != "set":
            found[option] = (new, why) if text.startswith("--") else ("", text)
    return found


FORMER = {command: _former(lines) for command, lines in TABLE["former"].items()}
"""Command of today -> options that it, or what it was made of, once had."""


def former_option(command: str, option: str) -> str:
    """What stands for an option of an earlier version; "" for one that never was."""
    found, why = FORMER.get(command, {}).get(option.partition("=")[0], ("", ""))
    new = _VALUE.sub(r"\1", found)
    return " ".join(filter(None, (new and f"it is now {new}", why)))


def now(name: str, words: Sequence[str]) -> str:
    """The line to type today for a command of an earlier version; "" for one that never was."""
    words = list(words)
    given = {word.partition("=")[0] for word in words}
    first, *rest = words or ["NAME"]
    match name:
        case "tasks" if first in ("sample", "export"):
            return _line("task", [*(rest[:1] or ["NAME"]), first, *rest[1:]])
        case "theorems" | "mechanisms" | "presets" | "constructions" | "tasks":
            return _line("list", [name, *(rest if first == "show" else words)])
        case "audit":
            return _line("task", [first, "audit", *rest])
        case "evaluate":
            task, others = _taken("--task", words)
            return _line("task", [task or "NAME", "evaluate", *others])
        case "precision":
            asked = [] if given & {"--formats", "--bits"} else ["--formats", "fp64,fp32,bf16,fp16"]
            return _line("list", ["constructions", *words, *asked])
        case "experiment" if (
            first.startswith("-") or not words or given & {"--recorded", "--rows", "--check"}
        ):
            return _line("list", ["experiments", *words])
        case "experiment" | "sweep":
            return _line("train", words)
        case _:
            return ""


def _taken(option: str, words: list[str]) -> tuple[str, list[str]]:
    """The value of an option, and the other words."""
    for place, word in enumerate(words):
        if word == option and place + 1 < len(words):
            return words[place + 1], words[:place] + words[place + 2 :]
        if word.startswith(f"{option}="):
            return word.partition("=")[2], words[:place] + words[place + 1 :]
    return "", words


def _line(command: str, words: list[str]) -> str:
    """A command of today as one line for a shell, its options as they are called now."""
    former = FORMER.get(command, {})
    said = [command]
    reasons: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        if option not in former:
            said.append(word)
            continue
        new, why = former[option]
        if _VALUE.search(new):
            value = value if equals else rest.pop(0) if rest else "VALUE"
            one, _, other = new.partition(" ")
            said += [one, _VALUE.sub(lambda _, value=value: value, other)]
        elif new:
            said += [*new.split(" "), *([value] if equals else [])]
        else:
            reasons.append(f"{option}: {why}")
            if not equals and rest and not rest[0].startswith("-"):
                rest.pop(0)
    return "; ".join([f"separatrix {join(said)}", *reasons])
