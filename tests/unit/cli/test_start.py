"""What a user types first: the version, -h, `python -m separatrix`, completion by the shell, and
the main job without its extra.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from support.named import tree

import separatrix
from separatrix.cli.main import run

PROGRAM = Path(sys.executable).parent / "separatrix"


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"separatrix {separatrix.__version__}\n"


def test_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "separatrix", "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"separatrix {separatrix.__version__}\n",
        "",
    )


def commands(group: click.Group, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command and group, as the words that name it."""
    found = [words]
    for name, command in group.commands.items():
        found += (
            commands(command, (*words, name))
            if isinstance(command, click.Group)
            else [(*words, name)]
        )
    return found


@pytest.mark.parametrize("words", commands(tree()), ids=" ".join)
def test_short_and_long_help_agree(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "-h"]) == 0
    short = capsys.readouterr().out
    assert run([*words, "--help"]) == 0
    assert capsys.readouterr().out == short
    assert short.startswith("Usage: ")


BASH = """
eval "$(separatrix --show-completion)"
read -ra COMP_WORDS <<< "$LINE"
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_separatrix_completion separatrix
echo "${COMPREPLY[*]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="completes in bash")
@pytest.mark.parametrize(
    ("line", "completed"),
    [("separatrix an", "analyze"), ("separatrix analyze full --cont", "--context")],
)
def test_completion_in_bash(line: str, completed: str) -> None:
    environment = os.environ | {
        "LINE": line,
        "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-c", BASH], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, completed, "")
