"""What documents name: commands with their options, make targets, links. Each check returns what
is wrong, or None.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from support.console import ROOT, regions

_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?P<code>.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(
    r"\]\((?P<target>[^()\s]+(?:\([^()\s]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)|^"
    r" {0,3}\[[^\]]+\]:\s+(?P<below>\S+)",
    re.MULTILINE,
)
_OPTION = re.compile(r"(?<![^\s\[(])(--?[A-Za-z][\w-]*)")
_TARGET = re.compile(r"^([A-Za-z][\w-]*)(?:[ \t]+[A-Za-z][\w-]*)*[ \t]*:(?!=)", re.MULTILINE)


def block_lines(text: str) -> Iterator[tuple[int, str]]:
    """(line number, code) of all lines in code blocks; a command that goes on behind a backslash
    is one line.
    """
    for region in regions(text):
        whole = ""
        start = 0
        for row, line in enumerate(region.lines):
            start = start if whole else row
            whole += line.lstrip() if whole else line
            if whole.endswith("\\"):
                whole = f"{whole[:-1].rstrip()} "
                continue
            yield region.first + start + 1, whole
            whole = ""


def prose(text: str) -> str:
    """The text with empty lines in place of its code blocks."""
    lines = text.split("\n")
    for region in regions(text):
        lines[region.first : region.first + len(region.lines)] = [""] * len(region.lines)
    return "\n".join("" if re.match(r" *(`{3,}|~{3,})", line) else line for line in lines)


def spans(text: str) -> Iterator[tuple[int, str]]:
    """(line number, code) of all inline code; a span may run over a line's end, never over a
    blank line.
    """
    at = 1
    for paragraph in re.split(r"(\n\s*\n)", prose(text)):
        for found in _SPAN.finditer(paragraph):
            yield (
                at + paragraph.count("\n", 0, found.start()),
                " ".join(found["code"].replace("\\|", "|").split()),
            )
        at += paragraph.count("\n")


def commands(text: str) -> Iterator[tuple[int, str]]:
    """(line number, what stands behind `separatrix`) wherever code names a command or an option."""
    for line, code in block_lines(text):
        code = code.removeprefix("$ ")
        if re.match(r"(?:\.venv/bin/)?separatrix\s", code):
            # behind two blanks a table explains it
            yield line, re.split(r"\s{2,}|\s#\s", code.partition("separatrix")[2].strip())[0]
    for line, code in spans(text):
        if re.match(r"(?:\.venv/bin/)?separatrix\s", code):
            yield line, code.partition("separatrix")[2].strip()
        elif _OPTION.match(code) or (" " in code and code.split()[0] in tree().commands):
            yield line, code


def targets(text: str) -> Iterator[tuple[int, str]]:
    """(line number, target) of every `make target` in code."""
    for line, code in block_lines(text):
        if found := re.match(r"(?:\$ )?make\s+([\w-]+)(?=\s|$)", code):
            yield line, found[1]
    for line, code in spans(text):
        if code.startswith("make "):
            yield from (
                (line, word)
                for word in code.split()[1:]
                if "=" not in word and not word.startswith("-")
            )


def links(text: str) -> Iterator[tuple[int, str]]:
    """(line number, target) of every link and image to a file of the repository or a heading."""
    text = prose(text)
    blank = _SPAN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)  # a link in code is none
    for found in _LINK.finditer(blank):
        target = found["target"] or found["below"]
        if not re.match(r"[a-z][a-z0-9+.-]*:", target):
            yield text.count("\n", 0, found.start()) + 1, target


@cache
def tree() -> click.Group:
    """The command line itself, its commands loaded."""
    import typer

    from separatrix.cli.main import app

    command = typer.main.get_command(app)
    assert isinstance(command, click.Group)
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        command.add_command(found)
    return command


def _options(command: click.Command, context: click.Context) -> set[str]:
    options = [
        name
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    ]
    return {*options, *command.get_help_option_names(context)}


def all_options(
    command: click.Command | None = None, parent: click.Context | None = None
) -> set[str]:
    """The options of a command and of all commands below it; of all of `separatrix` by default."""
    command = command or tree()
    context = click.Context(
        command, info_name=command.name, parent=parent, **command.context_settings
    )
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return _options(command, context).union(*(all_options(one, context) for one in below))


def wrong_command(code: str) -> str | None:
    """What is no command or no option in the arguments of `separatrix`, or in an option that
    stands alone.
    """
    if _OPTION.match(code):
        option = code.split()[0].partition("=")[0].rstrip("],.")
        return (
            None
            if option in all_options()
            else f"{option} is no option of any command{_near(option, all_options())}"
        )
    faults = [_wrong_one(part.strip()) for part in re.split(r" \| ", code)]
    return next((fault for fault in faults if fault), None)


def _wrong_one(code: str) -> str | None:
    command: click.Command = tree()
    context = click.Context(command, info_name="separatrix", **command.context_settings)
    known = _options(command, context)
    words = code.split()
    while isinstance(command, click.Group) and words and not words[0].startswith(("-", "[", ">")):
        name = words.pop(0)
        if name not in command.commands:
            return f"{name} is no command{_near(name, command.commands)}"
        command = command.commands[name]
        context = click.Context(command, info_name=name, parent=context, **command.context_settings)
        known = _options(command, context)
    unknown = [option for option in _OPTION.findall(" ".join(words)) if option not in known]
    return (
        f"{unknown[0]} is no option of {context.command_path}{_near(unknown[0], known)}"
        if unknown
        else None
    )


def _near(word: str, known: object) -> str:
    found = difflib.get_close_matches(word, list(known), n=1)  # type: ignore[call-overload]
    return f"; there is {found[0]}" if found else ""


def make_targets(makefile: str) -> set[str]:
    """The targets of a Makefile's text."""
    return {
        name for found in _TARGET.finditer(makefile) for name in found[0].partition(":")[0].split()
    }


def wrong_link(target: str, document: Path) -> str | None:
    """What a link names that is not there: the file, or the heading in it."""
    name, _, anchor = target.partition("#")
    file = (document.parent / name).resolve() if name else document
    if not file.exists():
        return (
            f"{target}: there is no {file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}"
        )
    if anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
        return f"{target}: no heading of {file.name} has this anchor"
    return None


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a text."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+?) *#*$", prose(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found
