"""The shape of a source tree: its files, classes, rooms and imports, and three walks through it.

    python benchmarks/shape.py [ROOT] [--json]

ROOT is a checkout, by default the one that this script lies in. So one script measures a tree
before and after a change. Its tests must hold `FLOORS` (tests/contract/test_floors.py).

What is counted, and how: the heads of house/files.py, classes.py, rooms.py and walks.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from house.files import WIDTH, Files, files_of
from house.rooms import Rooms, rooms_of
from house.sources import PACKAGE, sources_in
from house.walks import WALKS, Walk, take_walk, walk_elsewhere


@dataclass(frozen=True)
class Shape:
    source: Files
    tests: Files
    rooms: Rooms
    walks: dict[str, Walk]


def shape_of(root: Path) -> Shape:
    source = sources_in(root / "src" / PACKAGE, root / "src")
    tests = sources_in(root / "tests", root / "tests")
    return Shape(
        source=files_of(source, root),
        tests=files_of(tests, root),
        rooms=rooms_of(source),
        walks={name: walk_elsewhere(name, root) for name in WALKS},
    )


def print_shape(shape: Shape) -> None:
    print_table(["files", "src", "tests"], file_rows(shape.source, shape.tests))
    print_table(["rooms", "ever", "at start"], room_rows(shape.rooms))
    print_table(["walks", *shape.walks], walk_rows(list(shape.walks.values())))
    print("\n".join(details(shape)))


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    first = max(len(str(row[0])) for row in [head, *rows])
    for row in [head, *rows]:
        print(str(row[0]).ljust(first), *(str(cell).rjust(12) for cell in row[1:]))
    print()


def file_rows(*columns: Files) -> list[list[object]]:
    return [
        ["files", *(f.files for f in columns)],
        ["lines of a file, median", *(f"{f.median_lines:g}" for f in columns)],
        ["lines of a file, largest", *(f.largest_lines for f in columns)],
        [f"lines over {WIDTH} columns", *(f"{f.wide_lines:.1%}" for f in columns)],
        ["comment lines", *(f"{f.comment_lines:.1%}" for f in columns)],
        ["assignments `a, b = x, y`", *(f"{f.packed_assignments:.1%}" for f in columns)],
        ["deepest chain of classes", *(len(f.longest_chain) for f in columns)],
        ["files that begin with _", *(f.underscore_files for f in columns)],
    ]


def room_rows(rooms: Rooms) -> list[list[object]]:
    return [
        ["arrows between rooms", rooms.arrows_ever, rooms.arrows_at_start],
        ["circles of rooms", len(rooms.circles_ever), len(rooms.circles_at_start)],
        ["circles of modules", len(rooms.module_circles_ever), len(rooms.module_circles_at_start)],
    ]


def walk_rows(walks: Sequence[Walk]) -> list[list[object]]:
    return [
        ["rooms", *(walk.rooms for walk in walks)],
        ["transitions", *(walk.transitions for walk in walks)],
        ["returns", *(walk.returns for walk in walks)],
        ["returns by function", *(walk.returns_by_function for walk in walks)],
        ["climbs", *(len(walk.climbs) for walk in walks)],
    ]


def details(shape: Shape) -> Iterator[str]:
    """The names behind the numbers, one line each."""
    rooms = shape.rooms
    for title, files in {"src": shape.source, "tests": shape.tests}.items():
        yield f"largest file of {title}: {files.largest_file}"
        yield f"deepest chain of {title}: {' < '.join(files.longest_chain)}"
    yield f"{len(rooms.rooms)} rooms: {' '.join(rooms.rooms)}"
    yield f"{rooms.arrows} arrows with imports under TYPE_CHECKING"
    for circle in [*rooms.circles_ever, *rooms.module_circles_ever]:
        yield f"circle: {' '.join(circle)}"
    for name, walk in shape.walks.items():
        yield f"walk of {name}: {' '.join(walk.path)}"
        for climb in walk.climbs:
            yield f"  climb: {climb.caller} -> {climb.callee} ({climb.kind})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    parser.add_argument(
        "--walk", nargs="+", choices=WALKS, help="these walks only, in one process, as JSON"
    )
    options = parser.parse_args()
    root = options.root.resolve()
    if options.walk:
        print(json.dumps({name: asdict(take_walk(name, root)) for name in options.walk}))
        return
    shape = shape_of(root)
    if options.json:
        print(json.dumps(asdict(shape), indent=1))
    else:
        print_shape(shape)


if __name__ == "__main__":
    main()
