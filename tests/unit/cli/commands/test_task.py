"""`separatrix task`: presets, sizes as a ladder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.each import each

from separatrix.cli.main import run
from separatrix.tasks import TASKS, parse_any_task, parse_task
from separatrix.tasks.text import TEXT_TASKS


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_presets_are_the_ends_and_the_middle_of_every_grid() -> None:
    for name, kind in (TASKS | TEXT_TASKS).items():
        for preset, sizes in (("easy", kind.grid[0]), ("hard", kind.grid[-1])):
            assert parse_any_task(f"{name}:{preset}") == parse_any_task(f"{name}:{sizes}")
        assert f"{name}:medium is {kind.grid[len(kind.grid) // 2]}" in presets_told(name)


def presets_told(name: str) -> str:
    from separatrix.cli.report.tasks import describe

    return dict(describe(name))["presets"]


def test_a_size_given_beside_a_preset_counts() -> None:
    assert parse_task("recall:easy").spec == "recall:n=8,K=16,V=4,form=present"
    assert parse_task("recall: easy,V=8").spec == "recall:n=8,K=16,V=8,form=present"
    assert parse_task("eva:easy,shift=few,queries=2").spec == "eva:n=6,V=6,shift=few,queries=2"


def test_sizes_with_commas_are_a_ladder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A folder for each, as one export of that size would be."""
    own = ("--format", "jsonl", "--rows", "train=0", "--rows", "validation=0", "--rows", "test=4")
    all_of = printed(
        capsys, "task", "needles:keys=2", "export", "--n", "40,50", *own, "--out",
        str(tmp_path / "a"),
    )  # fmt: skip
    assert [one["task"] for one in all_of] == [
        f"needles:length={length},keys=2,values=1,queries=1" for length in (40, 50)
    ]
    alone = printed(
        capsys, "task", "needles:keys=2,length=50", "export", *own, "--out", str(tmp_path / "b")
    )
    assert alone["sha256"] == all_of[1]["sha256"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        f"needles_keys_2_length_{length}" for length in (40, 50)
    ]
    assert all(Path(file).is_file() for one in all_of for file in one["files"])


@each("sizes, told", [("40,2", "length"), ("40,40", "names a size twice")])
def test_a_ladder_is_exported_whole_or_not_at_all(
    sizes: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its second size is none, or the first again."""
    out = tmp_path / "new" / "a"
    words = ["task", "needles", "export", "--n", sizes, "--format", "jsonl", "--out", str(out)]
    assert run(words) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
