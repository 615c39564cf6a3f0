"""`separatrix train` and `task NAME evaluate`: what they write and say, and what they refuse."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.interrupts import heeds_interrupts
from support.waiting import SAFETY, until

from separatrix.checks.verify import verify_path
from separatrix.cli.commands.train import read_settings
from separatrix.cli.main import run
from separatrix.constructions import construct
from separatrix.core.evidence.records import Measurement
from separatrix.models.stored.run import Run
from separatrix.tasks import parse_task

SMALL = ["full @ heads=1, head_dim=4", "eva:n=4,V=8", "--set", "width=8"]


def sets(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--set", text)]


SIZES = ["--steps", "6", *sets("hidden=0", "batch=16", "tested=300", "longer=n=6")]


@pytest.fixture(scope="module", name="made")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "made"
    assert run(["train", *SMALL, *SIZES, "--out", str(out)]) == 0
    return out


def test_every_field_of_a_run_may_be_set() -> None:
    """A value of each kind is read as in a grid's file; lists are given item by item."""
    run = Run(architecture="full", task="eva:n=4,V=4", seed=3, longer=("n=8",), formats=("bf16",))
    for field, wanted in vars(run).items():
        if field not in ("architecture", "task", "curriculum"):
            text = wanted[0] if isinstance(wanted, tuple) else f"{wanted}"
            assert read_settings([f"{field}={text}"], None) == {field: wanted}
    assert read_settings(["learning_rate=1e-3"], None) == {"learning_rate": 0.001}
    assert read_settings(["longer=n=4", "longer=n=8"], 7) == {"steps": 7, "longer": ("n=4", "n=8")}


def test_what_is_written_and_said(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert {path.name for path in made.iterdir()} == {
        "model.safetensors",
        "config.json",
        "training.json",
        "measurement.json",
    }
    assert not made.with_name("made.checkpoint").exists()
    (checked,) = verify_path(made)
    record = checked.record
    assert isinstance(record, Measurement)
    again = [check for check in checked.checks if "exactly as recorded" in check]
    assert [f"{record.correct[0]} of the 300" in again[0], "eva:n=6,V=8" in again[1]] == [True] * 2
    assert run(["verify", str(made)]) == 0
    assert "holds: 1 measurement" in capsys.readouterr().out
    other = made.with_name("other")
    assert run(["train", *SMALL, *SIZES, "--out", str(other), *sets("seed=3")]) == 0
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith("accuracy")]
    right = json.loads((other / "measurement.json").read_text())["body"]["correct"][0]
    assert f"({right:,} of 300; 95 % interval" in line
    assert "chance 12.5 %" in line
    assert "at n=6 " in out
    assert "after 6 of 6 steps" in out
    for name in ("verify", "refute", "task eva:n=4,V=8 evaluate"):
        assert f"separatrix {name} {other}" in out
    assert run(["verify", str(other), "--budget", "0.000001"]) == 2
    assert "--budget" in capsys.readouterr().err


def evaluated(task: str, folder: Path, *words: str) -> int:
    return run(["task", task, "evaluate", str(folder), *words])


def test_evaluate_counts_and_refuses(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--n", "4, 5,6", "--number", "50", "--json"]
    assert evaluated("eva", made, *words) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["task"], row["total"], row["chance"]) for row in rows] == [
        (f"eva:n={n},V=8", 50, "1/8") for n in (4, 5, 6)
    ]
    for task, words, said in [
        ("eva", ["--n", "7"], "eva:n=7,V=8 has prompts of 8 tokens; this model has places for 7"),
        ("eva:n=4,V=9", [], "V=9"),
        ("parity:n=4", [], "parity"),
        ("eva", ["--n", "many"], "n"),
        ("evva", [], "Did you mean 'eva'"),
        ("eva", ["--tested", "5"], "--tested is now --number"),
        ("eva", ["--format", "hf"], "--format says nothing to `task eva evaluate`"),
    ]:
        assert evaluated(task, made, *words) == 2
        err = capsys.readouterr().err
        assert said in err
        assert err.count("\n") == 1
    assert evaluated("eva", made.parent) == 2
    assert "construct" in capsys.readouterr().err
    assert run(["task", "eva", "evaluate"]) == 2
    assert "FOLDER" in capsys.readouterr().err


