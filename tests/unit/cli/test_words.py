"""What may be typed: models by their ids on the hub, contexts with k and M, names without `show`,
and what is suggested for a wrong case.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.hf_configs import NEMOTRON

from separatrix.cli.main import run
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import ALSO_CALLED, MECHANISMS


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(list(words)) == 0
    return capsys.readouterr().out


def card(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(printed(capsys, *words, "--json"))


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(list(words)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


# Models


@pytest.mark.parametrize(
    "name",
    [
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "Qwen/Qwen3-Next-80B-A3B-Thinking",
        "qwen/qwen3-next-80b-a3b-thinking",
        "https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Thinking",
        "https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Thinking/blob/main/config.json",
        "hf.co/Qwen/Qwen3-Next-80B-A3B-Thinking?library=transformers",
        "Qwen/Qwen3-Next-80B-A3B-Thinking/",
        "QWEN3-NEXT-80B",
    ],
)
def test_a_hub_id_names_its_preset(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert card(capsys, "analyze", name) == card(capsys, "analyze", "qwen3-next-80b")


def test_a_folder_of_that_name_comes_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "Qwen" / "Qwen3-8B"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(NEMOTRON))
    monkeypatch.chdir(tmp_path)
    assert card(capsys, "analyze", "Qwen/Qwen3-8B")["layers"]["recurrent"] > 0


def test_an_id_that_is_nearly_known(capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, "analyze", "Qwen/Qwen3-Next-80B-A3B")
    assert "Did you mean 'Qwen/Qwen3-Next-80B-A3B-" in message
    assert "the preset qwen3-next-80b?" in message
    assert "Did you mean" not in refused(capsys, "analyze", "nobody/nothing")


@pytest.mark.slow
def test_a_long_spec_is_read_in_linear_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With a message made for every name this would take minutes."""
    assert "has 10,001 layers" in refused(capsys, "analyze", "full + " * 30_000 + "full")


# Contexts


@pytest.mark.parametrize(
    ("text", "tokens"), [("256k", 262_144), ("1M", 1_048_576), ("131,072", 131_072)]
)
def test_a_context_is_printed_as_it_was_understood(
    text: str, tokens: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"{tokens:,} tokens" in printed(capsys, "analyze", "gdn*2", "--context", text)
    assert card(capsys, "compare", "gdn", "full", "--context", text)["context"] == tokens
    help_text = " ".join(printed(capsys, "analyze", "--help").split())
    assert "128k (k = 1,024) or 1M (M = 1,048,576)" in help_text


# Names


def test_a_task_alone_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "task", "eva") == printed(capsys, "list", "tasks", "eva")
    assert card(capsys, "task", "eva:n=8") == card(capsys, "list", "tasks", "eva")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "theorems", "VIII"), "unknown theorem 'VIII'"),
        (("list", "theorems", "iiii"), "Did you mean 'III'?"),
        (("list", "theroems"), "you mean 'theorems'?"),
        (("list", "theorems", "I", "II"), "unexpected extra argument"),
        (("list", "presets", "qwen3-next-80"), "Did you mean 'qwen3-next-80b'?"),
        (("list", "constructions", "retreival"), "you mean 'retrieval'?"),
        (("task", "eva", "smaple"), "you mean 'sample'?"),
        (("task", "eva", "results"), "export, sample, show."),
        (("analyze", "gdn", "--contxt", "3"), "--contxt. Did you mean --context?"),
        (("analyze", "gdn", "--haeds", "3"), "gdn.haeds=VALUE"),
        (("train", "gdn", "eva:n=8", "--lr", "3"), "--set lr=VALUE"),
        (("refute", "gdn", "--task", "eva:n=8", "--lr", "3"), "--lr; sizes stand"),
        (("verify", "f", "--lr", "3"), "--lr. `separatrix"),
        (("refute", "full", "--task", "eva:n=4", "--budgt", "5"), "--budget"),
        (("construct", "eva:n=4", "--out", "x", "--arhc", "full"), "--arch"),
        (("list", "tasks", "Evan"), "you mean 'eva'?"),
        (("list", "mechanisms", "gdm"), "you mean 'gdn'?"),
        (("lits",), "you mean 'list'?"),
        (("analyze", "Fulll"), "you mean 'full'?"),
        (("analyze", "gdm*3 + full"), "you mean 'gdn'"),
        (("analyze", "full", "--set", "Fulll.heads=2"), "you mean 'full'?"),
        (("analyze", "full", "--set", "full.Heads=2"), "you mean 'heads'?"),
        (("task", "EVN", "audit"), "you mean 'eva'?"),
        (("refute", "full", "--task", "Evva:n=4"), "you mean 'eva'?"),
        (("list", "experiments", "state-size"), "Known: capacity"),
        (("analyze", "full", "--memory", "80"), "--memory: '80' has no unit"),
        (("design", "--task", "eva", "--cache", "1GiB", "--place", "foo"), "--place: foo"),
        (("analyze", "full", "--context", "0"), "--context is 0"),
    ],
)
def test_what_is_suggested(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, *words)


def test_tasks_are_named_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("EVA",), ("Eva:n=4", "sample", "--number", "1")):
        lower = [word.replace("E", "e").replace("VA", "va") for word in words]
        assert printed(capsys, "task", *words) == printed(capsys, "task", *lower)


@each(
    "written, meant",
    [
        ("GDN*3 + Attention", "gdn*3 + full"),
        ("SWA(size=64) + mha", "window(size=64) + full"),
        ("(Mamba2 | GQA(kv_heads=1))*2", "(mamba2 | full(kv_heads=1))*2"),
        ("Gated_DeltaNet", "gdn"),
    ],
)
def test_mechanisms_have_the_names_of_papers_too(written: str, meant: str) -> None:
    assert Architecture.parse(written) == Architecture.parse(meant)


def test_no_name_of_a_paper_is_a_mechanism_or_stands_twice() -> None:
    also = [name for names in ALSO_CALLED.values() for name in names.split()]
    assert len({*also, *MECHANISMS}) == len(also) + len(MECHANISMS)
    assert all(name == name.casefold() for name in also)


@pytest.mark.parametrize(
    "words",
    [
        ("theorems", "III"),
        ("tasks", "seqcomp"),
        ("mechanisms", "gdn"),
        ("presets", "qwen3-next-80b"),
    ],
)
def test_json_keys_are_no_headings(
    words: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    data = card(capsys, "list", *words)
    assert all(key.isidentifier() and key.islower() for key in data)
    assert data["about"]["heading"].startswith(f"{words[1]}: ")
    assert data["source"]["heading"] == "source"
    assert all(set(part) == {"heading", "text"} for part in data.values())


# compare


def test_sizes_by_hand_in_a_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "gdn*2 + full", "full*2", "--set")
    data = card(capsys, *words, "gdn.head_dim=8", "--set", "dtype=p4")
    first, second = data["models"]
    assert first["cache"]["recurrent_numbers"] == {"gdn": 4 * 8 * 8}
    assert any("gdn.head_dim = 8" in text for text in first["assumptions"])
    assert not any("head_dim" in text for text in second["assumptions"])
    assert any("dtype = p4" in text for text in second["assumptions"])
    assert "is 'mamba2'" in refused(capsys, *words, "mamba2.state=8")
    assert "no setting" in refused(capsys, *words, "gdn")
