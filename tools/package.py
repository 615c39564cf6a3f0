"""Builds the package as it would be published, installs it where nothing else is, and uses it as a
stranger would. Needs hatchling: `make package`.

.venv/bin/python tools/package.py [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAID = (
    "Name",
    "Version",
    "Summary",
    "License-Expression",
    "Requires-Python",
    "Keywords",
    "Classifier",
    "Project-URL",
    "Description-Content-Type",
)
"""What the metadata must state."""
MISSING_EXTRA = (
    "error: exporting to hf needs the extra 'export': pip install 'separatrix[export]'\n"
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Builds the package, installs it where nothing else is, and uses it."
    )
    parser.add_argument("--keep", type=Path, help="a folder for the wheel and the sdist")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wheel, sdist = built(ROOT, folder / "dist")
        check_wheel(wheel)
        check_sdist(sdist, wheel, folder)
        use(wheel, folder)
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            for file in (wheel, sdist):
                shutil.copy2(file, keep)
        print(
            f"{wheel.name} ({wheel.stat().st_size:,} bytes) and {sdist.name}"
            f" ({sdist.stat().st_size:,} bytes) are whole and work"
        )
    return 0


def built(source: Path, out: Path) -> tuple[Path, Path]:
    call([sys.executable, "-m", "hatchling", "build", "-d", str(out)], source)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")
        }


def check_wheel(wheel: Path) -> None:
    """The wheel holds every file of the package, the mark of a typed package among them, and says
    what it is.
    """
    inside = contents(wheel)
    own = {
        path.relative_to(ROOT / "src").as_posix(): path.read_bytes()
        for path in (ROOT / "src").rglob("*")
        if path.is_file()
    }
    own = {name: data for name, data in own.items() if "__pycache__" not in name}
    demand("separatrix/py.typed" in own, "there is no py.typed")
    demand(
        {name: data for name, data in inside.items() if ".dist-info/" not in name} == own,
        "the wheel differs from src",
    )
    (name,) = (name for name in inside if name.endswith(".dist-info/METADATA"))
    metadata = HeaderParser().parsestr(inside[name].decode())
    missing = [field for field in SAID if not metadata[field]]
    demand(not missing, f"the metadata lack {', '.join(missing)}")
    demand(
        not [line for line in metadata.get_all("Classifier", []) if "UNKNOWN" in line],
        "a classifier is unknown",
    )


def check_sdist(sdist: Path, wheel: Path, folder: Path) -> None:
    """What is built from the sdist alone is the same wheel, and the sdist brings the tests and
    documents.
    """
    with tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder / "sdist", filter="data")
        else:  # Python 3.11.0 to 3.11.3
            archive.extractall(folder / "sdist")
    (source,) = (folder / "sdist").iterdir()
    again, _ = built(source, folder / "again")
    demand(contents(again) == contents(wheel), "the wheel built from the sdist is another one")
    for name in (
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "constraints.txt",
        "tests/README.md",
        "docs/guide.md",
        "examples/my_mixer.py",
    ):
        demand((source / name).is_file(), f"the sdist lacks {name}")


def use(wheel: Path, folder: Path) -> None:
    """Installs the wheel without extras into an empty environment and runs what a stranger would
    run first, away from the repository.
    """
    call([sys.executable, "-m", "venv", str(folder / "venv")], folder)
    python = folder / "venv" / "bin" / "python"
    away = folder / "away"
    away.mkdir()
    install = [
        "install",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
    ]
    call(
        [
            str(python),
            "-m",
            "pip",
            *install,
            "--constraint",
            str(ROOT / "constraints.txt"),
            str(wheel),
        ],
        away,
    )
    program = str(python.with_name("separatrix"))
    version = wheel.name.split("-")[1]
    expect([program, "--version"], away, f"separatrix {version}\n")
    expect([str(python), "-m", "separatrix", "--version"], away, f"separatrix {version}\n")
    expect(
        [str(python), "-c", "import separatrix; print(separatrix.Architecture.parse('full').spec)"],
        away,
        "full\n",
    )
    for arguments, said in (
        (["analyze", "recurrentgemma-2b"], "18 RG-LRU"),
        (["task", "eva:n=8", "sample"], "target"),
        (["list", "experiments"], "recorded"),
        (["reproduce", "--help"], "Usage: separatrix reproduce"),
        (
            ["refute", "linear @ heads=1, head_dim=2, p3", "--task", "eva:n=8"],
            "right answer",
        ),
        (["verify", "certificate.json"], "holds: 1 certificate"),
    ):
        found = call([program, *arguments], away)
        demand(said in found, f"`separatrix {' '.join(arguments)}` does not say {said!r}:\n{found}")
    done = subprocess.run(
        [program, "task", "eva:n=8", "export", "--format", "hf", "--out", "eva"],
        cwd=away,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    demand(
        (done.returncode, done.stderr) == (2, MISSING_EXTRA),
        f"without the extra, task export says:\n{done.stderr}",
    )
    demand(
        sorted(path.name for path in away.iterdir()) == ["certificate.json"],
        "something else was left behind",
    )


def environment() -> dict[str, str]:
    """The environment of a stranger: nothing that points into the repository."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }


def expect(command: Sequence[str], folder: Path, wanted: str) -> None:
    found = call(command, folder)
    demand(found == wanted, f"`{' '.join(command)}` prints {found!r} instead of {wanted!r}")


def call(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    demand(
        done.returncode == 0,
        f"`{' '.join(command)}` ends with {done.returncode}:\n{done.stdout}{done.stderr}",
    )
    return done.stdout


def demand(holds: bool, otherwise: str) -> None:
    if not holds:
        print(f"error: {otherwise}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
