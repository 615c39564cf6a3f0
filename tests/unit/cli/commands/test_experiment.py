"""Experiments: listed, shown as recorded, trained; refused what makes no sense."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.toy_experiment import WORDS, table, toy

from separatrix.cards.measured import table as tables
from separatrix.cli.main import run
from separatrix.findings import EXPERIMENTS


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that holds the toy's results and no others."""
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "toy.json").write_text(table().text())
    monkeypatch.setattr(tables, "RESULTS", folder)
    monkeypatch.setitem(EXPERIMENTS, "toy", toy(tmp_path, WORDS))
    tables.read.cache_clear()
    yield folder
    tables.read.cache_clear()


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert run(["list", "experiments", *words]) == code
    out, err = capsys.readouterr()
    assert err.count("\n") <= 1
    return out if code == 0 else err


def test_the_list(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["experiment"]: row for row in json.loads(said(capsys, "--json"))}
    assert rows["toy"]["recorded"] == "16 trainings, 2026-01-31"
    assert rows["shift"]["recorded"] == "-"
    assert set(rows) == set(EXPERIMENTS)


def test_recorded_results_are_shown_without_training(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(capsys, "toy")
    for part in ("How many facts", "8 of 8", "shown: full is ahead", "0123456789", "2026-01-31"):
        assert part in text
    found = json.loads(said(capsys, "toy", "--json"))
    assert found["contrasts"][0]["p"] == 2 / 2**8
    assert [cell["solved"] for cell in found["cells"]] == [8, 0]
    assert len(found["rows"]) == 2


def test_a_claim_that_the_rows_do_not_bear_fails_after_what_they_show(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worse = table({"full": (900, None) * 4, "linear": (100,) * 8})
    (results / "toy.json").write_text(worse.text())
    assert run(["list", "experiments", "toy"]) == 1
    out, err = capsys.readouterr()
    assert "no difference shown" in out or "linear is ahead" in out
    assert "not bear this" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["shfit"], "you mean 'shift'?"),
        (["toy", "--check", "--out", "x"], "for different things"),
        (["toy", "--formats", "p3:4"], "to `list experiments NAME`"),
        (["--check"], "--check says nothing to"),
        (["--out", "x"], "--out says nothing to"),
        (["toy", "--seed", "3"], "--seed says which run --check"),
        (["study"], "results of study"),
        (["shift", "--check"], "results of shift"),
        (["toy", "--record"], "tools/experiments.py"),
    ],
)
def test_what_makes_no_sense(
    words: list[str], told: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in said(capsys, *words, code=2)


def test_damaged_results_are_one_line(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = results / "toy.json"
    path.write_text(path.read_text().replace('"right":998', '"right":999'))
    told = said(capsys, "toy", code=2)
    assert "content hash" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--out", "."], "exists already"),
        (["--device", "tpu"], "tpu"),
        (["--retry"], "nothing to `train EXPERIMENT`"),
        (["eva:n=4", "--out", "x", "--dry-run"], "nothing to `train STACK TASK`"),
        (["--V", "4"], "No such option: --V"),
    ],
)
def test_what_cannot_be_trained(
    words: list[str], told: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", "toy", *words]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(("right", "code"), [(998, 0), (0, 1)])
def test_check_fails_where_counts_differ(
    right: int,
    code: int,
    results: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = ("equal" if code == 0 else "differs", f"{right} right")
    monkeypatch.setattr("separatrix.cli.commands.experiment.check", lambda *_, **__: found)
    told = said(capsys, "toy", "--check", code=code)
    assert f"{right} right" in told


@pytest.mark.slow
def test_from_training_to_a_folder(
    results: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is trained once is not trained again, and the folder's table is what was trained."""
    monkeypatch.setitem(EXPERIMENTS, "toy", toy(tmp_path))
    out = tmp_path / "out"
    store = str(tmp_path / "store.sqlite")
    words = ["train", "toy", "--store", store, "--workers", "1"]
    assert run([*words, "--dry-run"]) == 0
    assert "runs        8" in capsys.readouterr().out
    assert run(words) == 0
    capsys.readouterr()
    assert run([*words, "--out", str(out)]) == 0
    assert "nothing to do" in capsys.readouterr().err
    names = sorted(path.name for path in out.iterdir())
    # its page names no picture
    assert names == ["toy.json", "toy.md"]
    (results / "toy.json").write_text((out / "toy.json").read_text())
    tables.read.cache_clear()
    for seed in (0, 1):
        assert run(["list", "experiments", "toy", "--check", "--seed", str(seed)]) == 0
        assert capsys.readouterr().out.startswith(("equal", "agrees"))
