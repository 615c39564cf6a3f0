"""The net: golden values of everything that a change of the code may change unseen.

    python tests/net.py --check                    every section against tests/golden/net.txt
    python tests/net.py --check --only quick       the quick ones; or --only samples,verdicts
    python tests/net.py --write --only verdicts    this section's lines anew, the others stay
    python tests/net.py --settings                 the quick ones under other settings
    python tests/net.py --settings pytest -x tests a command of one's own under the other settings

The file shows change, not truth: a commit that means to change a line writes it anew and says so.
Texts and integers are kept as hashes, numbers of floating point as values with the section's
tolerance. A setting takes instructions away from the processor, as if the machine were another.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory

VERSION = 1
GOLDEN = Path(__file__).resolve().parent / "golden" / "net.txt"
RULE = (
    "# A commit that means to change a line writes it anew"
    " (python tests/net.py --write --only SECTION) and says why."
)
Value = str | Sequence[float]
"""A text or a hash, which must be equal, or numbers, which must be near."""
Lines = dict[str, str]
"""Key -> value as written; numbers begin with "~"."""


@dataclass(frozen=True)
class Absent:
    """Lines that cannot be computed here: those whose keys begin so stay as they are."""

    prefix: str
    why: str


Part = tuple[str, Callable[[], Value]] | Absent


@dataclass(frozen=True)
class Section:
    """One kind of values. `tolerance` is relative to the largest number of a line, or to `each`."""

    lines: Callable[[], Iterable[Part]]
    tolerance: float = 0.0
    each: bool = False
    slow: bool = False
    refused: tuple[str, ...] = ()
    """How the keys begin of what must be refused. An error elsewhere is no value."""


@dataclass
class Found:
    """What a section's lines are now."""

    lines: Lines = field(default_factory=dict)
    absent: list[Absent] = field(default_factory=list)
    broken: Lines = field(default_factory=dict)
    """Key -> an error that is no user's: nothing that a golden file may hold."""


def written(value: Value) -> str:
    if isinstance(value, str):
        if "\n" in value or "\t" in value or value.startswith("~"):
            raise ValueError(f"{value[:60]!r} is no text of one line")
        return value
    return "~" + " ".join(f"{number:.12g}" for number in value)


def computed(name: str, section: Section) -> Found:
    """Every line of a section. Where that is said, the class of a refusal is a value as well."""
    from separatrix import SeparatrixError

    found = Found()
    for part in section.lines():
        if isinstance(part, Absent):
            found.absent.append(Absent(f"{name}/{part.prefix}", part.why))
            continue
        key = f"{name}/{part[0]}"
        if key in found.lines or "\t" in key:
            raise ValueError(f"the key {key!r} stands twice, or holds a tabulator")
        try:
            found.lines[key] = written(part[1]())
        except Exception as error:
            if isinstance(error, SeparatrixError) and part[0].startswith(section.refused):
                found.lines[key] = f"raises {type(error).__name__}"
            else:
                found.broken[key] = f"breaks with {type(error).__name__}: {error}"
    return found


def near(old: str, new: str, tolerance: float, *, each: bool = False) -> bool:
    """Whether two values are equal, or numbers within the tolerance of each other: of the largest
    of them, or of `each`.
    """
    if old == new:
        return True
    if not (old.startswith("~") and new.startswith("~")):
        return False
    a, b = ([float(number) for number in text[1:].split()] for text in (old, new))
    if len(a) != len(b):
        return False
    pairs = list(zip(a, b, strict=True))
    sizes = [max((abs(x) for x in pair if math.isfinite(x)), default=0.0) for pair in pairs]
    if not each:
        sizes = [max(sizes, default=0.0)] * len(sizes)
    # of infinities and NaN the words must be equal
    return all(
        str(x) == str(y) or abs(x - y) <= tolerance * size
        for (x, y), size in zip(pairs, sizes, strict=True)
    )