def test_evaluate_of_a_construction_is_never_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    construct(parse_task("eva:n=4,V=4")).save(tmp_path)
    assert evaluated("eva", tmp_path, "--number", "300", "--json") == 0
    assert [row["correct"] for row in json.loads(capsys.readouterr().out)] == [300]


def test_refute_takes_the_trained_weights(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # six steps teach nothing: a wrong answer is found at once
    found = tmp_path / "found.json"
    words = ["refute", str(made), "--task", "eva:n=4,V=8", "--out", str(found)]
    assert run(words) == 0
    capsys.readouterr()
    weights = json.loads(found.read_text())["body"]["weights"]
    from safetensors.numpy import load_file

    stored = load_file(made / "model.safetensors")
    assert {name: entry["shape"] for name, entry in weights.items()} == {
        name: list(array.shape) for name, array in stored.items()
    }
    import base64

    assert base64.b64decode(weights["head.weight"]["data"]) == stored["head.weight"].tobytes()
    assert verify_path(found)
    assert run(["refute", str(made), "--task", "eva:n=4,V=4"]) == 2
    assert "does not fit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steps", "0"], "steps"),
        (sets("optimiser=muonn"), "you mean 'muon'"),
        (sets("learning_rate=.nan"), "learning_rate"),
        (sets("longer=n=3"), "longer"),
        (sets("longer=V=16"), "V=16"),
        (sets("curriculum=n=2"), "n=4@100"),
        (sets("learnin_rate=1"), "Did you mean 'learning_rate'?"),
        (sets("seed=1", "seed=2"), "is given twice"),
        (sets("seed"), "write seed=VALUE"),
        (sets("seed=[1"), "seed is '[1'"),
        (["--learning-rate", "1"], "--set learning_rate=VALUE"),
        (["--retry"], "nothing to `train STACK TASK`"),
        (["--device", "cuda:99"], "cuda:99"),
        (["--device", "gpu"], "gpu"),
    ],
)
def test_one_line_for_what_cannot_be_trained(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new"
    assert run(["train", *SMALL, "--steps", "6", "--out", str(out), *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *SMALL, *SIZES, "--out", str(made)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_training_that_diverges_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # every step multiplies the matrices by -1e299
    words = sets("optimiser=adamw", "learning_rate=1.0e+6", "weight_decay=1.0e+6")
    sizes = ["--steps", "60", *sets("batch=4"), "--out", str(tmp_path / "new")]
    assert run(["train", *SMALL, *sizes, *words]) == 2
    assert "diverged at step" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_checkpoint_of_another_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from separatrix.training.engine import Trainer
    from separatrix.training.packs import Pack

    out = tmp_path / "new"
    other = Run(architecture=SMALL[0], task="eva:n=4,V=8", seed=9, width=8, hidden=0)
    file = tmp_path / "new.checkpoint"
    file.write_bytes(Trainer(Pack((other,))).checkpoint())
    for said in ("another training", "damaged"):
        assert run(["train", *SMALL, *SIZES, "--out", str(out)]) == 2
        err = capsys.readouterr().err
        assert said in err
        file.write_bytes(file.read_bytes()[:100])
    file.unlink()
    file.mkdir()
    assert run(["train", *SMALL, *SIZES, "--out", str(out)]) == 2
    assert "new.checkpoint: cannot be" in capsys.readouterr().err


@pytest.mark.slow  # whole processes; the same within one process: test_alone_saved
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_stopped_training_goes_on(tmp_path: Path, sent: signal.Signals, code: int) -> None:
    words = [*SMALL, "--steps", "3000", *sets("stop_at=2", "tested=64"), "--out"]
    whole = tmp_path / "whole"
    stopped = tmp_path / "stopped"
    assert run(["train", *words, str(whole)]) == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "separatrix", "train", *words, str(stopped)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeds_interrupts,
    )
    file = tmp_path / "stopped.checkpoint"
    until(lambda: file.exists() or process.poll() is not None)
    os.kill(process.pid, sent)
    _, errors = process.communicate(timeout=SAFETY)
    assert process.returncode == code
    assert not stopped.exists()
    if sent == signal.SIGINT:
        assert "same command" in errors
    assert run(["train", *words, str(stopped)]) == 0
    for name in ("model.safetensors", "measurement.json"):
        assert (stopped / name).read_bytes() == (whole / name).read_bytes()
    shutil.rmtree(stopped)
