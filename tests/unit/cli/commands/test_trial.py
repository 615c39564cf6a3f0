"""`separatrix trial`: what it says before it trains, and what it refuses."""

from __future__ import annotations

import ast
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import separatrix as sx
from separatrix.cli.main import run
from separatrix.core.errors import SizeError, SpecError
from separatrix.findings.trial import Trial
from separatrix.mixers import MIXERS
from separatrix.stacks.mechanisms import MECHANISMS

MINE = str(Path(__file__).parents[4] / "examples" / "my_mixer.py")
WORDS = ["trial", "gdn", "full", "--task", "eva:n=2,V=2", "--steps", "8", "--workers", "1"]


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules, paths and mechanisms of a test are gone after it."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    modules, before = set(sys.modules), (dict(MECHANISMS), dict(MIXERS))
    yield
    for name in set(sys.modules) - modules:
        if "my_mixer" in name:
            del sys.modules[name]
    for registered, kept in zip((MECHANISMS, MIXERS), before, strict=True):
        registered.clear()
        registered.update(kept)  # type: ignore[arg-type]


def test_a_dry_run_says_rules_runs_hours_and_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store.sqlite"
    assert run([*WORDS, "--store", str(store), "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["plan"]["runs"] == 2 * (3 * 2 + 8)
    assert found["memory"] > 300 * 2**20
    assert found["rules"][0] == "task: eva:n=2,V=2, 3 tokens"
    assert found["short"] == ""
    assert not store.exists()
    assert run([*WORDS, "--store", str(store), "--dry-run", "--hours", "0"]) == 0
    assert "and --seeds 1 " in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["gdn", "full", "--task", "recal"], "recal"),
        (["gdn", "--task", "recall"], "a trial compares layouts"),
        (["gdn", "gdn", "--task", "recall"], "a trial compares layouts"),
        (["gdn", "ful", "--task", "recall"], "you mean 'full'?"),
        (["gdn*47 + full", "full*48", "--task", "recall"], "layers: periods (gdn*47"),
        (["gdn", "full", "--task", "recall", "--out", "."], "exists already"),
        (["my_mixer", "full", "--task", "recall", "--import", MINE], "my_mixer has no rule"),
        (["my_mixer", "full", "--task", "recall", "--import", "none.py"], "none.py"),
        (["gdn", "full", "--task", "mqar"], "mqar: the size vocab_size"),
        ([*WORDS[1:], "--hours", "0"], "--hours 0"),
        ([*WORDS[1:], "--hours", "nan"], "'--hours': nan"),
    ],
)
def test_what_makes_no_sense(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trial", *words, "--store", str(tmp_path / "store.sqlite")]) == 2
    out = capsys.readouterr()
    assert told in out.err
    assert "Traceback" not in out.err


def test_python_refuses_as_the_command_does(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    with pytest.raises(SizeError, match="--hours 0"):
        sx.trial("gdn", sx.Architecture.parse("full"), task="eva:n=2,V=2", hours=0, store=store)
    with pytest.raises(SpecError):
        sx.trial("gdn", task="recall", store=store)
    with pytest.raises(SpecError, match="3 names no task"):
        sx.trial("gdn", "full", task=3, store=store)  # pyright: ignore[reportArgumentType]
    with pytest.raises(SizeError, match="hours is nan"):
        sx.trial("gdn", "full", task="recall", hours=math.nan, store=store)


def test_no_store_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store.sqlite"
    store.write_text("no database")
    assert run([*WORDS, "--store", str(store)]) == 2
    assert "store.sqlite" in capsys.readouterr().err


def with_small(folder: Path, small: str) -> str:
    """A file with the example's mixer, whose class says its sizes in a trial."""
    head = "class MyMixer(nn.Module):\n"
    path = folder / "my_mixer_small.py"
    path.write_text(Path(MINE).read_text().replace(head, f"{head}    small = {small}\n"))
    return str(path)


@pytest.mark.slow
def test_a_mechanism_of_ones_own_says_its_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, store = with_small(tmp_path, '{"averages": 1}'), str(tmp_path / "s.sqlite")
    words = ["my_mixer(averages=3)*2 + full", *WORDS[2:], "--import", file, "--store", store]
    assert run(["trial", *words, "--dry-run", "--json"]) == 0
    rules = " ".join(json.loads(capsys.readouterr().out)["rules"])
    assert "3 layers as 3: my_mixer*2 + full @ averages=1, " in rules
    assert "width=32" in rules
    assert "without averages" not in rules


@pytest.mark.parametrize("small", ["3", '{"state": 4}', '["averages"]'])
def test_a_rule_that_is_none(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = with_small(tmp_path, small)
    assert run(["trial", "my_mixer", *WORDS[2:], "--import", file, "--dry-run"]) == 2
    assert f"small = {ast.literal_eval(small)!r}" in capsys.readouterr().err


@pytest.mark.slow
def test_workers_load_what_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = with_small(tmp_path, "{'averages': 1}")
    given: list[Any] = []

    def train(trial: Trial, **options: Any) -> None:
        given.append(options["imports"])
        raise SizeError("seen")

    monkeypatch.setattr(Trial, "train", train)
    words = ["trial", "my_mixer", *WORDS[2:], "--store", str(tmp_path / "s.sqlite")]
    assert run([*words, "--import", file]) == 2
    assert "error: seen" in capsys.readouterr().err
    assert [*map(list, given)] == [[file]]


@pytest.mark.slow
def test_from_layouts_to_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twice the same, the second time from the store alone."""
    said: list[str] = []
    for out in ("a", "b"):
        words = [*WORDS, "--store", str(tmp_path / "s.sqlite"), "--out", str(tmp_path / out)]
        assert run([*words, "--seeds", "2"]) == 0
        said.append(capsys.readouterr().out.partition("\ncell")[2])
        names = sorted(path.name for path in (tmp_path / out).iterdir())
        assert names == [
            "experiment-trial-curves.svg",
            "experiment-trial.svg",
            "trial.json",
            "trial.md",
        ]
    assert said[0] == said[1]
    options: dict[str, Any] = {"steps": 8, "seeds": 2, "workers": 1, "show": False}
    found = sx.trial("gdn", "full", task="eva:n=2,V=2", store=tmp_path / "s.sqlite", **options)
    assert [row["cell"] for row in found.rows()] == ["gdn", "full"]
    assert "Nothing here" in " ".join(str(found).split())
    assert found.to_json()["rules"] == found.rules
    assert "Nothing here" in " ".join(said[0].split())


def test_a_single_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of it, for the search of rates, is one, too."""
    store = str(tmp_path / "store.sqlite")
    assert run([*WORDS, "--steps", "1", "--store", store, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["runs"] == 28