def differences(golden: Mapping[str, str], found: Found, section: Section) -> list[str]:
    """Each line that is not what the file says, as it is printed."""
    told = [f"{key}: {error}" for key, error in found.broken.items()]
    left_out = tuple(absent.prefix for absent in found.absent)
    for key in sorted({*golden, *found.lines} - set(found.broken)):
        old, new = golden.get(key), found.lines.get(key)
        if new is None:
            if not (left_out and key.startswith(left_out)):
                told.append(f"{key}: {old} -> gone")
        elif old is None:
            told.append(f"{key}: new -> {new}")
        elif not near(old, new, section.tolerance, each=section.each):
            told.append(f"{key}: {old} -> {new}")
    return told


def read(path: Path) -> Lines:
    """The lines of a golden file. Raises SystemExit for one of another version."""
    if not path.exists():
        return {}
    head, *rest = path.read_text("utf-8", errors="replace").splitlines() or [""]
    if head != f"net {VERSION}":
        raise SystemExit(
            f"error: {path} begins with '{head[:40]}'; this script reads 'net {VERSION}': take both"
            " from one commit, or write the file anew (remove it, python tests/net.py --write)"
        )
    lines = [line for line in rest if line and not line.startswith("#")]
    for line in lines:
        if "\t" not in line:
            raise SystemExit(f"error: {path}: '{line[:40]}' is no line of golden values")
    found: Lines = {}
    for key, _, value in (line.partition("\t") for line in lines):
        if found.setdefault(key, value) != value:
            raise SystemExit(f"error: {path}: '{key[:80]}' stands there twice")
    return found


def text_of(lines: Mapping[str, str]) -> str:
    return "\n".join(
        [f"net {VERSION}", RULE, *(f"{key}\t{lines[key]}" for key in sorted(lines)), ""]
    )


def of_no_section(lines: Mapping[str, str], sections: Mapping[str, Section]) -> list[str]:
    """The keys of lines that none of these sections writes."""
    return sorted(key for key in lines if key.partition("/")[0] not in sections)


def checked(path: Path, sections: Mapping[str, Section], *, whole: bool = False) -> int:
    """Prints what differs from the file; 1 if anything does. With `whole` these sections are all
    there are, and a line of any other differs.
    """
    golden = read(path)
    lost = of_no_section(golden, sections) if whole else []
    for key in lost:
        print(f"{key}: {golden[key]} -> gone, there is no such section")
    changed = len(lost)
    for name, section in sections.items():
        begun = time.process_time()
        found = computed(name, section)
        mine = {key: value for key, value in golden.items() if key.startswith(f"{name}/")}
        told = differences(mine, found, section)
        changed += len(told)
        print("\n".join([*told, *_heading(name, found, begun, f"{len(told)} changed")]), flush=True)
    if changed:
        print(f"{changed} lines differ from {path.name}; {RULE[2:]}")
    if lost:
        print("Lines of no section go when all is written (python tests/net.py --write).")
    return int(changed > 0)


def rewritten(path: Path, sections: Mapping[str, Section], *, whole: bool = False) -> int:
    """Writes these sections' lines anew, one section after the other; 1 if one breaks, and its
    lines stay. With `whole` these sections are all there are, and lines of any other go.
    """
    lines = read(path)
    lost = set(of_no_section(lines, sections)) if whole else set[str]()
    lines = {key: lines[key] for key in lines if key not in lost}
    broken = 0
    for name, section in sections.items():
        begun = time.process_time()
        found = computed(name, section)
        told = [f"{key}: {error}" for key, error in found.broken.items()]
        broken += len(told)
        if not told:
            kept = tuple(absent.prefix for absent in found.absent)
            old = {key for key in lines if key.startswith(f"{name}/")}
            stays = {key for key in old if kept and key.startswith(kept)}
            lines = {key: lines[key] for key in lines if key not in old - stays} | found.lines
            path.write_text(text_of(lines))
        what = "left as they were" if told else "written"
        print("\n".join([*told, *_heading(name, found, begun, what)]), flush=True)
    return int(broken > 0)


