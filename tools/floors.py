"""Draws the house: its rooms on their floors, and an arrow for each room that imports another.

    python3 tools/floors.py            writes docs/images/floors.svg
    python3 tools/floors.py --check    exit code 1 if that file is not what would be written

The floors come from `FLOORS` in tests/contract/test_floors.py, sizes and arrows from the sources.
A size is rounded so coarsely that most changes of the sources leave the picture as it is.
Needs nothing but Python 3.11.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "separatrix"
PICTURE = Path("docs", "images", "floors.svg")
FLOORS_FILE = Path("tests", "contract", "test_floors.py")

# Pixels.
WIDTH = 1160
LEFT = 132
"""Where the rooms begin; floors are named on the left of it."""
RIGHT = WIDTH - 12
TOP = 14
STOREY = 104
BOX_HEIGHT = 46
GAP = 14
NARROWEST = 88
PER_LINE = 0.029
CORNER = 7

STEPS = (1, 1.5, 2, 3, 5, 7)
"""First digits of a rounded size."""
COLOURS = {
    "no torch": "#5b6570",
    "decides": "#7b4fc4",
    "computes": "#177a66",
    "uses both": "#2068b4",
}
GREY = "#7a7f87"
"""Legible on white and on black."""


@dataclass(frozen=True)
class House:
    """The floors by name, the lowest first, and what stands in `FLOORS_FILE` beside them."""

    floors: dict[str, set[str]]
    no_torch: set[str]
    deciders: set[str]
    machinery: set[str]

    def kind(self, room: str) -> str:
        """Which of `COLOURS` a room has."""
        if room in self.deciders:
            return "decides"
        if room in self.machinery:
            return "computes"
        return "no torch" if room in self.no_torch else "uses both"


@dataclass(frozen=True)
class Box:
    """A room in the picture."""

    room: str
    floor: int
    left: float
    width: float
    bottom: float

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    @property
    def top(self) -> float:
        return self.bottom - BOX_HEIGHT

    def port(self, number: int, ports: int) -> float:
        """Where the arrow of this number meets the box."""
        inset = 12
        return self.left + inset + (self.width - 2 * inset) * (number + 0.5) / ports


# ---- what is drawn


def read_house(root: Path) -> House:
    """The floors and groups of rooms, read without importing the test that holds them."""
    tree = ast.parse((root / FLOORS_FILE).read_text(encoding="utf-8"))
    values = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    floors, deciders, machinery, torch_free = (
        ast.literal_eval(values[name]) for name in ("FLOORS", "DECIDERS", "MACHINERY", "TORCH_FREE")
    )
    return House(floors, deciders | torch_free, deciders, machinery)


def read_rooms(root: Path) -> dict[str, list[Path]]:
    """Room -> its files."""
    package = root / "src" / PACKAGE
    rooms: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        first = path.relative_to(package).parts[0].removesuffix(".py")
        rooms[PACKAGE if first == "__init__" else first].append(path)
    return rooms


def imported_rooms(path: Path, rooms: Iterable[str]) -> Iterator[str]:
    """The rooms that a file imports from, at its start or later."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for first, second, *_ in ([*name.split("."), ""] for name in names):
            if first == PACKAGE:
                # what is no room is a public name, which the package's own room hands out
                yield second if second in rooms else PACKAGE


def read_arrows(rooms: Mapping[str, Sequence[Path]]) -> list[tuple[str, str]]:
    """Every (room, room that it imports from)."""
    found = {
        (room, target)
        for room, paths in rooms.items()
        for path in paths
        for target in imported_rooms(path, rooms)
        if target != room
    }
    return sorted(found)


def count_lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def rounded(lines: int) -> int:
    """The nearest of 10, 15, 20, 30, 50, 70, 100, ..., by ratio."""
    sizes = [int(step * 10**power) for power in range(1, 7) for step in STEPS]
    return min(sizes, key=lambda size: abs(log(size / max(lines, 1))))


# ---- where it stands


