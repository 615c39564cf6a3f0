"""tools/levels.py: what is measured of every size of every task."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.each import each
from support.tools import loaded

from separatrix.tasks import TASKS
from separatrix.tasks.measured import measured
from separatrix.tasks.text import TEXT_TASKS

tool = loaded("levels")


def test_every_size_is_measured_and_a_run_that_stopped_goes_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def accuracies(text: str, *, seed: int) -> tuple[int, dict[str, float]]:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(text)
        return 4000, {"counts": 0.96 if "V=4" in text else 0.01}

    monkeypatch.setattr(tool, "accuracies", accuracies)
    file = tmp_path / "levels.json"
    with pytest.raises(KeyboardInterrupt):
        tool.measure(list(measured("index")), file, 5, lambda *_: None)
    assert list(json.loads(file.read_text())["sizes"]) == done == list(measured("index"))[:3]
    monkeypatch.setattr(tool, "accuracies", lambda text, seed: (100, {"counts": 0.01}))
    assert tool.main([str(file), "index", "--seed", "5"]) == 1
    assert capsys.readouterr().out == "index:n=12,V=4: counts\n"
    held = json.loads(file.read_text())
    assert held["seed"] == 5
    assert [one["judged"] for one in held["sizes"].values()] == [4000] * 3 + [100] * 6


def test_a_rule_is_beyond_its_level_from_three_points_on() -> None:
    """Index of n = 12, V = 4: constant may reach 1/4; of 4,000 three standard errors are 0.02."""
    for share, found in ((0.27, ()), (0.279, ()), (0.281, ("constant",))):
        assert (
            tool.beyond("index:n=12,V=4", {"judged": 4000, "rules": {"constant": share}}) == found
        )
    assert not tool.beyond("index:n=12,V=4", {"judged": 100, "rules": {"constant": 0.37}})
    judged = {"judged": 4000, "rules": {"constant": 0.9}}
    assert not tool.beyond("index:n=6,V=6,shift=zipf", judged)


@each("held", ["{", "[]", '{"seed": 0, "sizes": {"eva:n=6,V=6": 1}}', '{"seed": 1, "sizes": {}}'])
def test_a_file_of_another_kind_or_seed_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], held: str
) -> None:
    file = tmp_path / "x.json"
    file.write_text(held)
    assert tool.main([str(file), "eva"]) == 2
    assert "no levels" in capsys.readouterr().err
    assert file.read_text() == held


def test_the_measured_file_has_every_size() -> None:
    from importlib.resources import files

    held = json.loads(files("separatrix.tasks").joinpath("levels.json").read_text("utf-8"))
    assert list(held["sizes"]) == [text for name in TASKS | TEXT_TASKS for text in measured(name)]
    judged = np.array([one["judged"] for one in held["sizes"].values()])
    assert 0 < (judged == 0).sum() < 20
