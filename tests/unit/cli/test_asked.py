"""What is asked in Python says what the command line says."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import separatrix as sx
from separatrix.cli.asked import Shown
from separatrix.cli.main import run
from separatrix.core.errors import (
    EvidenceError,
    MissingExtraError,
    SizeError,
    SpecError,
    UnknownNameError,
)
from separatrix.stacks.architecture.released import PRESETS

STACK, TASK = "gdn*4 @ head_dim=8", "eva:n=100000,V=1000"


LIMITS = ("--context", "512", "--cache", "1MiB")


def test_verdicts_of_texts_are_those_of_objects() -> None:
    said = sx.judge(STACK, TASK)
    assert said == sx.judge(sx.Architecture.parse(STACK), sx.parse_task(TASK))
    assert (said[0].status, said[0].theorem) == ("FAILS", "I")
    assert repr(said).startswith("FAILS by I: ")
    assert "\n" not in repr(said)
    assert said.rows()[0]["n"] == said[0].n
    assert said.to_json()[0]["kind"] == "verdict"
    only = sx.judge(STACK, TASK, among=lambda theorem: theorem.key == "VI")
    assert list(only) == []
    assert "no theorem" in repr(only)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (
            ["analyze", "jamba-v0.1", "--context", "4096"],
            lambda: sx.analyze("jamba-v0.1", 4096),
        ),
        (
            ["compare", "qwen3-8b", "gdn*2", "--context", "4096"],
            lambda: sx.compare("qwen3-8b", "gdn*2", context=4096),
        ),
        (
            ["design", "--task", "eva:V=64", "--base", "gdn*2+full", *LIMITS],
            lambda: sx.design("eva:V=64", context=512, cache="1MiB", base="gdn*2+full"),
        ),
    ],
)
def test_it_prints_what_the_command_prints(
    words: list[str],
    asked: Callable[[], Shown],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = asked()
    monkeypatch.setenv("COLUMNS", "100")
    run(words)
    assert str(answer).split() == capsys.readouterr().out.split()
    run([*words, "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert printed.keys() == json.loads(json.dumps(answer.to_json())).keys()
    assert "\n" not in repr(answer)
    assert answer._repr_html_().startswith('<div class="separatrix">')


def test_of_a_model_without_a_context_its_own_is_taken() -> None:
    assert sx.analyze("full").facts[0].context == 8_192
    own = sx.preset("qwen3-8b").context
    assert own is not None
    assert sx.analyze("qwen3-8b").facts[0].context == own


def test_bad_questions() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'full'"):
        sx.judge("fulll", TASK)
    with pytest.raises(SizeError, match="size n is missing"):
        sx.judge("full", "eva")
    for models in ((), ("full",)):
        with pytest.raises(SizeError, match="at least two"):
            sx.compare(*models)
    with pytest.raises(SizeError, match="context is 0"):
        sx.analyze("full", 0)
    with pytest.raises(SizeError, match="no unit"):
        sx.design("eva:V=64", cache="8", context=64)
    with pytest.raises(UnknownNameError, match="Did you mean 'layers'"):
        sx.design("eva:V=64", cache="1MiB", layer=8)
    with pytest.raises(UnknownNameError, match="first arguments") as told:
        sx.design(cache="1MiB", task="eva:V=64")
    assert "*" not in str(told.value)
    for odd in (None, 5, b"full", ["full"], {"model_type": "llama"}, sx.analyze("full", 64)):
        with pytest.raises(SpecError, match="names no stack"):
            sx.compare("full", odd)  # type: ignore[arg-type]
        with pytest.raises(SpecError, match="names no task"):
            sx.judge("full", odd)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="names no task"):
        sx.construct(5)  # type: ignore[arg-type]


def test_a_path_and_a_context_as_people_write_it(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(PRESETS["qwen3-8b"]["config"]), encoding="utf-8")
    shown = sx.analyze(file, "4k")
    assert shown.facts[0].context == 4096
    assert shown.facts[0].table == sx.analyze("qwen3-8b", 4096).facts[0].table
    with pytest.raises(SizeError, match="'many'"):
        sx.analyze(file, "many")


def test_a_line_of_several_cards_says_what_each_answers() -> None:
    said = repr(sx.compare("full*2", "gdn @ head_dim=8", context=100_000))
    assert "token SOLVABLE, " in said
    assert "token FAILS, " in said
    assert "has room" in repr(sx.analyze("full", 1))


def test_a_data_frame_needs_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        sx.analyze("full", 64).to_frame()


def test_weights_are_written_for_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    built = sx.construct("eva:n=4,V=4", "gdn + full @ heads=1, head_dim=8")
    assert repr(built).startswith("retrieval: eva:n=4,V=4 ")
    assert "exact for every" in str(built)
    assert built._repr_html_().startswith('<div class="separatrix">')
    assert built.to_json()["record"] == built.record.envelope()
    assert [row["layer"] for row in built.rows()] == [1]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        built.to_frame()
    with pytest.raises(UnknownNameError, match="Did you mean 'full'"):
        sx.construct("eva:n=4,V=4", "ful")


def test_a_frame_has_a_row_for_each_verdict() -> None:
    pandas = pytest.importorskip("pandas")
    frame = sx.judge(STACK, TASK).to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert next(iter(frame["status"])) == "FAILS"


def test_searches_and_checks_take_texts_too(tmp_path: Path) -> None:
    found = sx.refute("linear @ heads=1, head_dim=2, p3", "eva:n=8", budget=600)
    assert isinstance(found, sx.Certificate)
    assert repr(found) == f"certificate {found.digest[:12]}: {found.architecture} on {found.task}"
    assert sx.verify(found).record is found
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(found.envelope()), encoding="utf-8")
    assert len(sx.verify_path(str(file))) == 1
    assert sx.build("gdn*2", "eva:n=8").architecture == sx.Architecture.parse("gdn*2")
    assert sx.card("gdn*2", 64) == sx.card(sx.Architecture.parse("gdn*2"), 64)
    assert len(sx.export("eva:n=8", format="jsonl", out=str(tmp_path / "new")).paths) > 1
    for odd in (None, 5):
        with pytest.raises(SpecError, match="names no stack"):
            sx.refute(odd, TASK)  # type: ignore[arg-type]
        with pytest.raises(SpecError, match="names no task"):
            sx.refute("full", odd)  # type: ignore[arg-type]
        with pytest.raises(SpecError, match="names no task"):
            sx.export(odd, format="jsonl", out=tmp_path / "odd")  # type: ignore[arg-type]
        with pytest.raises(SpecError, match="names no task"):
            sx.audit(odd)  # type: ignore[arg-type]
    for odd in (None, True, float("nan"), 0, "64"):
        with pytest.raises(SizeError, match="context"):
            sx.card("full", odd)  # type: ignore[arg-type]
        with pytest.raises(EvidenceError, match="verify_path"):
            sx.verify(odd)  # type: ignore[arg-type]


def test_one_choice_may_stand_without_a_tuple() -> None:
    limits = {"cache": "1MiB", "context": 64}
    one = sx.design("eva:V=64", layers=2, bounded="gdn", places="end", states=64, **limits)
    several = {"layers": (2,), "bounded": ("gdn",), "places": ("end",), "states": (64,)}
    assert one.to_json() == sx.design("eva:V=64", **several, **limits).to_json()
