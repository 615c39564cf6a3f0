"""Brings .venv to what a make target needs, from wheels and with the versions of constraints.txt.
Needs nothing but Python 3.11.

    python3 tools/environment.py run|test|peers|lint|docs

A need that was met before is met again only after pyproject.toml or constraints.txt have changed.
The file .venv/.needs tells what is met; it is taken away before anything is installed, so that an
interrupted or failed set-up leaves none. What such a set-up left is then kept if every file of
every package is there, and made anew if not. A second set-up of the same folder waits for the
first.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EXTRAS = {"run": "", "test": "test", "peers": "peers", "lint": "lint", "docs": "docs"}
"""The extra of pyproject.toml behind each need, if one is. Each includes those before it."""
TARGETS = {
    "run": "reproduce",
    "test": "test",
    "peers": "test-peers",
    "lint": "lint",
    "docs": "site",
}
"""A target of the Makefile for each need."""
BUILD = ("hatchling", "editables")
"""What builds the package itself."""
FROM_SOURCE = ("rouge_score", "sqlitedict", "word2number")
"""Packages that exist as sources only: dependencies of lm-evaluation-harness."""
BUILD_FROM_SOURCE = ("setuptools", "wheel")
WITH_SOURCES = ("peers", "lint", "docs")
ELSEWHERE = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PIP_DRY_RUN",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_TARGET",
    "PIP_USER",
    "PIP_REQUIREMENT",
    "PIP_CONSTRAINT",
)
"""Settings under which pip would look at packages outside of .venv, or install to another place, or
something else.
"""

_WHOLE = """
import os, sys
from importlib.metadata import distributions
found = {}
for package in distributions():
    found[(package.metadata["Name"] or "").lower()] = package
    if package.files is None:
        sys.exit(1)
    for file in package.files:
        path = str(file.locate())
        if path.endswith(".pyc"):
            continue
        if not os.path.exists(path) or file.size not in (None, os.path.getsize(path)):
            sys.exit(1)
sys.exit("pip" not in found)
"""


class SetupFailed(Exception):
    """The reason, in one line."""


def bring(root: Path, need: str) -> None:
    """Meets a need of the folder's .venv, unless it was met before. Raises SetupFailed."""
    venv = root / ".venv"
    if venv.is_symlink() or (venv.exists() and not venv.is_dir()):
        raise SetupFailed(f"{venv} is no folder of its own; remove it")
    with _alone(root) as lock:
        inputs = _inputs(root)
        met = _met(venv, inputs)
        if need in met:
            return
        (venv / ".needs").unlink(missing_ok=True)
        if not met and venv.exists() and not _whole(venv):
            print("making .venv anew: it is unfinished, or another Python's", flush=True)
            shutil.rmtree(venv)
        print(
            f"setting up .venv for `make {TARGETS[need]}` (once; it can take minutes)", flush=True
        )
        if not venv.exists():
            _call(
                [sys.executable, "-m", "venv", str(venv)],
                "Python cannot make a virtual environment; its own words are above.",
                lock,
            )
        _install(root, venv, need, lock)
        needs = list(EXTRAS)
        _write(
            venv / ".needs",
            {"inputs": inputs, "met": sorted({*met, *needs[: needs.index(need) + 1]})},
        )


def _install(root: Path, venv: Path, need: str, lock: int) -> None:
    python = str(venv / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    pip += ["--constraint", str(root / "constraints.txt"), "--only-binary", ":all:"]
    sources = need in WITH_SOURCES
    if sources:
        pip += ["--no-binary", ",".join(FROM_SOURCE)]
    reason = (
        "the packages could not be installed; pip's own words are above. The same command starts"
        " again."
    )
    _call([*pip, *BUILD, *(BUILD_FROM_SOURCE if sources else ())], reason, lock)
    package = f"{root}[{EXTRAS[need]}]" if EXTRAS[need] else str(root)
    _call([*pip, "--no-build-isolation", "--editable", package], reason, lock)
    name = tomllib.loads((root / "pyproject.toml").read_text())["project"]["name"]
    there = f"from importlib.metadata import version; version({name!r})"
    _call(
        [python, "-I", "-c", there],
        "pip has put the package somewhere else; look at its settings (`pip config list`)",
        lock,
    )


def _call(command: list[str], reason: str, lock: int) -> None:
    """Runs a command that keeps the lock for as long as it lives, should this process end before
    it.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    if subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, env=environment, pass_fds=[lock]
    ).returncode:
        raise SetupFailed(reason)


def _inputs(root: Path) -> str:
    """Everything an environment depends on: the place, the Python, what is asked for."""
    digest = hashlib.sha256(f"{root} {sys.version_info[:2]}".encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


def _met(venv: Path, inputs: str) -> list[str]:
    """The needs that are met; none where the file is missing or damaged, or the Python of the
    environment is gone.
    """
    try:
        found = json.loads((venv / ".needs").read_text())
        same = found["inputs"] == inputs and (venv / "bin" / "python").exists()
        return [need for need in EXTRAS if same and need in found["met"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _whole(venv: Path) -> bool:
    """Whether an environment is one of this Python and of this place, and holds every file of every
    package in it.
    """
    python = venv / "bin" / "python"
    version = "import sys; print(sys.version_info[:2])"
    try:
        same = subprocess.run(
            [str(python), "-c", version], capture_output=True, text=True, check=True
        ).stdout.strip() == str(sys.version_info[:2])
        here = str(venv) in (venv / "bin" / "pip").read_text()
        return (
            same
            and here
            and subprocess.run(
                [str(python), "-I", "-c", _WHOLE], check=False, capture_output=True
            ).returncode
            == 0
        )
    except (OSError, subprocess.CalledProcessError):
        return False


def _write(path: Path, value: object) -> None:
    unfinished = path.with_name(path.name + ".new")
    unfinished.write_text(json.dumps(value) + "\n")
    unfinished.replace(path)


@contextmanager
def _alone(root: Path) -> Iterator[int]:
    """Waits until no other set-up of the folder is at work. The lock is on the folder itself, and
    goes with the processes that hold it; its file descriptor is given.
    """
    folder = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("waiting for another set-up of this folder", flush=True)
        fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        os.close(folder)


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in EXTRAS:
        print(f"usage: python3 {sys.argv[0]} {'|'.join(EXTRAS)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends pip, too
    try:
        bring(Path(__file__).resolve().parent.parent, sys.argv[1])
    except (SetupFailed, OSError) as error:
        print(f"error: set-up failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("set-up interrupted; the same command starts again", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
