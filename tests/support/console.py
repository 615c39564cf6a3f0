"""Console blocks of Markdown documents: found, run, compared with what is printed, written anew.

A block is indented by four spaces or fenced as ```console, and has lines `$ separatrix ...`, each
followed by what it prints. A line `...` stands for one or more lines left out; nothing else is a
wildcard. A command that is followed by no output is run and its output not compared.

`python tests/support/console.py --write [FILE...]` replaces the outputs by what is printed today,
and keeps the cuts.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
)
COLUMNS = 100
CUT = "..."
FILES: dict[str, Any] = {
    "mamba2-2.7b/config.json": {  # as it is published: no sizes of the state
        "d_model": 2560,
        "d_intermediate": 0,
        "n_layer": 64,
        "vocab_size": 50277,
        "ssm_cfg": {"layer": "Mamba2"},
        "attn_layer_idx": [],
        "attn_cfg": {},
        "rms_norm": True,
        "residual_in_fp32": True,
        "fused_add_norm": True,
        "pad_vocab_size_multiple": 16,
        "tie_embeddings": True,
    }
}
"""Files that documents name and the repository does not hold."""

_FENCE = re.compile(r" *(?P<ticks>`{3,}|~{3,}) *(?P<language>[^\s`]*)[^`]*$")
_OUTPUTS = ("--out",)


class DocumentError(Exception):
    """A console block that cannot be read; says where and why."""


@dataclass(frozen=True)
class Region:
    """Lines first to last (from 0, last excluded) of a code block, without fences and without
    `indent` characters at the left.
    """

    first: int
    lines: tuple[str, ...]
    indent: int
    language: str | None  # None for an indented block


@dataclass(frozen=True)
class Command:
    """One command of a document, and the lines that the document shows behind it (rows first to
    last of the file, last excluded).
    """

    document: str
    line: int
    text: str
    output: tuple[str, ...]
    rows: tuple[int, int]
    indent: int

    @property
    def place(self) -> str:
        return f"{self.document}:{self.line}: $ {self.text}"

    @property
    def words(self) -> list[str]:
        """The arguments behind `separatrix`, as a shell would pass them; a comment is none."""
        try:
            words = shlex.split(self.text, comments=True)
        except ValueError as error:
            raise DocumentError(f"{self.place}: {error}") from None
        if not words or words[0] != "separatrix":
            raise DocumentError(
                f"{self.place}: only `separatrix` is run here; use a block without `$` for other"
                " programs"
            )
        if signs := {"|", ">", ">>", "<", "&&", "||", ";", "&"} & set(words):
            raise DocumentError(
                f"{self.place}: runs without a shell, so `{sorted(signs)[0]}` cannot stand here"
            )
        return words[1:]


@dataclass(frozen=True)
class Printed:
    """What a command printed on stdout and stderr, and its exit code."""

    code: int
    text: str

    @property
    def lines(self) -> list[str]:
        return clean(self.text.split("\n"))


def regions(text: str) -> Iterator[Region]:
    """The code blocks of a Markdown text."""
    lines = text.split("\n")
    row = 0
    while row < len(lines):
        if fence := _FENCE.match(lines[row]):
            first = row = row + 1
            while row < len(lines) and not lines[row].strip().startswith(fence["ticks"]):
                row += 1
            indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
            yield Region(
                first, tuple(line[indent:] for line in lines[first:row]), indent, fence["language"]
            )
            row += 1
        elif (
            lines[row].startswith("    ")
            and lines[row].strip()
            and (row == 0 or not lines[row - 1].strip())
        ):
            first = row
            while row < len(lines) and (lines[row].startswith("    ") or not lines[row].strip()):
                row += 1
            last = row
            while not lines[last - 1].strip():
                last -= 1
            yield Region(first, tuple(line[4:] for line in lines[first:last]), 4, None)
        else:
            row += 1


def parse(text: str, document: str) -> list[list[Command]]:
    """The console blocks of a document, each a list of commands. Raises DocumentError."""
    found = [region for region in regions(text) if region.language in (None, "console")]
    return [
        _commands(region, document)
        for region in found
        if any(line.startswith("$ ") for line in region.lines)
    ]


def _commands(region: Region, document: str) -> list[Command]:
    commands: list[Command] = []
    lines = region.lines
    at = 0
    if not lines[0].startswith("$ "):
        raise DocumentError(
            f"{document}:{region.first + 1}: output before the first command of a block; start it"
            " with `$ separatrix ...`"
        )
    while at < len(lines):
        start = at
        text = lines[at].removeprefix("$ ").strip()
        while text.endswith("\\") and at + 1 < len(lines):  # continued, as in a shell
            at += 1
            text = f"{text[:-1].rstrip()} {lines[at].strip()}"
        at = first = at + 1
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        output = clean(lines[first:at])
        rows = (region.first + first, region.first + first + len(output))
        commands.append(
            Command(document, region.first + start + 1, text, tuple(output), rows, region.indent)
        )
    return commands


def grouped(blocks: Sequence[Sequence[Command]]) -> list[list[Command]]:
    """Commands that can run by themselves; one that names what an earlier one writes stands
    behind it, since both need one folder.
    """
    groups: list[list[Command]] = []
    for command in (command for block in blocks for command in block):
        needed = [
            group
            for group in groups
            if any(_within(word, _written(group)) for word in _read(command.words))
        ]
        groups = [group for group in groups if group not in needed]
        groups.append(
            sorted([*(one for group in needed for one in group), command], key=lambda one: one.line)
        )
    return sorted(groups, key=lambda group: group[0].line)


def _written(commands: Iterable[Command]) -> set[str]:
    found = set()
    for command in commands:
        words = command.words
        found |= {value.rstrip("/") for option, value in pairwise(words) if option in _OUTPUTS}
        if words[:1] == ["refute"] and "--out" not in words:
            found.add("certificate.json")
    return found


def _read(words: Sequence[str]) -> list[str]:
    return [word.rstrip("/") for before, word in pairwise(words) if before not in _OUTPUTS]


def _within(word: str, folders: set[str]) -> bool:
    return any(word == folder or word.startswith(f"{folder}/") for folder in folders)


def clean(lines: Sequence[str]) -> list[str]:
    """Lines without blanks at their ends and without blank lines at the end."""
    kept = [line.rstrip() for line in lines]
    while kept and not kept[-1]:
        kept.pop()
    return kept


def matches(expected: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether `expected` is `printed` with one or more lines left out at each `...`, and nothing
    else.
    """
    first, *others = _pieces(expected)
    if list(printed[: len(first)]) != first:
        return False
    if not others:
        return len(printed) == len(first)
    at = len(first)
    for piece in others[:-1]:  # the leftmost place leaves most to what follows
        start = next(
            (
                row
                for row in range(at + 1, len(printed) + 1)
                if list(printed[row : row + len(piece)]) == piece
            ),
            None,
        )
        if start is None:
            return False
        at = start + len(piece)
    start = len(printed) - len(others[-1])
    return start > at and list(printed[start:]) == others[-1]


