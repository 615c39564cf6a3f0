"""The explorer's page for the site, complete without a server behind it: the page and its theory
for a Python in the browser (Pyodide), and the cards of all presets. `make site` runs it first.

    .venv/bin/python tools/explorer.py [--whole] [--out build/explore]

What is not this program's own is fetched once into build/downloads, by npm and pip, and compared
with hashes; KaTeX among it. Without it the page is made too, and says what it lacks; with `--whole`
that is an error.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from separatrix.cli.explore.answers import Question, answers, start
from separatrix.cli.explore.server import LARGEST
from separatrix.cli.report.html import base_style
from separatrix.stacks.architecture.released import PRESETS

ROOT = Path(__file__).resolve().parent.parent
DOWNLOADS = ROOT / "build" / "downloads"
OWN = ROOT / "docs" / "site" / "explore"
PAGE = ROOT / "src" / "separatrix" / "cli" / "explore" / "page"
RUNTIME = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
ROOMS = ("core", "stacks", "tasks", "theory", "cards", "cli/report", "cli/explore")
"""Of the package, with what lies directly in it and in cli: all that answers need."""


class Missing(Exception):
    """What could not be fetched, and why, in a line."""


@dataclass(frozen=True)
class Download:
    """A file of a registry: how it is fetched, and what it must be."""

    file: str
    sha256: str
    command: tuple[str, ...]

    def path(self) -> Path:
        """Where it lies, fetched if it does not yet. Raises Missing."""
        path = DOWNLOADS / self.file
        if not self._right(path):
            DOWNLOADS.mkdir(parents=True, exist_ok=True)
            try:
                done = subprocess.run(
                    self.command, cwd=DOWNLOADS, capture_output=True, text=True, timeout=600
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise Missing(f"{self.file} could not be fetched: {error}") from None
            if done.returncode:
                said = (done.stderr.strip() or "no reason given").splitlines()
                raise Missing(f"{self.file} could not be fetched: {said[-1]}")
            if not self._right(path):
                raise Missing(f"{self.file} is not the file that was expected: its hash differs")
        return path

    def _right(self, path: Path) -> bool:
        return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256


def _npm(name: str, version: str, sha256: str) -> Download:
    command = ("npm", "pack", "--silent", f"{name}@{version}")
    return Download(f"{name}-{version}.tgz", sha256, command)


KATEX = _npm("katex", "0.19.1", "24da5a599eb2fcede2e270b99a6ff48bca816beecc95feeb84e8cccbd1bb34fd")
PYODIDE = _npm(
    "pyodide", "314.0.7", "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0"
)
# of the ABI of that Pyodide: Python 3.14, pyemscripten_2026_0
_FLINT = "python_flint-0.9.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl"
FLINT = Download(
    _FLINT,
    "b31f5c00e0e36040ab58d00b3025156e20869b990d776e4bf90f870b1ee11ad3",
    (
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"),
        *("--disable-pip-version-check", "--only-binary=:all:", "--implementation=cp"),
        *("--platform=pyemscripten_2026_0_wasm32", "--python-version=3.14", "--abi=cp314"),
        "python-flint==0.9.0",
    ),
)


def unpacked(download: Download) -> Path:
    """The folder of a package of npm. Raises Missing."""
    path = download.path()
    folder = DOWNLOADS / path.stem
    if not (folder / "package" / "package.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        with tarfile.open(path) as packed:
            packed.extractall(folder, filter="data")
    return folder / "package"


def sources() -> Iterator[Path]:
    """The files of the package that answers need, below src/."""
    package = ROOT / "src" / "separatrix"
    found = [*package.glob("*"), *(package / "cli").glob("*")]
    for room in ROOMS:
        found += (package / room).rglob("*")
    for path in sorted(set(found)):
        if path.is_file() and "__pycache__" not in path.parts and PAGE not in path.parents:
            yield path


def digest() -> str:
    """Of all that the page is made from: whether a built page is of today's sources."""
    found = hashlib.sha256()
    for path in (*sources(), *sorted(PAGE.iterdir()), *sorted(OWN.iterdir())):
        found.update(f"{path.relative_to(ROOT)}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def engine(out: Path) -> None:
    """Pyodide, python-flint and the package as bytecode. Raises Missing."""
    runtime, flint = unpacked(PYODIDE), FLINT.path()
    (out / "pyodide").mkdir()
    for name in RUNTIME:
        shutil.copy(runtime / name, out / "pyodide")
    with zipfile.ZipFile(out / "sources.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sources():
            packed.write(path, path.relative_to(ROOT / "src"))
    try:
        done = subprocess.run(
            ["node", OWN / "compile.mjs", out, out / "sources.zip", out / "separatrix.zip"],
            capture_output=True,
            text=True,
        )
    except OSError as error:
        raise Missing(f"Node, which compiles for it, could not be run: {error}") from None
    if done.returncode:
        raise Missing(f"the package could not be compiled for it: {done.stderr.strip()[-300:]}")
    (out / "sources.zip").unlink()
    shutil.copy(flint, out / "flint.whl")


def cards() -> dict[str, list[object]]:
    """The answer to each preset at its own context, part by part."""
    return {name: list(answers(Question((name,)))) for name in PRESETS}


def build(out: Path) -> str:
    """Makes the folder anew and returns what it lacks, in a sentence ("": nothing)."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    lacks = ""
    try:
        engine(out)
    except Missing as missing:
        lacks = f"{missing}."
        shutil.rmtree(out / "pyodide", ignore_errors=True)
    shutil.copy(PAGE / "page.js", out)
    shutil.copy(PAGE / "page.css", out)
    shutil.copy(ROOT / "docs" / "site" / "scheme.js", out)
    (out / "base.css").write_text(base_style(), encoding="utf-8")
    (out / "index.html").write_text(page(), encoding="utf-8")
    for name in ("engine.js", "worker.mjs", "theory.mjs", "opened.js"):
        shutil.copy(OWN / name, out)
    about = {**start(), "given": [], "largest": LARGEST, "lacks": lacks, "digest": digest()}
    (out / "start.json").write_text(json.dumps(about), encoding="utf-8")
    (out / "cards.bin").write_bytes(gzip.compress(json.dumps(cards()).encode(), mtime=0))
    return lacks


def page() -> str:
    """The page as it is served, with links to the site; opened as a file it says what it lacks."""
    html = (PAGE / "page.html").read_text(encoding="utf-8")
    links = {"Site": "index", "Lesson": "lesson", "Theory": "theory/index", "Report": "report"}
    inside = "".join(f'<a href="../{target}.html">{name}</a>' for name, target in links.items())
    html = html.replace("<header>", f'<header>\n  <nav aria-label="Site">{inside}</nav>')
    own = '<script src="scheme.js"></script>\n<script src="opened.js" defer></script>\n'
    return html.replace("<script", f"{own}<script", 1)


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes the explorer's page for the site.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "explore", help="made anew")
    parser.add_argument("--whole", action="store_true", help="what is lacking is an error")
    given = parser.parse_args()
    wrong = []
    try:
        unpacked(KATEX)
    except Missing as missing:
        wrong.append(f"formulas stand as TeX: {missing}")
    if lacks := build(given.out):
        wrong.append(f"the explorer's page answers for presets only: {lacks}")
    for line in wrong:
        print(f"{'error' if given.whole else 'warning'}: {line}", file=sys.stderr)
    if wrong and given.whole:
        return 1
    files = [path for path in given.out.rglob("*") if path.is_file()]
    print(json.dumps({"files": len(files), "bytes": sum(path.stat().st_size for path in files)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
