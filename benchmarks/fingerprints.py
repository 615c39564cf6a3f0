"""Fingerprints of everything that a redesign must leave as it is.

    python benchmarks/fingerprints.py --out FILE [--only GROUP ...] [--root ROOT] [--texts FOLDER]
    python benchmarks/fingerprints.py --out FILE --evidence report/evidence.json
    python benchmarks/fingerprints.py --compare BEFORE AFTER [--only GROUP ...]

The first writes {name: sha256} as JSON; with `--texts` also what was hashed, a file for each name.
ROOT is a checkout to import the package from; without it, the package that Python finds.
The second does the same for what a report claims. Evidence holds no times and no dates.
The third prints each name that differs, is missing or is new; exit code 1 if there is one.

On one machine with one set of packages, equal code gives equal fingerprints, to the last bit.
Another machine may round differently in the groups `mixers`, `models` and `refute`.

Everything goes through the command line and the public names, with two exceptions: the table of
mixers (`mixer_table`) and the tasks in words (`of_text_task`). What is hashed is in `unchanged/`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from unchanged import mixers, models, printed, tasks, verdicts
from unchanged.bundle import evidence
from unchanged.pieces import Piece

GROUPS: dict[str, Callable[[], Iterator[Piece]]] = {
    "analyze": printed.analyze,
    "lists": printed.lists,
    "docs": printed.docs,
    "help": printed.helps,
    "tasks": tasks.tasks,
    "exports": printed.exports,
    "mixers": mixers.mixers,
    "models": models.models,
    "constructions": models.constructions,
    "refute": models.refutations,
    "verdicts": verdicts.verdicts,
}


def fingerprints(groups: Mapping[str, Iterable[Piece]], texts: Path | None) -> dict[str, str]:
    """The sha256 of every piece by group and name. Tells on stderr how each group went."""
    found: dict[str, str] = {}
    for group, pieces in groups.items():
        start = time.monotonic()
        before = len(found)
        for name, content in pieces:
            key = f"{group}/{name}"
            if key in found:
                raise RuntimeError(f"two pieces are called {key}")
            found[key] = digest(content)
            if texts is not None:
                write_text(texts / group, name, content)
        count = len(found) - before
        seconds = time.monotonic() - start
        print(f"{group:14}{count:6} names{seconds:8.1f} s", file=sys.stderr, flush=True)
    return found


def digest(content: str | bytes) -> str:
    """The sha256 in hex."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def write_text(folder: Path, name: str, content: str | bytes) -> None:
    """Writes what was hashed into a file whose name depends on the piece's name only."""
    readable = re.sub(r"[^\w.,=+*|@()-]+", "_", name)[:120].strip("_")
    suffix = "txt" if isinstance(content, str) else "bin"
    path = folder / f"{readable}.{digest(name)[:8]}.{suffix}"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """A line for each name that differs, is missing or is new."""
    found = []
    for name in sorted({*before, *after}):
        if name not in after:
            found.append(f"missing  {name}")
        elif name not in before:
            found.append(f"new      {name}")
        elif before[name] != after[name]:
            found.append(f"differs  {name}")
    return found


def read(path: Path, groups: Iterable[str]) -> dict[str, str]:
    """The fingerprints in a file, of these groups; of all for none."""
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    wanted = set(groups)
    return {
        name: value
        for name, value in found.items()
        if not wanted or name.partition("/")[0] in wanted
    }


def prepare() -> None:
    """Makes this process print without colours in 100 columns, and compute on one thread."""
    os.environ.update(COLUMNS="100", LINES="50", NO_COLOR="1", TERM="dumb", OMP_NUM_THREADS="1")
    os.environ.pop("FORCE_COLOR", None)
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def arguments() -> argparse.ArgumentParser:
    """What may be asked for."""
    parser = argparse.ArgumentParser(description="Fingerprints of what a redesign must not change.")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write {name: sha256} here")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[*GROUPS, "evidence"],
        default=[],
        metavar="GROUP",
        help=f"some of {', '.join(GROUPS)}",
    )
    parser.add_argument(
        "--root", type=Path, metavar="ROOT", help="import the package of this checkout"
    )
    parser.add_argument(
        "--texts",
        type=Path,
        metavar="FOLDER",
        help="also write what was hashed, a file for each name",
    )
    parser.add_argument(
        "--evidence", type=Path, metavar="FILE", help="hash this evidence.json, not the groups"
    )
    parser.add_argument(
        "--compare", nargs=2, type=Path, metavar="FILE", help="print what differs between two files"
    )
    return parser


def main() -> int:
    """Does what the arguments say, and returns the exit code."""
    parser = arguments()
    chosen = parser.parse_args()
    if chosen.compare:
        before, after = (read(path, chosen.only) for path in chosen.compare)
        found = differences(before, after)
        print("\n".join(found) or f"no differences in {len(before)} names")
        return int(bool(found))
    if chosen.out is None:
        parser.print_usage()  # `make bench` runs every file of this folder without arguments
        return 0
    if chosen.root is not None:
        sys.path.insert(0, str(chosen.root.resolve() / "src"))
    prepare()
    groups = {name: group() for name, group in GROUPS.items() if name in (chosen.only or GROUPS)}
    if chosen.evidence is not None:
        groups = {"evidence": evidence(chosen.evidence)}
    hashes = fingerprints(groups, chosen.texts)
    text = json.dumps(hashes, indent=0, sort_keys=True)
    chosen.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
