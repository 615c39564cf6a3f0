"""`sweep` and its command, with training that is only pretended: what is missing is trained, once,
and what is seen of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.engines import InPlace
from support.pretended import at_once, expected, pretend, raising

import separatrix as sx
from separatrix.cli.main import INTERRUPTED
from separatrix.cli.main import run as command
from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.training.packs import Slice, Update
from separatrix.training.sweeps.engines.base import Engine, Work
from separatrix.training.sweeps.reading import Stored
from separatrix.training.sweeps.store import Store
from separatrix.training.sweeps.sweep import Source, opener

FILE = """\
baseline: {task: 'eva:n=8', steps: 5}
grid:
  architecture: [full, gdn]
  learning_rate: [1e-3, 1e-2]
seeds: 3
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep's file in an empty current folder, twelve runs."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(FILE)
    return path


class Given:
    """Stands in for the choice of an engine, and keeps what was computed."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.taken: list[Slice] = []
        self.asked: dict[str, object] = {}

    @contextmanager
    def __call__(self, name: str, **settings: object) -> Iterator[Engine]:
        self.asked = {"name": name, **settings}
        with InPlace(self.work) as engine:
            yield engine
        self.taken += engine.taken


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    engine = Given(pretend)
    monkeypatch.setattr("separatrix.training.sweeps.sweep.opener", partial(partial, engine))
    return engine


def quick(piece: Slice) -> Update:
    return pretend(piece, 0.0)


def trained(source: Source, engine: Engine, **settings: Any) -> list[Stored]:
    """A sweep's runs as the store has them, in the order of its summary."""
    found = sx.sweep(source, store="s.sqlite", engine=engine, show=False, **settings)
    return [run for cell in found.cells for rate in cell.rates for run in rate.runs]


def test_every_run_is_trained_once_and_what_it_gave_is_returned(file: Path) -> None:
    with InPlace(quick) as engine:
        rows = trained(file, engine)
        assert [(row.run.architecture, row.run.learning_rate, row.run.seed) for row in rows] == [
            (stack, rate, seed)
            for stack in ("full", "gdn")
            for rate in (1e-3, 1e-2)
            for seed in range(3)
        ]
        assert [row.outcome for row in rows] == [expected(row.run) for row in rows]
        assert {row.completions for row in rows} == {1}
        # six members each: rates and seeds of one stack
        assert sorted(len(piece.pack.runs) for piece in engine.taken) == [6, 6]
        again = trained(file, engine)
        assert [row.outcome for row in again] == [row.outcome for row in rows]
        assert len(engine.taken) == 2


def test_what_another_sweep_has_trained_is_not_trained_again(file: Path) -> None:
    with InPlace(quick) as engine:
        first = {"baseline": {"architecture": "full", "task": "eva:n=8", "steps": 5}}
        trained(first, engine, name="first")
    with InPlace(quick) as engine:
        source = {
            "baseline": {"architecture": "full", "task": "eva:n=8", "steps": 5},
            "seeds": 5,
        }
        rows = trained(source, engine, name="second")
    assert [row.status for row in rows] == ["done"] * 5
    assert [run.seed for piece in engine.taken for run in piece.pack.runs] == [3, 4]


def test_a_shorter_file_of_the_same_name_tells_of_its_own_runs_only(file: Path) -> None:
    with InPlace(quick) as engine:
        trained(file, engine)
        file.write_text(FILE.replace("seeds: 3", "seeds: [1]"))
        rows = trained(file, engine)
    assert [row.run.seed for row in rows] == [1] * 4


def test_runs_that_failed_are_tried_again_when_asked(file: Path) -> None:
    source = {
        "baseline": {"architecture": "full", "task": "eva:n=8", "steps": 5},
        "seeds": [12, 13],
    }
    with InPlace(lambda piece: raising(piece, 0.0)) as engine:
        rows = trained(source, engine)
        assert [row.status for row in rows] == ["done", "failed"]
        assert "the bad run" in rows[1].error
        before = len(engine.taken)
        trained(source, engine)
        assert len(engine.taken) == before
    with InPlace(quick) as engine:
        rows = trained(source, engine, retry=True)
    assert [row.status for row in rows] == ["done", "done"]
    assert [run.seed for piece in engine.taken for run in piece.pack.runs] == [13]


