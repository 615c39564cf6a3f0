"""`separatrix task`: presets, sizes as a ladder, and what is measured of every size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from separatrix.cli.main import run
from separatrix.tasks import TASKS, parse_any_task, parse_task
from separatrix.tasks.audits.run import beyond, measure
from separatrix.tasks.measured import measured
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


def test_every_size_is_measured_and_a_run_that_stopped_goes_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def accuracies(text: str, *, seed: int) -> tuple[int, dict[str, float]]:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(text)
        return 4000, {"counts": 0.96 if "V=4" in text else 0.01}

    monkeypatch.setattr("separatrix.tasks.audits.run.accuracies", accuracies)
    file = tmp_path / "levels.json"
    with pytest.raises(KeyboardInterrupt):
        measure(list(measured("index")), out=file, seed=5, advance=lambda *_: None)
    assert list(json.loads(file.read_text())["sizes"]) == done == list(measured("index"))[:3]
    monkeypatch.setattr(
        "separatrix.tasks.audits.run.accuracies", lambda text, seed: (100, {"counts": 0.01})
    )
    assert (
        run(["task", "index", "audit", "--all", "--seed", "5", "--out", str(file), "--json"]) == 1
    )
    rows = json.loads(capsys.readouterr().out)["sizes"]
    assert [row["judged"] for row in rows] == [4000] * 3 + [100] * 6
    assert {row["task"]: row["beyond"] for row in rows if row["beyond"]} == {
        "index:n=12,V=4": ["counts"]
    }
    assert json.loads(file.read_text())["seed"] == 5


def test_a_rule_is_beyond_its_level_from_three_points_on() -> None:
    """Index of n = 12, V = 4: constant may reach 1/4; of 4,000 three standard errors are 0.02."""
    for share, found in ((0.27, ()), (0.279, ()), (0.281, ("constant",))):
        assert beyond("index:n=12,V=4", {"judged": 4000, "rules": {"constant": share}}) == found
    assert not beyond("index:n=12,V=4", {"judged": 100, "rules": {"constant": 0.37}})
    assert not beyond("index:n=6,V=6,shift=zipf", {"judged": 4000, "rules": {"constant": 0.9}})


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("{", "holds no levels"),
        ("[]", "holds no levels"),
        ('{"seed": 0, "sizes": {"eva:n=6,V=6": 1}}', "holds no levels"),
        ('{"seed": 0, "sizes": {"eva:n=6,V=6": {"judged": 1, "rules": 2}}}', "holds no levels"),
        ('{"seed": 1, "sizes": {}}', "seed 1"),
    ],
)
def test_a_file_of_another_kind_or_seed_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], held: str, said: str
) -> None:
    file = tmp_path / "x.json"
    file.write_text(held)
    assert run(["task", "eva", "audit", "--all", "--out", str(file)]) in (2, 3)
    assert said in capsys.readouterr().err
    assert file.read_text() == held


def test_the_measured_file_has_every_size() -> None:
    from importlib.resources import files

    held = json.loads(files("separatrix.tasks").joinpath("levels.json").read_text("utf-8"))
    assert list(held["sizes"]) == [text for name in TASKS | TEXT_TASKS for text in measured(name)]
    judged = np.array([one["judged"] for one in held["sizes"].values()])
    assert 0 < (judged == 0).sum() < 20
