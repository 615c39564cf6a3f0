"""`analyze` as a user meets it: stacks and sizes given by hand, files with open sizes, plain
English, JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.hf_configs import NEMOTRON

from separatrix.cli.main import run

SILENT = {key: value for key, value in NEMOTRON.items() if key != "hybrid_override_pattern"} | {
    "model_type": "nobody_knows"
}
NATIVE = {
    "d_model": 64,
    "n_layer": 3,
    "vocab_size": 100,
    "ssm_cfg": {"layer": "Mamba2"},
    "attn_layer_idx": [],
    "attn_cfg": {},
}


def written(path: Path, config: dict[str, Any]) -> str:
    (path / "config.json").write_text(json.dumps(config))
    return str(path / "config.json")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["analyze", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["analyze", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_a_context_beyond_the_models_own_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """gpt-oss-20b was made for 131,072 tokens, which its bytes a token (24,576) do not spell."""
    for asked, beyond in (("131073", True), ("131072", False), ("131071", False)):
        assert run(["analyze", "gpt-oss-20b", "--context", asked]) == 0
        own = capsys.readouterr().out.replace("131,072 tokens", "").count("131,072")
        assert bool(own) == beyond
    assert run(["compare", "mistral-7b-v0.1", "llama-3.1-8b", "--context", "32769"]) == 0
    assert "32,768" in capsys.readouterr().out


def test_a_file_that_does_not_tell_its_layers_wants_a_spec(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = written(tmp_path, SILENT)
    message = refused(capsys, file)
    assert "mamba_num_heads" in message
    assert "as a spec" in message


def test_open_sizes_are_named_and_supplied(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = written(tmp_path, NATIVE)
    assert "--set mamba2.state=..." in refused(capsys, file)
    sizes = [
        "mamba2.state=16",
        "mamba2.heads=4",
        "mamba2.head_dim=32",
        "mamba2.groups=1",
        "mamba2.conv=4",
        "dtype=bf16",
    ]
    whole = printed(capsys, file, *(word for size in sizes for word in ("--set", size)))
    assert whole["cache"]["recurrent_numbers"] == {"mamba2": 4 * 32 * 16}
    assert whole["cache"]["convolution_numbers"] == {"mamba2": 3 * (4 * 32 + 2 * 16)}
    assert whole["cache"]["state_bytes"] == 3 * (2048 * 4 + 480 * 2)
    assert any("set by hand: mamba2.state = 16" in text for text in whole["assumptions"])


def test_sizes_of_a_spec_and_a_preset_are_changed_by_hand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed(capsys, "gdn(heads=1, head_dim=2)", "--set", "gdn.head_dim=3")["cache"][
        "recurrent_numbers"
    ] == {"gdn": 9}
    assert printed(capsys, "qwen3-next-80b", "--set", "gdn.head_dim=64")["cache"][
        "recurrent_numbers"
    ] == {"gdn": 32 * 64 * 128}
    assert printed(capsys, "full", "--set", "vocabulary=70", "--set", "context=90")["context"] == 90


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--context", "0"], "context is 0"),
        (["--context", "10^30"], "context is '10^30'"),
        (["--context", "1" + "0" * 30], "from 1 to 1,000,000,000,000"),
        (["--context", "128kB"], "such as 131072 or 128k"),
        (["--set", "full.headz=3"], "you mean 'heads'?"),
        (["--set", "gdn.heads=3"], "model is 'gdn'"),
        (["--set", "full.heads"], "no setting"),
        (["--explain"], "is now --why"),
    ],
)
def test_mistakes_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert said in refused(capsys, "full", *arguments)


def test_what_stands_behind_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    def told(*arguments: str) -> str:
        assert run(["analyze", "gdn", *arguments]) == 0
        return " ".join(capsys.readouterr().out.split())

    recall = told("--why", "recall")
    for said in ("Whatever its weights", "says", "numbers", "assumes", "list theorems I", "source"):
        assert said in recall
    assert "equality" not in recall
    assert told("--why", "Recall") == recall
    assert told("--why", "equal").count("of two strings") == 1
    everything = told("--why", "all")
    for said in ("Memory of the past", "Cost of a token", "Assumptions", "permutation tracking"):
        assert said in everything
    assert "Whatever its weights" not in told()
    for verdict in printed(capsys, "(gdn*3 + full)*2")["verdicts"]:
        assert verdict["explain"].count(". ") >= 1, verdict["question"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("recal1", "you mean 'recall'?"),
        ("brakets", "you mean 'brackets'?"),
        ("parety", "you mean 'parity'?"),
        ("zzz", "Known: 2sum, all"),
        ("", "unknown question ''"),
        ("question-first", "asked of full"),
    ],
)
def test_questions_that_are_none(capsys: pytest.CaptureFixture[str], asked: str, said: str) -> None:
    assert said in refused(capsys, "full", "--why", asked)
