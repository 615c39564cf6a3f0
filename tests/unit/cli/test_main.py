"""The command line as a user meets it: exit codes, one clear line for a mistake, JSON for
machines, nothing half-written.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from separatrix.cli.main import run

VACANT = "certificate.json"


def fails(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """Runs a command that must fail; its only output is one line on stderr, which is returned."""
    assert run(list(arguments)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["analyze", "full*2 + gnd*4"],
            "'gnd' at position 9",
        ),
        (["analyze", "full*2 +"], "end at position 8"),
        (["analyze", "full(heads=0)"], "heads is 0"),
        (["analyse", "full"], "analyse"),
        (["construct", "eva:n=0", "--out", "x"], "n is 0"),
        (["construct", "seqcomp:L=3,n=5", "--out", "x"], "the smallest is 16"),
        (["construct", "evaa:n=5", "--out", "x"], "you mean 'eva'?"),
        pytest.param(
            ["construct", "twosum:n=8,M=6000", "--arch", "full(head_dim=4)", "--out", "x"],
            "5,7",
            marks=pytest.mark.slow,
        ),
        (["construct", "eva:n=8", "--arch", "gdn*2", "--out", "x"], "full"),
        (["refute", "linear", "--task", "eva"], "size n is missing"),
        (["refute", "linear", "--task", "eva:n=100000000"], "use a smaller n"),
        (["construct", "eva:n=100000000", "--out", "x"], "use a smaller n"),
        (["construct", "eva", "-n", "5", "--out", "x"], "seqcomp:L=2,n=64"),
        (["task", "eva", "sample", "--V=4"], "seqcomp:L=2,n=64"),
        (["task", "explain", "seqcomp"], "task seqcomp"),
        (["task", "sample", "eva:n=8"], "task eva:n=8 sample"),
        (["check-mechanism", "mine.py"], "'mine.py' names no class"),
        (["verify", "no-such-file"], "no such file"),
        (["trial", "full", "gdn", "--task", "eva", "--task=recall"], "--task is given twice"),
        (["reproduce", "--config", "qwen4"], "qwen4"),
    ],
)
def test_mistakes_are_one_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments,
    said,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in fails(capsys, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_certificate_from_search_to_check(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / VACANT
    assert (
        run(
            [
                "refute",
                "linear @ heads=1, head_dim=2, p3",
                "--task",
                "eva:n=8",
                "--out",
                str(file),
            ]
        )
        == 0
    )
    assert "right answer" in capsys.readouterr().out
    assert run(["verify", str(file)]) == 0
    assert "holds: 1 certificate" in capsys.readouterr().out
    data = json.loads(file.read_text())
    data["body"]["inputs"][0][-1] ^= 1
    file.write_text(json.dumps(data))
    assert "content hash" in fails(capsys, "verify", str(file))


def test_not_found_exits_with_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / VACANT
    arguments = [
        "refute",
        "linear @ heads=2, head_dim=8, p16",
        "--task",
        "eva:n=8",
        "--budget",
        "0.5",
        "--out",
        str(file),
        "--json",
    ]
    assert run(arguments) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["found"] is False
    assert not file.exists()


def test_a_construction_from_weights_to_check(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["construct", "seqcomp:L=2,n=32", "--out", str(tmp_path / "m"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["record"]["kind"] == "construction"
    assert run(["verify", str(tmp_path / "m")]) == 0
    assert "holds: 1 construction" in capsys.readouterr().out
    assert run(["construct", "seqcomp:L=2,n=34", "--out", str(tmp_path / "k")]) == 0
    assert ", n = 32\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("construct eva:n=4 --out", "m"),
        ("refute linear --task eva:n=8 --out", "m"),
        ("runs export", "m.csv"),
        ("task results . --out", "m.svg"),
        ("train full eva:n=8 --out", "m"),
        ("trial gdn full --task recall --out", "m"),
    ],
)
def test_nothing_is_overwritten(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str, name: str
) -> None:
    file = tmp_path / name
    file.write_text("a file")
    assert "exists already" in fails(capsys, *words.split(), str(file))
    assert file.read_text() == "a file"


def test_a_mixer_that_is_not_imported(capsys: pytest.CaptureFixture[str]) -> None:
    for stack in ("my_mixer*4 + full", "my_mixer"):
        assert "--import" in fails(capsys, "analyze", stack)


def test_help_and_analyze_import_no_torch() -> None:
    program = (
        "import sys; from separatrix.cli.main import run; run(['--help']); code = run(['analyze',"
        " '(gdn*3 + full)*4', '--json']);sys.exit(code or ('torch' in sys.modules) * 3)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    assert "reproduce" in done.stdout


def test_a_carriers_numbers_stand_under_their_own_headings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A carrier and the heads behind it are told by different numbers: two tables."""
    monkeypatch.setenv("COLUMNS", "160")
    folder = tmp_path / "m"
    stack = ("--arch", "gdn + full*2")
    assert run(["construct", "seqcomp:L=2,m=4,n_1=2", *stack, "--out", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    layers = json.loads((folder / "construction.json").read_text())["body"]["proof"]["layers"]
    assert set(layers[0]) != set(layers[1])
    headings: list[str] = []
    shown: list[dict[str, str]] = []
    for line in lines:
        cells = re.split(r"  +", line.rstrip())
        if line.startswith("where"):
            headings = cells
        elif re.match(r"layer [0-9]", line):
            shown.append(dict(zip(headings, cells, strict=True)))
    assert [row.pop("where") for row in shown] == ["layer 1", "layer 2", "layer 3"]
    for row, layer in zip(shown, layers, strict=True):
        numbers = {key: value for key, value in layer.items() if key not in ("layer", "part")}
        assert {heading.replace(" ", "_") for heading in row} == set(numbers)
        for key, value in numbers.items():
            said = row[key.replace("_", " ")]
            # numbers of a proof are shown with three digits
            same = said == str(value)
            assert same or float(said) == pytest.approx(float(value), rel=6e-3), key
