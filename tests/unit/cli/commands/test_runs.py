"""`separatrix runs`: lists, one run, tables in files, and stores that are not there."""

from __future__ import annotations

import csv
import json
import math
import re
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.outcomes import singly
from support.toy_runs import outcome, pack, run, update

from separatrix.cli.main import run as command
from separatrix.core.evidence.outcome import FormatOutcome, Outcome
from separatrix.models.stored.run import Run
from separatrix.training.packs import Metric, Pack
from separatrix.training.sweeps.schema import digest, seal
from separatrix.training.sweeps.store import Store

LONG = Run(
    architecture="linear @ heads=1, head_dim=2",
    task="eva:n=64,V=128",
    seed=3,
    longer=("n=128",),
    stop_at=2.0,
)
"""Theorem A speaks of it: its state of 2 x 2 numbers of 32 bits holds 128 of 448 bits."""


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Six runs: two done, one diverged, one failed, one running, one waiting."""
    made = tmp_path / "sweeps.sqlite"
    five = pack(0, 1, 2, 3, 4)
    with Store.create(made, version="0.1.0+abc") as store:
        store.add("first", five.runs)
        store.add("second", [LONG, five.runs[0]])
        store.take_up(five.keys[:4], "me")
        store.tell(five, update(five, 10, metrics=[]), "me")
        done = outcome(five.runs[0], 2047)
        nan = singly(outcome(five.runs[1], 0), status="diverged", stopped="diverged", tested=0)
        ended = ((five.keys[0], done), (five.keys[1], nan))
        told = [
            Metric(five.keys[0], 10, 1.5, 0.25, 1e-3),
            Metric(five.keys[0], 20, 0.5, 1.0, 1e-3),
            Metric(five.keys[1], 20, math.nan, 0.0, 1e-3),
        ]
        last = replace(update(five, 20, metrics=told), finished=ended)
        store.tell(five, last, "me")
        store.fail([five.keys[2]], "RuntimeError: no luck", "me")
        long = Pack((LONG,))
        store.take_up(long.keys, "me")
        right = singly(outcome(LONG, 1024), longer=(512,))
        store.tell(
            long, replace(update(long, 30, checkpoint=None), finished=((LONG.key, right),)), "me"
        )
    return made


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert command(["runs", *words]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def fails(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert command(["runs", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_a_list(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "list", "--store", str(path)).splitlines()
    assert lines[0].split() == [
        "run", "sweep", "architecture", "task", "seed", "rate", "status", "step", "accuracy", "time"
    ]  # fmt: skip
    rows = [re.split(r"  +", line) for line in lines[1:7]]
    # 2047 of 2048 are not all
    assert [row[6:9] for row in rows] == [
        ["done", "40/1000", "99.9 %"],
        ["diverged", "40/1000", "-"],
        ["failed", "20/1000", "-"],
        ["waiting", "20/1000", "-"],
        ["waiting", "0/1000", "-"],
        ["done", "40/1000", "50.0 %"],
    ]
    assert lines[-1].endswith(", 2 done, 1 diverged, 1 failed")


def test_what_is_left_out_says_so(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = printed(capsys, "list", "--store", str(path)).splitlines()
    assert max(map(len, lines)) <= 60
    assert "shows: time, step" in "\n".join(lines)


def test_what_a_list_may_be_asked(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def keys(*words: str) -> list[str]:
        out = printed(capsys, "list", "--store", str(path), "--json", *words)
        return [row["key"] for row in json.loads(out)]

    assert keys("--sweep", "second") == [LONG.key, run(0).key]
    assert keys("--status", "failed") == [run(2).key]
    assert keys("--sort=-accuracy", "--limit", "2") == [run(0).key, LONG.key]
    assert keys("--sort", "accuracy", "--limit", "1") == [LONG.key]
    assert keys("--sweep", "second", "--status", "failed") == []
    out = printed(capsys, "list", "--store", str(path), "--limit", "1")
    assert ", 1 failed; 1 shown, " in out


def test_lists_for_machines(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(printed(capsys, "list", "--store", str(path), "--json"))
    assert Run.from_json(rows[0]["run"]) == run(0).canonical()
    assert rows[0]["outcome"]["correct"] == 2047
    assert (rows[2]["error"], rows[2]["outcome"]) == ("RuntimeError: no luck", None)
    assert {row["completions"] for row in rows} == {0, 1}


def test_one_run(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "show", LONG.key[:9], "--store", str(path))
    for said in (
        "all its steps were done",
        # Wilson, by the formula: centre (0.5 + z^2/4096) / (1 + z^2/2048) = 0.5, half width 0.0216
        "prompts 47.8 to 52.2 %), chance 0.8 %",
        "at n=128      25.0 % (512 of 2,048",
        "FAILS (Theorem I)",
        "ceiling       no weights answer more than",
        "of random questions (Theorem A)",
        "by version 0.1.0+abc",
    ):
        assert said in out
    out = printed(capsys, "show", run(0).key, "--store", str(path))
    assert "ceiling" not in out
    assert [line.split() for line in out.splitlines()[-2:]] == [
        ["10", "25.0", "%", "1.5"], ["20", "100.0", "%", "0.5"]
    ]  # fmt: skip
    assert "failed: RuntimeError: no luck" in printed(
        capsys, "show", run(2).key, "--store", str(path)
    )
    found = json.loads(printed(capsys, "show", run(1).key, "--store", str(path), "--json"))
    assert found["metrics"] == [{"step": 20, "loss": None, "accuracy": 0.0, "learning_rate": 1e-3}]
    assert found["outcome"]["status"] == "diverged"


MANY = Run(
    architecture="gdn @ heads=1, head_dim=4",
    task="mqar:input_seq_len=16,num_kv_pairs=2,vocab_size=8",
    seed=0,
    tested=1000,
    longer=("input_seq_len=24",),
    formats=("bf16",),
)
"""Two answers are due in each prompt."""


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """A run with two answers in each prompt, and one that diverged."""
    made = tmp_path / "several.sqlite"
    both = Pack((MANY, replace(MANY, seed=1)))
    ended = Outcome(
        seed=0,
        correct=100,
        tested=1000,
        longer=(50,),
        right=1500,
        due=2000,
        bits=0.875,
        bits_squares=0.9,
        longer_right=(1000,),
        longer_due=(2000,),
        formats=(FormatOutcome(format="bf16", correct=90, right=1450, due=2000, bits=1.25),),
        steps_done=40,
        parameters=900,
    )
    gone = replace(
        ended,
        seed=1,
        status="diverged",
        stopped="diverged",
        formats=(),
        **dict.fromkeys(("correct", "tested", "right", "due"), 0),
        **dict.fromkeys(("longer", "longer_right", "longer_due"), (0,)),
    )
    with Store.create(made, version="0.1.0+abc") as store:
        store.add("several", both.runs)
        store.take_up(both.keys, "me")
        finished = tuple(zip(both.keys, (ended, gone), strict=True))
        last = replace(update(both, 40, checkpoint=None), finished=finished)
        store.tell(both, last, "me")
    return made


def test_what_code_before_this_version_ended_is_refused(
    several: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(several) as connection:
        connection.execute("DROP TRIGGER ended_stays")
        connection.create_function("digest", 5, digest)
        connection.create_function("seal", 5, seal)
        for change in (
            "outcome = json_remove(outcome, '$.right', '$.due', '$.bits', '$.formats')",
            "digest = digest(key, specification, status, version, outcome),"
            " seal = seal(cell, learning_rate, seed, status, outcome)",
        ):
            connection.execute(f"UPDATE runs SET {change} WHERE seed = 0")
        # what wrote it keeps the trigger
        connection.executescript(
            "CREATE TRIGGER ended_stays BEFORE UPDATE OF key ON runs BEGIN SELECT 1; END;"
        )
    connection.close()
    assert "--store" in fails(capsys, "summary", "--store", str(several))
    said = fails(capsys, "show", MANY.key, "--store", str(several))
    assert f"run {MANY.key[:12]}" in said


def test_single_answers_beside_prompts(several: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = printed(capsys, "list", "--store", str(several), "--sort=-accuracy")
    assert re.findall(r"\d+\.\d %", listed) == ["75.0 %"]
    out = printed(capsys, "show", MANY.key, "--store", str(several))
    out = " ".join(out.split())
    for said in (
        # as wide as 750 of 1,000: by the formula, 0.7490 -+ 0.0268
        "accuracy 75.0 % (1,500 of 2,000; 95 % interval over its test prompts 72.2 to 77.6 %)",
        "whole prompts 10.0 % (100 of 1,000;",
        "bits 0.875 left for each answer",
        "at input_seq_len=24 50.0 % (1,000 of 2,000;",
        "in bf16 72.5 % (1,450 of 2,000;",
    ):
        assert said in out
    gone = printed(capsys, "show", replace(MANY, seed=1).key, "--store", str(several))
    assert "bits" not in gone
    summed = json.loads(printed(capsys, "summary", "--store", str(several), "--json"))
    seeds = summed["cells"][0]["rates"][0]["seeds"]
    assert [one["accuracy"] for one in seeds] == [0.75, 0.0]
    assert seeds[0]["formats"][0]["right"] == 1450
    assert "whole" in printed(capsys, "summary", "--store", str(several))


def test_single_answers_in_files(
    several: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(capsys, "export", str(tmp_path / "runs.csv"), "--store", str(several))
    with (tmp_path / "runs.csv").open() as file:
        first, second = csv.DictReader(file)
    counts = [first[f"outcome.{name}"] for name in ("right", "due", "correct", "tested")]
    assert counts == ["1500", "2000", "100", "1000"]
    assert json.loads(first["run.formats"]) == ["bf16"]
    assert json.loads(first["outcome.formats"])[0]["bits"] == 1.25
    assert json.loads(first["outcome.longer_due"]) == [2000]
    # of what diverged nothing is made up
    assert [second[f"outcome.{name}"] for name in ("right", "due", "formats")] == ["0", "0", "[]"]


def test_a_summary(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "summary", "--store", str(path), "--sweep", "first")
    assert "99.9 %" in out
    assert "1 diverged, 1 failed, 2 waiting" in out
    found = json.loads(
        printed(capsys, "summary", "--store", str(path), "--sweep", "second", "--json")
    )
    assert [cell["run"]["task"] for cell in found["cells"]] == [LONG.task, run(0).task]
    assert "sweeps first, second" in fails(capsys, "summary", "--store", str(path))


def test_a_table_in_a_file(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "runs.csv"
    assert printed(capsys, "export", str(file), "--store", str(path)).startswith("6 runs ")
    rows = list(csv.DictReader(file.read_text().splitlines()))
    with Store.read(path) as kept:
        stored = kept.rows()
    assert [row["key"] for row in rows] == [one.key for one in stored]
    assert json.loads(rows[5]["run.longer"]) == ["n=128"]
    assert json.loads(rows[5]["outcome.longer"]) == [512]
    assert float(rows[0]["ended"]) == pytest.approx(stored[0].ended, abs=0.002)
    assert (rows[2]["status"], rows[2]["outcome.right"]) == (stored[2].status, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--store", "none.sqlite"], "no store at none.sqlite"),
        (["show", "ab", "--store", "none.sqlite"], "no store at none.sqlite"),
        (["export", "a.csv", "--store", "none.sqlite"], "no store at none.sqlite"),
        (["export", "a.txt", "--store", "PATH"], "exported to .csv"),
        (["list", "--store", "PATH", "--status", "dne"], "you mean 'done'?"),
        (["list", "--store", "PATH", "--sort", "accurcy"], "you mean 'accuracy'?"),
        (["list", "--store", "PATH", "--sweep", "frist"], "you mean 'first'?"),
        (["list", "--store", "PATH", "--limit", "-1"], "--limit"),
        (["lsit"], "you mean 'list'?"),
        (["show"], "separatrix runs show 3fa2"),
        (["export", "a.csv", "--metrics", "b.csv"], "runs show KEY --json"),
        (["export", "a.md", "--store", "PATH"], "exported to .csv"),
        (["export", "PATH/a.csv", "--limit", "3"], "--limit says nothing to"),
        (["show", "", "--store", "PATH"], "several runs"),
        (["show", "zz", "--store", "PATH"], "begins with 'zz'"),
        (["export", "nowhere/a/b.csv", "--store", "PATH", "--status", "running"], "no such runs"),
        (["export", "PATH/a.csv", "--store", "PATH"], "cannot be written"),
    ],
)
def test_mistakes(
    words: list[str],
    said: str,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in fails(capsys, *(word.replace("PATH", str(path)) for word in words))
    assert list(tmp_path.iterdir()) == [path]


def test_lists_load_neither_torch_nor_numpy(path: Path) -> None:
    code = (
        "import sys; from separatrix.cli.main import run;"
        f"assert run(['runs', 'list', '--store', {str(path)!r}]) == 0;"
        "heavy = {'torch', 'numpy', 'flint'} & set(sys.modules); sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
