"""The net notices a changed line, and nothing else."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import net
import pytest
from net import Absent, Section, Value
from support.each import each
from support.net_lines import SECTIONS

import separatrix as sx


def _section(**values: Value) -> dict[str, Section]:
    return {"own": Section(lambda: [(name, partial(_same, values[name])) for name in values])}


def _same(value: Value) -> Value:
    return value


def test_what_was_written_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "net.txt"
    sections = _section(text="abc", numbers=[1.0, 1e-9, float("nan")])
    assert net.rewritten(path, sections) == 0
    assert net.checked(path, sections) == 0
    assert path.read_text().splitlines()[0] == f"net {net.VERSION}"


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({"a": "x", "b": "z"}, "own/b: y -> z"),
        ({"a": "x"}, "own/b: y -> gone"),
        ({"a": "x", "b": "y", "c": "z"}, "own/c: new -> z"),
        ({"a": "x", "b": [1.0]}, "own/b: y -> ~1"),
    ],
)
def test_a_changed_line_is_named(
    now: dict[str, Value], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.txt"
    net.rewritten(path, _section(a="x", b="y"))
    capsys.readouterr()
    assert net.checked(path, _section(**now)) == 1
    assert capsys.readouterr().out.splitlines()[0] == told


@each(
    "old, new, near",
    [
        ("~1 100", "~1 100.0001", True),  # a millionth of the largest
        ("~1 100", "~1.0001 100", True),
        ("~1 100", "~1 100.0002", False),
        ("~1 100", "~1 -100", False),
        ("~1 2", "~1", False),
        ("~nan inf", "~nan inf", True),
        ("~inf", "~-inf", False),
        ("~1", "~nan", False),
        ("~0", "~0", True),
        ("abc", "abd", False),
    ],
)
def test_numbers_are_near_within_the_tolerance(old: str, new: str, near: bool) -> None:
    assert net.near(old, new, 1.5e-6) is near


def test_a_file_with_the_marks_of_a_conflict_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.txt"
    for wrong in ("<<<<<<< HEAD", "own/a\ty"):
        path.write_text(net.text_of({"own/a": "x"}) + f"{wrong}\n")
        with pytest.raises(SystemExit, match=wrong.split("\t")[0]):
            net.checked(path, _section(a="x"))


def test_lines_that_cannot_be_computed_here_stay(tmp_path: Path) -> None:
    path = tmp_path / "net.txt"
    net.rewritten(path, _section(a="x") | {"other": Section(lambda: [("file 1", lambda: "y")])})
    absent = {"other": Section(lambda: [Absent("file ", "no files")])}
    assert net.checked(path, absent) == 0
    assert net.rewritten(path, absent) == 0
    assert net.read(path) == {"own/a": "x", "other/file 1": "y"}


def test_an_error_is_a_value_if_it_is_a_users_and_expected(tmp_path: Path) -> None:
    def refused() -> str:
        raise sx.SeparatrixError("no such size")

    def broken() -> str:
        raise TypeError("a bug")

    lines = [("a", refused), ("b", broken), ("c", refused)]
    found = net.computed("own", Section(lambda: lines, refused=("a", "b")))
    assert found.lines == {"own/a": "raises SeparatrixError"}
    assert {key: error.split()[2] for key, error in found.broken.items()} == {
        "own/b": "TypeError:",
        "own/c": "SeparatrixError:",
    }
    path = tmp_path / "net.txt"
    assert net.rewritten(path, {"own": Section(lambda: [("b", broken)])}) == 1
    assert not path.exists()


@pytest.mark.parametrize("name", ["replies", "configs"])
def test_the_lines_of_a_quick_section_are_as_written(name: str) -> None:
    golden = {key: v for key, v in net.read(net.GOLDEN).items() if key.startswith(f"{name}/")}
    assert golden
    assert net.differences(golden, net.computed(name, SECTIONS[name]), SECTIONS[name]) == []