def place(house: House, sizes: Mapping[str, int], arrows: Sequence[tuple[str, str]]) -> list[Box]:
    """A box for each room: near the rooms that it has arrows with, deciders left of machinery."""
    floor_of = {room: floor for floor, rooms in enumerate(house.floors.values()) for room in rooms}
    beside: dict[str, dict[str, float]] = defaultdict(dict)
    for source, target in arrows:
        # the nearer the floors, the stronger an arrow pulls
        pull = 1 / (1 + abs(floor_of[source] - floor_of[target])) ** 2
        beside[source][target] = pull
        beside[target][source] = pull
    middles = {room: wing(room, house) for room in floor_of}
    boxes: list[Box] = []
    for _ in range(12):  # enough to settle
        boxes = []
        for floor, rooms in enumerate(house.floors.values()):
            wanted = {
                room: (wing(room, house) + mean(beside[room], middles)) / 2
                for room in rooms
                if room in sizes
            }
            boxes += row(floor, wanted, sizes, len(house.floors))
        middles |= {box.room: box.middle for box in boxes}
    return boxes


def wing(room: str, house: House) -> float:
    """The middle of the part of the house that a room belongs to."""
    side = (room in house.machinery) - (room in house.deciders)
    return (LEFT + RIGHT) / 2 + side * (RIGHT - LEFT) / 4


def mean(weights: Mapping[str, float], middles: Mapping[str, float]) -> float:
    """The weighted mean of some rooms' middles; the middle of the picture for none."""
    if not weights:
        return (LEFT + RIGHT) / 2
    total = sum(weight * middles[room] for room, weight in weights.items())
    return total / sum(weights.values())


def row(
    floor: int, wanted: Mapping[str, float], sizes: Mapping[str, int], floors: int
) -> list[Box]:
    """The boxes of one floor in the order of their wishes, moved apart until none touch."""
    order = sorted(wanted, key=lambda room: (round(wanted[room]), room))
    widths = {room: round(NARROWEST + PER_LINE * sizes[room]) for room in order}
    lefts = [wanted[room] - widths[room] / 2 for room in order]
    for _ in range(200):
        for one, other in zip(range(len(order)), range(1, len(order)), strict=False):
            overlap = lefts[one] + widths[order[one]] + GAP - lefts[other]
            if overlap > 0:
                lefts[one] -= overlap / 2
                lefts[other] += overlap / 2
        lefts = [
            min(max(left, LEFT), RIGHT - widths[room])
            for left, room in zip(lefts, order, strict=True)
        ]
    bottom = TOP + STOREY * (floors - floor) - 14
    return [
        Box(room, floor, round(left), widths[room], bottom)
        for room, left in zip(order, lefts, strict=True)
    ]


# ---- the picture


def draw(root: Path) -> str:
    """The whole picture as SVG."""
    house = read_house(root)
    files = read_rooms(root)
    arrows = read_arrows(files)
    sizes = {room: rounded(count_lines(paths)) for room, paths in files.items()}
    boxes = place(house, sizes, arrows)
    height = TOP + STOREY * len(house.floors) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}" font-family="Helvetica, Arial, sans-serif">',
        "<title>The rooms of separatrix on their floors; imports point down</title>",
        *style(files),
        *floor_lines(house),
        *arrow_lines(boxes, arrows),
        *(box_lines(box, house.kind(box.room), sizes[box.room]) for box in boxes),
        *legend(height - 14),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def style(rooms: Iterable[str]) -> Iterator[str]:
    """Colours, and the rule that a room under the pointer shows all its arrows."""
    yield "<style>"
    yield f".floor {{ fill: {GREY}; }} .plate {{ stroke: {GREY}; stroke-opacity: .45; }}"
    yield ".name { font-size: 14px; font-weight: bold; fill: #fff; }"
    yield ".size { font-size: 11px; fill: #fff; fill-opacity: .88; }"
    yield f".arrow {{ fill: none; stroke: {GREY}; stroke-width: 1; stroke-opacity: .17; }}"
    yield ".near { stroke-width: 1.6; stroke-opacity: .85; }"
    yield f".head {{ fill: {GREY}; }} text {{ text-anchor: middle; }}"
    yield ".left { text-anchor: start; }"
    for room in rooms:
        lit = f"svg:has(#{room}:hover) .{room}"
        yield f"{lit} {{ stroke: #d2691e; stroke-width: 2; stroke-opacity: 1; }}"
    yield "</style>"
    yield (
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
        ' markerUnits="userSpaceOnUse" orient="auto"><path class="head" d="M0 1 L8 4 L0 7 Z"/>'
        "</marker>"
    )


