"""What commands print at 80 columns: no broken word, no blanks at the ends of lines."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from support.report_bundle import fake_bundle

from separatrix.cli.main import run
from separatrix.cli.options import KINDS
from separatrix.stacks.architecture.released import PRESETS

COLUMNS = 80
WIDER = (1000, 60)
"""Columns at which the words are looked up: at few, lists leave columns out, and say so."""
COMMANDS = (
    "list theorems",
    "list theorems III",
    "list theorems count:eva",
    "list tasks",
    "list tasks seqcomp",
    "list mechanisms",
    "list mechanisms gdn",
    "list presets",
    "analyze qwen3-next-80b",
    "analyze recurrentgemma-2b --why all",
    "analyze deepseek-v3.2 --context 128k",
    "compare qwen3-next-80b recurrentgemma-2b nemotron-3-super-120b",
    "compare deepseek-v3.2 mamba-2.8b",
    "compare qwen3-next-80b recurrentgemma-2b --why all",
    "design --task eva:V=50000 --task seqcomp:L=2 --context 32k --cache 200MiB --base lfm2-1.2b",
    "task eva:n=8,V=8 audit --number 100",
)
SECOND = (
    "list theorems count:eva",
    "list tasks seqcomp",
    "analyze qwen3-next-80b",
    "analyze deepseek-v3.2 --context 128k",
    "compare deepseek-v3.2 mamba-2.8b",
    "compare qwen3-next-80b recurrentgemma-2b nemotron-3-super-120b",
    "list mechanisms",
)


def printed(
    words: list[str],
    columns: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(words) == 0
    return capsys.readouterr().out


def check(narrow: str, wide: str) -> None:
    lines = narrow.split("\n")
    assert [line for line in lines if line != line.rstrip()] == []
    # what stands at the head of a column there may stand before each of its cells here, or be named
    words = {f"{word}{mark}" for word in wide.split() for mark in ("", ":", ",")}
    assert [word for word in narrow.split() if word not in words] == []


@pytest.mark.parametrize(
    "command",
    [
        # a second one of a kind waits
        pytest.param(command, marks=[pytest.mark.slow] if command in SECOND else [])
        for command in COMMANDS
    ],
)
def test_no_word_is_broken_and_no_line_ends_in_blanks(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = "\n".join(printed(command.split(), columns, capsys, monkeypatch) for columns in WIDER)
    narrow = printed(command.split(), COLUMNS, capsys, monkeypatch)
    check(narrow, wide)
    # a single word may be longer than the terminal, a line of several words not
    longer = [line for line in narrow.split("\n") if len(line) > COLUMNS and " " in line.strip()]
    assert longer == []


def test_the_table_of_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("separatrix.cli.reproduce.reproduce_table", lambda *_, **__: fake_bundle())
    texts = []
    for columns in (COLUMNS, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert run(["reproduce"]) == 0
        texts.append(capsys.readouterr().out)
    narrow, wide = ([line.rstrip() for line in text.split("\n")] for text in texts)
    assert narrow == texts[0].split("\n")
    assert max(map(len, narrow)) <= COLUMNS
    words = {word for line in wide for word in line.split()}
    assert [word for line in narrow for word in line.split() if word not in words] == []


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("kind", KINDS)
def test_lists_are_tables(
    kind: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constructions have five numbers each, for which 60 columns have no room."""
    first, *lines = printed(["list", kind], columns, capsys, monkeypatch).split("\n")
    heads = {"theorems": "key", "experiments": "experiment", "constructions": "construction"}
    is_table = first.startswith(f"{heads.get(kind, 'name')}  ")
    assert is_table == ((kind, columns) != ("constructions", 60))
    rows = import_module(f"separatrix.cli.report.{kind}").rows()
    names = [next(iter(row.values())) for row in rows]
    assert sum(any(line.startswith(f"{name} ") for line in lines) for name in names) == (
        len(names) if is_table else 0
    )


def test_presets_are_listed_with_their_ids(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(["list", "presets"], 200, capsys, monkeypatch)
    for name, facts in PRESETS.items():
        assert f"\n{name} " in text
        assert facts["source"].removeprefix("https://huggingface.co/") in text