class Interrupt:
    """Work during which somebody presses Ctrl-C."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, piece: Slice) -> Update:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        # one step of five
        return pretend(replace(piece, seconds=0.0), 0.0)


def test_the_command_trains_prints_and_finds_nothing_to_do(
    file: Path, given: Given, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["train", str(file)]) == 0
    said = capsys.readouterr()
    assert said.err == "small: 12 runs in sweeps.sqlite\n"
    assert given.asked == {"name": "local", "workers": None, "device": "cpu", "address": ""}
    assert command(["train", str(file), "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    told = json.loads(said.out)
    assert (told["sweep"], told["complete"]) == ("small", True)
    assert [cell["label"] for cell in told["cells"]] == ["full", "gdn"]
    assert command(["train", str(file)]) == 0
    assert re.findall(r"\d+", capsys.readouterr().err) == ["12", "12"]
    assert len(given.taken) == 2


def test_an_interrupted_command_says_how_to_go_on_and_goes_on(
    file: Path, given: Given, capsys: pytest.CaptureFixture[str]
) -> None:
    given.work = Interrupt(after=3)
    assert command(["train", str(file), "--store", "own.sqlite"]) == INTERRUPTED
    err = capsys.readouterr().err
    assert "own.sqlite" in err.splitlines()[-1]
    with Store.read("own.sqlite") as store:
        assert store.counts() == {"waiting": 12}
    given.work = pretend
    assert command(["train", str(file), "--store", "own.sqlite"]) == 0
    # from the checkpoints on, not from the start
    assert all(piece.checkpoint is not None for piece in given.taken)
    with Store.read("own.sqlite") as store:
        rows = store.rows()
    assert [row.outcome for row in rows] == [expected(row.run) for row in rows]


def test_failed_runs_are_said_and_give_exit_code_1(
    file: Path, given: Given, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(FILE.replace("seeds: 3", "seeds: [13]"))
    given.work = lambda piece: raising(piece, 0.0)
    assert command(["train", str(file)]) == 1
    err = capsys.readouterr().err
    assert err.splitlines()[-1].startswith("4 failed: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "no.yaml"], "a sweep is a YAML file"),
        (["train", "folder.yaml"], "folder.yaml: No such file"),
        (["train", "small.yaml", "--engine", "rya"], "unknown engine 'rya'."),
        (["train", "small.yaml", "--address", "a:1"], "is now --engine ray://HOST:PORT"),
        (["train", "small.yaml", "--engine", "ray", "--workers", "2"], "leave --workers out"),
        (["train", "small.yaml", "--device", "cuda:99"], "no device 'cuda:99'"),
        (["train", "small.yaml", "--device", "gpu"], "no device 'gpu'"),
        (["train", "small.yaml", "--dry-run", "--device", "gpu"], "no device 'gpu'"),
        (["train", "small.yaml", "--import", "nowhere"], "no module 'nowhere'"),
        (["train", "small.yaml", "--store", "small.yaml"], "small.yaml"),
        (["train", "small.yaml", "--dry-run", "--store", "small.yaml"], "small.yaml"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    file: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(arguments) == 2
    err = capsys.readouterr().err.splitlines()
    assert err[-1].startswith("error: ")
    assert words in err[-1]
    # nothing that is wrong is marked as failed, or stored at all
    assert [path.name for path in file.parent.iterdir()] == ["small.yaml"]


def test_a_wrong_engine_is_told_where_nothing_is_left_to_do(file: Path) -> None:
    with InPlace(at_once) as engine:
        sx.sweep(file, engine=engine, show=False)
    with pytest.raises(UnknownNameError, match="'local'"):
        sx.sweep(file, engine="locl", show=False)


def test_a_wrong_file_makes_no_store(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(FILE.replace("architecture: [full, gdn]", "architecture: [full, gnd]"))
    assert command(["train", "small.yaml"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: small.yaml, line 3, column 24: ")
    assert "'gnd'" in err
    assert "'gdn'" in err
    assert [path.name for path in file.parent.iterdir()] == ["small.yaml"]


def test_a_dry_run_of_what_is_there_has_nothing_to_do(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with InPlace(at_once) as engine:
        sx.sweep(file, engine=engine, show=False)
    assert command(["train", "small.yaml", "--dry-run"]) == 0
    assert re.findall(r"\d+", capsys.readouterr().out) == ["12", "12"]


def test_settings_that_do_not_fit() -> None:
    with pytest.raises(UnknownNameError, match="'local'"):
        opener("locl", workers=None, device="cpu", address="")
    with pytest.raises(SpecError, match="--engine ray"):
        opener("local", workers=1, device="cpu", address="host:1")
    with pytest.raises(SizeError, match="slice_seconds is 0"):
        sx.sweep([], slice_seconds=0)


@pytest.mark.slow
def test_a_dry_run_says_what_it_would_take_and_makes_nothing(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("separatrix.training.sweeps.planning.MOMENT", 0.0)
    monkeypatch.setattr("separatrix.training.sweeps.planning.MEASURED", 1)
    assert command(["train", "small.yaml", "--dry-run", "--json", "--workers", "2"]) == 0
    told = json.loads(capsys.readouterr().out)
    wanted = {"runs": 12, "ended": 0, "packs": 2, "members": [6, 6], "workers": 2}
    assert {name: told[name] for name in wanted} == wanted
    sizes = [
        sum(
            p.numel()
            for p in sx.build(
                sx.Architecture.parse(stack), sx.parse_task("eva:n=8"), width=32, hidden=64
            ).parameters()
        )
        for stack in ("full", "gdn")
    ]
    assert told["parameters"] == sizes
    assert told["seconds"] > 0
    assert [path.name for path in file.parent.iterdir()] == ["small.yaml"]
