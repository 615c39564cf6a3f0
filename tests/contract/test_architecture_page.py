"""docs/architecture.md tells what is so: its picture, its table of rooms and its three walks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from contract.test_floors import DECIDERS, FLOOR, FLOORS, MACHINERY, MAKERS, NO_TORCH
from support.console import ROOT

PAGE = ROOT / "docs" / "architecture.md"
WALKS = {
    "analyze": "From a spec to its card",
    "train": "From a task's tokens to an accuracy",
    "construct": "From a construction to its check",
}
"""The walks of benchmarks/shape.py by the headings of the page."""
STEP = re.compile(r"^\d+\. \[`(?P<function>[^`]+)`\]\(\.\./(?P<path>[^)]+)\)", re.MULTILINE)


def section(heading: str) -> str:
    """What stands under a heading of the page."""
    text = PAGE.read_text(encoding="utf-8")
    begin = text.index(f"# {heading}\n")
    return re.split(r"^#", text[begin + 1 :], maxsplit=1, flags=re.MULTILINE)[0]


def test_the_picture_is_what_the_sources_give() -> None:
    script = str(ROOT / "tools" / "floors.py")
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def allowed(room: str) -> str:
    """What a room may import, in the words of the page."""
    floor = FLOOR[room]
    alone = len(list(FLOORS.values())[floor]) == 1
    words = []
    if floor:
        words.append("floor 0" if floor == 1 else f"floors 0 to {floor - 1}")
    if not alone and floor != MAKERS:
        words.append("its neighbours")
    said = " and ".join(words) or "nothing"
    if room in DECIDERS:
        said += ", but nothing that computes"
    if room in MACHINERY:
        said += ", but nothing that decides"
    return f"{said}; no torch" if room in NO_TORCH else said


def test_every_room_stands_in_the_table_with_what_it_may_import() -> None:
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in section("The rooms").splitlines()
        if line.startswith("| ") and line[2].isdigit()
    ]
    assert [(int(floor.split()[0]), room) for floor, room, _, _ in rows] == sorted(
        ((FLOOR[room.strip("`/")], room) for _, room, _, _ in rows), key=lambda row: -row[0]
    )
    assert {room.strip("`/") for _, room, _, _ in rows} == set(FLOOR)
    for floor, room, what, may in rows:
        name = room.strip("`/")
        assert floor == f"{FLOOR[name]} {list(FLOORS)[FLOOR[name]]}"
        assert what
        assert may == allowed(name), name


@pytest.fixture(scope="module")
def taken() -> dict[str, list[str]]:
    """Each walk's functions in the order of their first calls."""
    script = str(ROOT / "benchmarks" / "shape.py")
    done = subprocess.run(
        [sys.executable, script, "--walk", *WALKS], stdout=subprocess.PIPE, check=True
    )
    return {name: walk["functions"] for name, walk in json.loads(done.stdout).items()}


def steps(walk: str) -> list[str]:
    """The functions of a walk as the page lists them, as `module:name`."""
    found = []
    for step in STEP.finditer(section(WALKS[walk])):
        path = Path(step["path"]).relative_to("src/separatrix").with_suffix("")
        parts = [part for part in path.parts if part != "__init__"]
        found.append(f"{'.'.join(parts)}:{step['function']}")
    return found


@pytest.mark.parametrize("walk", WALKS)
def test_every_step_of_a_walk_stands_in_its_file(walk: str) -> None:
    for step in STEP.finditer(section(WALKS[walk])):
        name = step["function"].rsplit(".", maxsplit=1)[-1]
        source = (ROOT / step["path"]).read_text(encoding="utf-8")
        assert re.search(rf"^\s*def {re.escape(name)}\(", source, re.MULTILINE), step["function"]


def astray(listed: list[str], called: list[str]) -> list[str]:
    """Steps that are not called, or not in this order."""
    missing = [f"{step} is not called" for step in listed if step not in called]
    there = [step for step in listed if step in called]
    return missing + [
        f"{other} is called before {one}"
        for one, other in pairwise(there)
        if called.index(other) <= called.index(one)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_calls_its_functions_in_this_order(walk: str, taken: dict[str, list[str]]) -> None:
    listed = steps(walk)
    assert len(listed) >= 10
    assert astray(listed, taken[walk]) == []


def test_a_wrong_step_is_found() -> None:
    assert astray(["a", "c"], ["a", "b", "c"]) == []
    assert astray(["c", "a"], ["a", "b", "c"]) == ["a is called before c"]
    assert astray(["a", "d", "b"], ["a", "b", "c"]) == ["d is not called"]


@pytest.mark.parametrize("walk", WALKS)
def test_every_line_of_a_walk_is_a_step(walk: str) -> None:
    """A step that is written otherwise would not be followed."""
    lines = [line for line in section(WALKS[walk]).splitlines() if re.match(r"\s*\d+\.", line)]
    assert len(lines) == len(steps(walk))
