"""tools/floors.py on a small house: rooms, arrows and sizes are those of the sources."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest
from support.console import ROOT
from support.tools import loaded

SCRIPT = ROOT / "tools" / "floors.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="belongs to a checkout")

FLOORS = """
FLOORS = {"ground": {"stones"}, "first": {"wood", "glass"}, "roof": {"separatrix"}}
DECIDERS = {"wood"}
MACHINERY = {"glass"}
TORCH_FREE = {"stones"}
"""
SOURCES = {
    "stones.py": "x = 1\n" * 140,
    "wood/__init__.py": "from separatrix.stones import x\n",
    "wood/beam.py": "from separatrix.wood import x\n",
    "glass.py": "def look():\n    import separatrix.stones\n",
    "__init__.py": "from separatrix import glass, wood\nfrom os import path\n",
}


@pytest.fixture
def floors() -> ModuleType:
    return loaded("floors")


@pytest.fixture
def house(tmp_path: Path) -> Path:
    (tmp_path / "tests" / "contract").mkdir(parents=True)
    (tmp_path / "tests" / "contract" / "test_floors.py").write_text(FLOORS)
    (tmp_path / "docs" / "images").mkdir(parents=True)
    for name, text in SOURCES.items():
        path = tmp_path / "src" / "separatrix" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_arrows_are_the_imports_between_rooms(floors: ModuleType, house: Path) -> None:
    assert floors.read_arrows(floors.read_rooms(house)) == [
        ("glass", "stones"),
        ("separatrix", "glass"),
        ("separatrix", "wood"),
        ("wood", "stones"),
    ]


def test_every_room_is_drawn_once_and_no_two_touch(floors: ModuleType, house: Path) -> None:
    files = floors.read_rooms(house)
    boxes = floors.place(
        floors.read_house(house), dict.fromkeys(files, 1000), floors.read_arrows(files)
    )
    assert sorted(box.room for box in boxes) == ["glass", "separatrix", "stones", "wood"]
    for one in boxes:
        for other in boxes:
            apart = one.left + one.width < other.left or other.left + other.width < one.left
            assert one is other or one.floor != other.floor or apart
    middles = {box.room: box.middle for box in boxes}
    assert middles["wood"] < middles["glass"]


def test_the_picture_is_xml_with_text(floors: ModuleType, house: Path) -> None:
    picture = floors.draw(house)
    tree = ET.fromstring(picture)
    texts = [found.text for found in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"stones", "wood", "glass", "separatrix", "150 lines", "ground", "roof"} <= set(texts)
    assert len(re.findall('class="arrow', picture)) == 4
    assert floors.draw(house) == picture


def test_an_import_changes_the_picture_and_a_line_does_not(floors: ModuleType, house: Path) -> None:
    before = floors.draw(house)
    stones = house / "src" / "separatrix" / "stones.py"
    stones.write_text(stones.read_text() + "y = 2\n")
    assert floors.draw(house) == before
    glass = house / "src" / "separatrix" / "glass.py"
    glass.write_text("from separatrix.wood import x\n")
    assert floors.draw(house) != before


def test_check_tells_whether_the_picture_is_up_to_date(
    floors: ModuleType,
    house: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(floors, "ROOT", house)
    monkeypatch.setattr(sys, "argv", ["floors.py", "--check"])
    assert floors.main() == 1
    assert "make map" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["floors.py"])
    assert floors.main() == 0
    monkeypatch.setattr(sys, "argv", ["floors.py", "--check"])
    assert floors.main() == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("lines", "size"),
    [(0, 10), (1, 10), (12, 10), (13, 15), (149, 150), (1200, 1000), (1300, 1500), (6000, 7000)],
)
def test_sizes_are_rounded_to_few_steps(floors: ModuleType, lines: int, size: int) -> None:
    assert floors.rounded(lines) == size