def floor_lines(house: House) -> Iterator[str]:
    """Each floor's plate with its number and name."""
    for floor, name in enumerate(house.floors):
        y = TOP + STOREY * (len(house.floors) - floor) - 14
        yield f'<line class="plate" x1="12" y1="{y + 0.5}" x2="{RIGHT}" y2="{y + 0.5}"/>'
        yield f'<text class="floor left" x="14" y="{y - 24}" font-size="20">{floor}</text>'
        yield f'<text class="floor left" x="14" y="{y - 8}" font-size="12">{escape(name)}</text>'


def arrow_lines(boxes: Sequence[Box], arrows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Every arrow as a curve; those to the next floor last, so that they lie on top."""
    box = {one.room: one for one in boxes}
    leaving: dict[str, list[str]] = defaultdict(list)
    arriving: dict[str, list[str]] = defaultdict(list)
    for source, target in arrows:
        leaving[source].append(target)
        arriving[target].append(source)
    for ends in (*leaving.values(), *arriving.values()):
        # ports in the order of the other ends, so that arrows of one box do not cross there
        ends.sort(key=lambda room: (box[room].middle, room))
    steps = {(a, b): box[a].floor - box[b].floor for a, b in arrows}
    for source, target in sorted(arrows, key=lambda arrow: (-steps[arrow], arrow)):
        x1 = box[source].port(leaving[source].index(target), len(leaving[source]))
        x2 = box[target].port(arriving[target].index(source), len(arriving[target]))
        step = steps[source, target]
        near = " near" if step <= 1 else ""
        head = ' marker-end="url(#head)"' if near else ""
        yield (
            f'<path class="arrow{near} {source} {target}" d="{curve(box, source, target, x1, x2)}"'
            f"{head}/>"
        )


def curve(box: Mapping[str, Box], source: str, target: str, x1: float, x2: float) -> str:
    """From the bottom of one box to the top of another; on one floor, an arc over the roofs."""
    start = box[source].bottom
    end = box[target].top
    if box[source].floor == box[target].floor:
        start = end
        roof = end - 30
        return f"M{x1:.0f} {start} C{x1:.0f} {roof} {x2:.0f} {roof} {x2:.0f} {end - 1}"
    bend = (end - start) * 0.5
    return f"M{x1:.0f} {start} C{x1:.0f} {start + bend} {x2:.0f} {end - bend} {x2:.0f} {end - 1}"


def box_lines(box: Box, kind: str, size: int) -> str:
    """A room with its name and its size."""
    return (
        f'<g id="{box.room}"><title>{box.room}: about {size:,} lines</title>'
        f'<rect x="{box.left}" y="{box.top}" width="{box.width}" height="{BOX_HEIGHT}"'
        f' rx="{CORNER}" fill="{COLOURS[kind]}"/>'
        f'<text class="name" x="{box.middle}" y="{box.top + 21}">{box.room}</text>'
        f'<text class="size" x="{box.middle}" y="{box.top + 36}">{size:,} lines</text></g>'
    )


def legend(y: float) -> Iterator[str]:
    """What the colours mean."""
    meanings = {
        "no torch": "never loads torch",
        "decides": "what decides: never loads torch",
        "computes": "what computes: layers and models",
        "uses both": "what uses both",
    }
    x = LEFT
    for kind, meaning in meanings.items():
        yield (
            f'<rect x="{x}" y="{y - 10}" width="12" height="12" rx="3" fill="{COLOURS[kind]}"/>'
            f'<text class="floor left" x="{x + 18}" y="{y}" font-size="12">{meaning}</text>'
        )
        x += 48 + 6 * len(meaning)


def main() -> int:
    """Writes or checks the picture, and returns the exit code."""
    parser = argparse.ArgumentParser(description="Draws the rooms of the package on their floors.")
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 if the picture is not up to date"
    )
    check = parser.parse_args().check
    picture = draw(ROOT)
    path = ROOT / PICTURE
    if not check:
        path.write_text(picture, encoding="utf-8")
        return 0
    if path.exists() and path.read_text(encoding="utf-8") == picture:
        return 0
    print(f"error: {PICTURE} is not what the sources give; run `make map`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