def _pieces(lines: Sequence[str]) -> list[list[str]]:
    """What stands before, between and behind the cuts."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line == CUT:
            found.append([])
        else:
            found[-1].append(line)
    return found


def recut(old: Sequence[str], printed: Sequence[str]) -> list[str]:
    """`printed` with the cuts of `old`, found again by the lines beside them; the whole of it
    where one is not found.
    """
    pieces = _pieces(old)
    new: list[str] = []
    at = 0
    for number, piece in enumerate(pieces):
        start = 0 if number == 0 else at + 1
        stop = len(printed)
        if number > 0:
            new.append(CUT)
            if not piece:
                start = stop
            else:
                head = piece[: 1 + next((row for row, line in enumerate(piece) if line), 0)]
                wanted = len(printed) - len(piece) if number == len(pieces) - 1 else start
                start = _nearest(printed, head, start, wanted)
        if start is not None and number < len(pieces) - 1:
            if not piece:
                stop = start
            else:
                tail = piece[
                    len(piece)
                    - 1
                    - next((row for row, line in enumerate(reversed(piece)) if line), 0) :
                ]
                found = _nearest(printed, tail, start, start + len(piece) - len(tail))
                stop = None if found is None else found + len(tail)
        if start is None or stop is None:
            return list(printed)
        new += printed[start:stop]
        at = stop
    return new if matches(new, printed) else list(printed)


def _nearest(printed: Sequence[str], run: Sequence[str], least: int, wanted: int) -> int | None:
    """Where `run` stands in `printed` from `least` on, closest to `wanted`."""
    found = [
        row
        for row in range(least, len(printed) - len(run) + 1)
        if list(printed[row : row + len(run)]) == list(run)
    ]
    return min(found, key=lambda row: abs(row - wanted)) if found else None


def fill(folder: Path) -> None:
    """Puts into a folder what commands of documents find there."""
    shutil.copytree(
        ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(json.dumps(content))


def environment() -> dict[str, str]:
    """The variables of a command: 100 columns, no colour, nothing else that changes what is
    printed.
    """
    changed = {"LINES", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}
    return {name: value for name, value in os.environ.items() if name not in changed} | {
        "COLUMNS": str(COLUMNS),
        "NO_COLOR": "1",
    }


def run(words: Sequence[str], folder: Path) -> Printed:
    """Runs `separatrix` with these arguments in this process as if in one of its own."""
    from separatrix.cli import main

    stream = io.StringIO()
    with _alone(folder), contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        code = main.run(list(words))
    return Printed(code, stream.getvalue())


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """A process of its own, nearly: folder, variables, import path, a user's modules and the
    registries of mixers are as before afterwards.
    """
    from separatrix.mixers import MIXERS
    from separatrix.stacks.mechanisms import MECHANISMS

    before = Path.cwd(), dict(os.environ), list(sys.path), dict(MECHANISMS), dict(MIXERS)
    stems = {path.stem for path in folder.rglob("*.py")}
    hidden = {
        name: sys.modules.pop(name) for name in stems & set(sys.modules)
    }  # another test's my_mixer would change the printed name
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment())
    try:
        yield
    finally:
        os.chdir(before[0])
        os.environ.clear()
        os.environ.update(before[1])
        sys.path[:] = before[2]
        MECHANISMS.clear()
        MECHANISMS.update(before[3])
        MIXERS.clear()
        MIXERS.update(before[4])
        here = str(folder.resolve())
        for name in [
            name
            for name, module in sys.modules.items()
            if str(getattr(module, "__file__", None)).startswith(here)
        ]:
            del sys.modules[name]
        sys.modules.update(hidden)


def problem(command: Command, folder: Path) -> str | None:
    """Runs one command of a document; None if it prints what the document says, else where and
    how it differs.
    """
    printed = run(command.words, folder)
    code = 2 if any(line.startswith("error:") for line in command.output) else 0
    if printed.code != code:
        return "\n".join(
            [
                command.place,
                f"exit code {printed.code}, expected {code}; it printed:",
                *printed.lines,
            ]
        )
    if not command.output or matches(command.output, printed.lines):
        return None
    anew = recut(command.output, printed.lines)
    difference = difflib.unified_diff(
        command.output, anew, "in the document", f"printed at {COLUMNS} columns", lineterm=""
    )
    return "\n".join(
        [
            command.place,
            *difference,
            "`python tests/support/console.py --write` writes the outputs anew",
        ]
    )


def written(text: str, document: str) -> tuple[str, list[str]]:
    """The text with the outputs of today, and a line on every command whose output changed.
    Raises DocumentError.
    """
    lines = text.split("\n")
    news = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        fill(folder)
        commands = [command for block in parse(text, document) for command in block]
        outputs = [(command, run(command.words, folder).lines) for command in commands]
    for command, printed in reversed(
        outputs
    ):  # from the end, so that rows before stay where they are
        if not command.output or matches(command.output, printed):
            continue
        new = recut(command.output, printed)
        lost = CUT in command.output and CUT not in new
        news.append(
            f"{command.place}: written anew"
            + (", whole: the place of a cut was not found" if lost else "")
        )
        lines[slice(*command.rows)] = [f"{' ' * command.indent}{line}".rstrip() for line in new]
    return "\n".join(lines), news[::-1]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Outputs in documents, written anew.")
    parser.add_argument(
        "--write",
        nargs="*",
        metavar="FILE",
        required=True,
        help="Markdown files (default: README, CONTRIBUTING, docs)",
    )
    for name in parser.parse_args(arguments).write or [
        str(ROOT / document) for document in DOCUMENTS
    ]:
        text = Path(name).read_text(encoding="utf-8")
        new, news = written(text, name)
        if new != text:
            Path(name).write_text(new, encoding="utf-8")
        print("\n".join(news or [f"{name}: nothing to write"]))


if __name__ == "__main__":
    main()
