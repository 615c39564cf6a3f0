"""Writers killed with SIGKILL at any moment, and several that claim at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import separatrix

TESTS = Path(__file__).parents[3]
PATH = os.pathsep.join([str(Path(separatrix.__file__).parents[1]), str(TESTS)])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a killed process leaves the same there, sooner."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def script(name: str, folder: Path, *arguments: str) -> str:
    """What a script of tests/support prints, which a process of its own runs in this folder."""
    done = subprocess.run(
        [sys.executable, str(TESTS / "support" / f"{name}.py"), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": PATH},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_writers_killed_between_statements(folder: Path) -> None:
    assert int(script("killed_writers", folder, "statements", "9")) >= 5


@pytest.mark.slow
def test_writers_killed_before_every_statement(folder: Path) -> None:
    assert int(script("killed_writers", folder, "statements", "1")) >= 40


@pytest.mark.slow
def test_writers_killed_at_any_moment(folder: Path) -> None:
    assert int(script("killed_writers", folder, "moments", "50")) == 50


@pytest.mark.slow
def test_rivals_on_one_store(folder: Path) -> None:
    assert int(script("killed_writers", folder, "rivals", "4")) == 4