def _heading(name: str, found: Found, begun: float, what: str) -> list[str]:
    seconds = time.process_time() - begun
    return [
        f"{name}: {len(found.lines)} lines, {what}, {seconds:.1f} s of processor",
        *(f"{absent.prefix}...: not compared, {absent.why}" for absent in found.absent),
    ]


# ---- other machines


def settings() -> dict[str, dict[str, str]]:
    """Two settings under which this processor does with fewer of its instructions: the oldest
    kernels of BLAS that run on every machine of its kind, and no instructions that NumPy or PyTorch
    chooses when it starts.
    """
    import numpy as np

    # NumPy itself asks for no less than these
    oldest = {"x86_64": "Nehalem", "amd64": "Nehalem", "aarch64": "ARMV8", "arm64": "ARMV8"}
    kernel = oldest.get(platform.machine().lower())
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return {
        "old kernels of BLAS": {"OPENBLAS_CORETYPE": kernel} if kernel else {},
        "no chosen instructions": {
            "NPY_DISABLE_CPU_FEATURES": " ".join(found),
            "ATEN_CPU_CAPABILITY": "default",
        },
    }


def under_settings(command: Sequence[str]) -> int:
    """Runs a command under all settings at once, each with a folder of its own for temporary files
    (two pytests that tidy up in one folder remove each other's); 1 if one of them fails.
    """
    failed: list[str] = []
    with ExitStack() as stack:
        runs: list[tuple[str, dict[str, str], Popen[str]]] = []
        for name, variables in settings().items():
            own = {"TMPDIR": stack.enter_context(TemporaryDirectory())}
            run = Popen(command, stdout=PIPE, text=True, env=os.environ | variables | own)
            runs.append((name, variables, stack.enter_context(run)))
        for name, variables, run in runs:
            said = " ".join(f"{key}='{value}'" for key, value in variables.items())
            print(f"-- {name}: {said}", flush=True)
            print(run.communicate()[0], end="", flush=True)
            if run.returncode:
                failed.append(name)
    if failed:
        print(f"fails under: {', '.join(failed)}")
    return int(bool(failed))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Golden values of everything: what has changed?")
    parser.add_argument("--check", action="store_true", help="compare; exit code 1 names each line")
    parser.add_argument("--write", action="store_true", help="write the lines anew")
    parser.add_argument("--list", action="store_true", help="the sections")
    parser.add_argument("--only", help="sections, joined by commas; 'quick' stands for those")
    parser.add_argument(
        "--settings",
        nargs=argparse.REMAINDER,
        help="check the quick sections (or run a command) under other settings",
    )
    given = parser.parse_args(arguments)
    if given.settings is not None:
        if given.settings and shutil.which(given.settings[0]) is None:
            parser.exit(
                2,
                f"error: '{given.settings[0]}' is no command to run under other settings (options"
                " of this script stand before --settings)\n",
            )
        own = [sys.executable, __file__, "--check", "--only", given.only or "quick"]
        return under_settings(given.settings or own)
    from support.net_lines import SECTIONS

    wanted = (given.only or ",".join(SECTIONS)).split(",")
    quick = [name for name, section in SECTIONS.items() if not section.slow]
    names = dict.fromkeys(n for one in wanted for n in (quick if one == "quick" else [one]))
    if unknown := [name for name in names if name not in SECTIONS]:
        parser.error(f"no section {', '.join(unknown)}; known: {', '.join(SECTIONS)}, quick")
    chosen = {name: SECTIONS[name] for name in names}
    if given.list:
        print("\n".join(f"{name}{' (slow)' * s.slow}" for name, s in chosen.items()))
        return 0
    if given.check == given.write:
        parser.error("say --check or --write")
    return (checked if given.check else rewritten)(GOLDEN, chosen, whole=not given.only)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # sections import what this script defines
    sys.modules["net"] = sys.modules["__main__"]
    sys.exit(main())
