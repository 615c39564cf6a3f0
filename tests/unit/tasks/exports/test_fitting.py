"""Sizes whose questions fit so many tokens: the largest ones, of every row, or none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from separatrix.cli.main import app
from separatrix.core.errors import SizeError, SpecError
from separatrix.tasks import Task, parse_any_task
from separatrix.tasks.exports import export
from separatrix.tasks.exports.asking import counter, description, fitted, longest, most_written
from separatrix.tasks.exports.source import TextSource, TokenSource

ROWS = {"train": 3, "test": 9}


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("text", ["eva:n=8,V=8", "recall:n=8,K=16,V=4", "eva:n=8,V=8,shift=zipf"])
@pytest.mark.parametrize("least", [0, 1])
def test_a_value_more_is_a_word_more(text: str, least: int) -> None:
    """In words these prompts have one length at every size, so that the fit is exact: n values, or
    n pairs, stand in them, and one more does not fit.
    """
    task = parse_any_task(text)
    each = 2 if text.startswith("recall") else 1
    tokens = longest(task, ROWS, 0, words) + 30 * each + least
    found, taken = fitted(task, tokens, ROWS, 0, words)
    assert found.sizes()["n"] == 38 + least // each
    assert taken == tokens - least % each
    assert found.sizes().get("shift") == task.sizes().get("shift")


@pytest.mark.parametrize(
    "text",
    [
        "needles:length=120,keys=4",
        pytest.param("multihop:k=2,n=15", marks=pytest.mark.slow),
        pytest.param("dyck:n=256,k=2,D=8", marks=pytest.mark.slow),
        "khop:easy",
    ],
)
def test_every_row_that_is_exported_fits(tmp_path: Path, text: str) -> None:
    task = parse_any_task(text)
    limit = longest(task, ROWS, 1, len) * 2
    found, taken = fitted(task, limit, ROWS, 1, len)
    assert limit / 2 < taken <= limit
    export(found, format="jsonl", out=tmp_path / "rows", splits=ROWS | {"validation": 0}, seed=1)
    source = TokenSource(found) if isinstance(found, Task) else TextSource(found)
    above = description(source, steps=False)
    files = list((tmp_path / "rows").glob("*.jsonl"))
    assert len(files) == 2
    rows = [json.loads(line)["prompt"] for file in files for line in file.read_text().splitlines()]
    assert max(len(above + row) for row in rows) + most_written(source, steps=False) == taken


@pytest.mark.parametrize("text", ["eva:n=8,V=8", "needles:length=120,keys=4"])
def test_where_nothing_fits_is_said(text: str) -> None:
    with pytest.raises(SizeError, match="more than 20 tokens"):
        fitted(parse_any_task(text), 20, ROWS, 0, words)


@pytest.mark.slow
def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(SpecError, match="not loaded"):
        counter(str(tmp_path))


@pytest.mark.parametrize(
    "more",
    [
        ["--tokens", "2k"],
        ["--tokens", "2k:"],
        ["--tokens", ":there"],
        ["--tokens", "2k:there", "--n", "8"],
    ],
)
def test_tokens_say_of_which_tokenizer(tmp_path: Path, more: list[str]) -> None:
    asked = ["task", "eva:V=8", "export", "--format", "jsonl", "--out", str(tmp_path / "a"), *more]
    done = CliRunner().invoke(app, asked)
    assert isinstance(done.exception, SpecError)
    assert "32k:FOLDER" in str(done.exception)
    assert not (tmp_path / "a").exists()
