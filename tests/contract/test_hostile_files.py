"""Files of a stranger: every one gives one clear line, soon, and a fitting exit code."""

from __future__ import annotations

import errno
import json
import os
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.outcomes import singly

import separatrix as sx
from separatrix.checks.refute import refute
from separatrix.checks.verify import Checked, verify, verify_path
from separatrix.cli.main import main, run
from separatrix.constructions import construct
from separatrix.core.errors import (
    CannotCheck,
    CheckFailed,
    EvidenceError,
    SeparatrixError,
    printable,
)
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.records import Certificate, Evidence, Measurement, Verdict
from separatrix.core.evidence.typed import parse_json
from separatrix.core.numbers.wilson import wilson
from separatrix.models.model import Model
from separatrix.models.stored.run import Run
from separatrix.tasks import parse_task
from separatrix.training.alone import measurement

EVA = parse_task("eva:n=4,V=4")
SMALL = "full @ heads=1, head_dim=4"


@cache
def measured() -> Measurement:
    run = Run(
        architecture=SMALL,
        task="parity:n=8",
        seed=0,
        steps=30,
        batch=40,
        width=8,
        hidden=4,
        tested=100,
        curriculum=("n=4@5",),
        longer=("n=12",),
    )
    # places for the longest prompt
    longest = parse_task("parity:n=12")
    parameters = sum(
        p.numel() for p in sx.build(_stack(SMALL), longest, width=8, hidden=4).parameters()
    )
    outcomes = [
        singly(
            seed=s,
            correct=90 + s,
            tested=100,
            longer=(50 + s,),
            steps_done=30,
            parameters=parameters,
        )
        for s in (0, 1)
    ]
    return measurement(run, outcomes)


@cache
def certified() -> Certificate:
    found = refute(_stack("linear @ heads=1, head_dim=1, p2"), EVA, budget=600, seed=1)
    assert isinstance(found, Certificate)
    return found


@cache
def judged() -> Verdict:
    return sx.judge(_stack("linear @ heads=1, head_dim=1"), parse_task("eva:n=64,V=64"))[0]


def _stack(spec: str) -> sx.Architecture:
    return sx.Architecture.parse(spec)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "record.json"
    path.write_text(text)
    return path


def hashed(kind: str, body: Any) -> str:
    """An envelope with a fitting hash, whatever stands in it."""
    inner = json.dumps({"kind": kind, "body": body}, sort_keys=True, separators=(",", ":"))
    envelope = {"separatrix": 1, "kind": kind, "sha256": sha256(inner), "body": body}
    return json.dumps(envelope)


def refusal(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    found = run(["verify", *arguments])
    out, err = capsys.readouterr()
    assert (found, out) == (code, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert err[:-1].isprintable()
    assert len(err) < 2_100
    return err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"log2_n": null', '"log2_n": null, "log2_n": null', "stands twice"),
        ('"theorem": "I"', '"theorem": "II", "theorem": "I"', "stands twice"),
        ('"cache_bits": ', '"cache_bits": NaN, "x": ', "NaN"),
        ('"cache_bits": ', '"cache_bits": -Infinity, "x": ', "-Infinity"),
        ('"cache_bits": ', '"cache_bits": 1e400, "x": ', "1e400"),
        ('"cache_bits": ', f'"cache_bits": {"9" * 1001}, "x": ', "digits"),
        ('"numbers": {', '"numbers": {"a": ' + "[" * 600 + "]" * 600 + ", ", "nested too deeply"),
        ('"source": "', '"source": "\\ud800', "half a character"),
    ],
)
def test_json_that_two_readers_may_read_differently(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, old: str, new: str, said: str
) -> None:
    text = json.dumps(judged().envelope())
    assert text.count(old) == 1
    verify_path(written(tmp_path, text))
    assert said in refusal(capsys, 2, str(written(tmp_path, text.replace(old, new))))


def test_a_bundle_nested_600_deep(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    body: Any = {"records": {}}
    for _ in range(600):
        body = {"records": {}, "x": body}
    assert "nested" in refusal(capsys, 2, str(written(tmp_path, hashed("bundle", body))))


def test_the_same_object_is_read_as_ever() -> None:
    assert parse_json('{"a": [1, 2.5, "\\u00e9\\ud83d\\ude00", null, true]}') == {
        "a": [1, 2.5, "é😀", None, True]
    }


def _budget(**entries: Any) -> Measurement:
    return replace(measured(), budget=measured().budget | entries)


@each(
    "name, value",
    [
        ("parameters", -5),
        ("parameters", 10**40),
        ("parameters", "many"),
        ("learning_rate", "none"),
        ("learning_rate", 0),
        ("learning_rate", True),
        ("weight_decay", -1.0),
        ("stop_at", None),
        ("steps", "10"),
        ("steps", 10**40),
        ("steps", 9),
        ("batch", 0),
        ("width", 7),
        ("width", 8.0),
        ("hidden", -1),
        ("hidden", [4]),
        ("optimiser", "SGD"),
        ("steps_done", [30]),
        ("steps_done", [30, 30.0]),
        ("steps_done", 30),
        ("stopped", ["steps"]),
        ("stopped", [["steps"], "steps"]),
        ("schedule", {}),
        ("precision", "fp16"),
        ("plateau", 10**40),
        ("seconds", float("nan")),
        ("curriculum", ["n=4@5"] * 100_000),
        ("curriculum", [f"n={10**40}@5"]),
        ("curriculum", ["n=4@" + "9" * 100_000]),
        ("longer", ["n=12", "n=14"]),
        ("longer", ["n=999999999999"]),
    ],
)
def test_a_budget_that_is_impossible(name: str, value: Any) -> None:
    verify(measured(), folder=Path())
    with pytest.raises(CheckFailed, match="does not hold"):
        verify(_budget(**{name: value}), folder=Path())


def test_one_parameter_more_than_the_model_has() -> None:
    with pytest.raises(CheckFailed, match="the model trained has"):
        verify(_budget(parameters=measured().budget["parameters"] + 1), folder=Path())


def test_tests_and_seeds_that_are_impossible() -> None:
    many = 10**40
    interval = (wilson(many - 1, many), wilson(many, many))
    tests = replace(_budget(tested=many), total=many, correct=(many - 1, many), intervals=interval)
    for record, said in [
        (tests, "at most 10"),
        (replace(measured(), seeds=(0, -1)), "seeds"),
        (replace(measured(), seeds=(0, 10**30)), "seed 1000"),
    ]:
        with pytest.raises(CheckFailed, match=said):
            verify(record, folder=Path())


COSTLY = {
    "many layers": ("gdn*10000 @ heads=1, head_dim=1", {}),
    "a wide model": (SMALL, {"width": 10**6, "hidden": 10**6}),
}


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever builds a model fails, once the certificate that is changed has been made."""
    certified()

    def refuse(*_: object) -> None:
        raise AssertionError("a model was built")

    monkeypatch.setattr(Model, "__init__", refuse)


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("case", COSTLY)
def test_a_file_that_would_cost_too_much(case: str) -> None:
    """Refused before anything is built, with the estimate, the limit and what raises it."""
    spec, sizes = COSTLY[case]
    record = replace(_budget(**sizes), architecture=_stack(spec).spec)
    if case == "a wide model":
        model = certified().model | {"width": 10**6, "hidden": 10**6}
        record = replace(certified(), model=model)
    with pytest.raises(CannotCheck, match=r"GiB .*--budget [0-9,]+"):
        verify(record, folder=Path())


@pytest.mark.usefixtures("no_model")
def test_a_costly_model_inside_a_cheap_record() -> None:
    model = certified().model | {"architecture": _stack("gdn*10000").spec}
    with pytest.raises(CheckFailed, match="the model inside is"):
        verify(replace(certified(), model=model), folder=Path())


def test_costly_states_and_tables() -> None:
    """Taylor features of 14 kB of weights, and a table of all pairs modulo a large M."""
    spec = _stack("linear(feature=taylor) @ heads=1, head_dim=1200").spec
    model = certified().model | {"architecture": spec}
    with pytest.raises(CannotCheck, match="the limit is"):
        verify(replace(certified(), architecture=spec, model=model), folder=Path())
    record = construct(parse_task("twosum:n=8,M=9,form=query")).record
    large = replace(record, task="twosum:n=8,M=500000,form=query")
    with pytest.raises(CannotCheck, match="the limit is"):
        verify(large, folder=Path())
    # more is allowed to whoever says so; then the record is checked, and is not what it says
    with pytest.raises(CheckFailed, match="M=500000"):
        verify(large, folder=Path(), budget=1000)


@each("budget", [0, -1, float("nan"), float("inf"), "10", True])
def test_a_budget_is_a_positive_number(budget: Any) -> None:
    with pytest.raises(SeparatrixError, match="positive"):
        verify(judged(), folder=Path(), budget=budget)


def test_the_option_raises_the_limit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(written(tmp_path, json.dumps(certified().envelope())))
    assert "the limit is" in refusal(capsys, 2, path, "--budget", "0.00001")
    assert run(["verify", path, "--budget", "2"]) == 0
    assert "holds: 1 certificate" in capsys.readouterr().out


def _built(folder: Path) -> Path:
    construct(EVA).save(folder)
    return next(folder.glob("*.safetensors"))


def test_weights_that_are_no_plain_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    weights = _built(tmp_path)
    data = weights.read_bytes()
    verify_path(tmp_path)
    weights.unlink()
    assert "cannot be read" in refusal(capsys, 2, str(tmp_path))
    other = tmp_path / "other"
    other.write_bytes(data)
    weights.symlink_to(other)
    assert "a link" in refusal(capsys, 2, str(tmp_path))
    weights.unlink()
    weights.symlink_to("/dev/zero")
    assert "a link" in refusal(capsys, 2, str(tmp_path))
    weights.unlink()
    os.mkfifo(weights)
    assert "a pipe" in refusal(capsys, 2, str(tmp_path))
    weights.unlink()
    weights.mkdir()
    assert "directory" in refusal(capsys, 2, str(tmp_path))
    weights.rmdir()
    weights.write_bytes(data[: len(data) // 2])
    assert "cut off" in refusal(capsys, 2, str(tmp_path))
    weights.write_bytes(data + bytes(1 << 20))
    assert "cut off" in refusal(capsys, 2, str(tmp_path))
    # of the right size, with one number changed: the claim is not true of it
    weights.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "does not hold" in refusal(capsys, 1, str(tmp_path))


def test_paths_that_hold_no_evidence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.json").write_text(json.dumps(judged().envelope())[:-9])
    for name, said in [
        ("pipe", "pipe"),
        ("loop", "cannot be read"),
        ("empty", "a folder without"),
        ("cut.json", "cut off"),
        ("cut.json/inner", "cannot be read"),
        ("missing", "no such file"),
        ("x" * 300, "cannot be read"),
    ]:
        assert said in refusal(capsys, 2, str(tmp_path / name))
    assert "a device" in refusal(capsys, 2, "/dev/null")


ODD = "\x1b[31mred\x1b]0;title\x07\u202edesrever\u2066\x9b\x00\r\x7f\u200b"


def test_texts_of_a_file_reach_no_terminal_raw(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    verdict = judged()
    for record in (
        replace(verdict, architecture=ODD),
        replace(verdict, task=ODD),
        replace(verdict, theorem=ODD),
        replace(verdict, statement=ODD),
        replace(certified(), cache_format=ODD),
        replace(certified(), model=certified().model | {"architecture": ODD}),
        replace(certified(), details={ODD: 1}),
        replace(measured(), chance=ODD),
    ):
        path = str(written(tmp_path, json.dumps(record.envelope())))
        refusal(capsys, 1, path)
    noted = replace(verdict, notes=(ODD, "plain"))
    assert run(["verify", str(written(tmp_path, json.dumps(noted.envelope())))]) == 0
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.split("\n"))
    assert "\\x1b[31mred" in out
    assert "\\u202e" in out
    assert printable("é 漢\nx") == "é 漢\nx"


def test_a_note_adds_no_line_to_what_was_checked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    note = "kind\n  - every weight was checked\nholds: 7 constructions"
    record = replace(judged(), notes=(note,))
    assert run(["verify", str(written(tmp_path, json.dumps(record.envelope())))]) == 0
    out = capsys.readouterr().out
    assert "holds: 7" in out
    lines = [line for line in out.split("\n") if line.startswith(("holds", "  - every"))]
    assert lines == ["holds: 1 verdict"]


def test_counts_of_a_training_are_said_to_be_unchecked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Whatever they are: nothing here trains."""
    record = replace(measured(), correct=(100, 100), intervals=(wilson(100, 100),) * 2)
    assert run(["verify", str(written(tmp_path, json.dumps(record.envelope())))]) == 0
    assert "  - not checked: " in capsys.readouterr().out


def test_an_error_of_the_program_is_no_claim_that_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Python exits with 1 where nothing catches an error."""
    path = written(tmp_path, json.dumps(judged().envelope()))
    monkeypatch.setattr(sys, "argv", ["separatrix", "verify", str(path)])
    for error, code in ((ValueError("a mistake"), 70), (OSError(errno.ENOSPC, "full"), 2)):
        monkeypatch.setattr("separatrix.cli.commands.evidence.bar", _raises(error))
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == code
        assert capsys.readouterr().out == ""


def _raises(error: Exception) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_a_large_file_takes_no_more_memory_than_the_limit(tmp_path: Path) -> None:
    """30 MB of empty lists in each other took 2 GiB."""
    path = tmp_path / "record.json"
    with path.open("wb") as file:
        file.truncate(60 << 20)
    with pytest.raises(CannotCheck, match="4 GiB"):
        verify_path(path)


def test_a_mixer_of_ones_own_that_is_not_imported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    record = replace(measured(), architecture="my_mixer @ heads=1")
    said = refusal(capsys, 2, str(written(tmp_path, json.dumps(record.envelope()))))
    assert "--import" in said
    assert "my_mixer" in said
    assert "does not hold" not in said


def test_a_grid_of_another_format_than_the_stack_declares() -> None:
    """The same collision in a stack that declares float32 says nothing of that stack."""
    record = certified()
    verify(record, folder=Path())
    for spec in ("linear @ heads=1, head_dim=1", "linear @ heads=1, head_dim=1, p3"):
        other = _stack(spec).spec
        model = record.model | {"architecture": other}
        with pytest.raises(CheckFailed, match="about another stack"):
            verify(replace(record, architecture=other, model=model), folder=Path())


def test_a_search_with_a_format_is_about_the_stack_that_declares_it() -> None:
    found = refute(_stack("linear @ heads=1, head_dim=1"), EVA, cache_format="p2", budget=600)
    assert isinstance(found, Certificate)
    assert found.architecture == _stack("linear(state_format=p2) @ heads=1, head_dim=1").spec
    verify(found, folder=Path())


def test_construct_writes_a_new_folder_or_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "made" / "model"
    assert run(["construct", "eva:n=4,V=4", "--out", str(out)]) == 0
    before = sorted((path.name, path.read_bytes()) for path in out.iterdir())
    capsys.readouterr()
    assert run(["construct", "eva:n=8,V=4", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "exists already" in said
    assert sorted((path.name, path.read_bytes()) for path in out.iterdir()) == before

    def full(*_: Any) -> None:
        raise sx.SeparatrixError("no space left")

    monkeypatch.setattr("separatrix.constructions.parts.built.write_atomic", full)
    assert run(["construct", "eva:n=4,V=4", "--out", str(tmp_path / "other")]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**40,
    2**63,
    1e308,
    -0.5,
    "",
    ODD,
    "p3",
    "gdn*10000",
    "eva:n=1000000000000,V=2",
    [],
    [[]],
    [None, 1],
    {},
    {"a": [1]},
    "x" * 10_000,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a value, weights and long lists by their first two entries."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key in list(value)[:40]:
            found += _places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(2, len(value))):
            found += _places(value[index], (*path, index))
    return found


def fuzzed(record: Evidence, path: tuple[Any, ...], value: Any) -> str:
    body = json.loads(canonical(record.body()))
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return hashed(record.kind, body)


def refused_or_true(text: str, record: Evidence, folder: Path) -> bool:
    """Whether a file was refused, with an error of this package; else it says what is true."""
    (folder / "fuzzed.json").write_text(text)
    found: Checked | SeparatrixError
    try:
        (found,) = verify_path(folder / "fuzzed.json")
    except SeparatrixError as error:
        found = error
    if isinstance(found, SeparatrixError):
        said = found
        assert isinstance(said, EvidenceError)
        assert "\n" not in str(said)
        assert str(said).isprintable()
        return True
    # notes are not checked, and said to be so; a learning rate is any possible one; another
    # prompt may be answered wrongly just as well, and is checked as it stands
    again, before = found.record.body(), record.body()
    odd = {name for name in before if canonical(again[name]) != canonical(before[name])}
    assert odd <= {"notes", "seeds", "budget", "inputs"}, odd
    if "budget" in odd:
        changed = again["budget"]
        names = {name for name in changed if changed[name] != before["budget"][name]}
        assert names <= {"learning_rate", "weight_decay", "stop_at", "seconds", "plateau"}
    return False


@pytest.mark.parametrize("kind", ["verdict", "construction", "certificate", "measurement"])
@pytest.mark.parametrize("tries", [25, pytest.param(4_000, marks=pytest.mark.slow)])
def test_any_field_of_any_record_with_any_value(kind: str, tries: int, tmp_path: Path) -> None:
    record: Evidence = {
        "verdict": judged,
        "construction": lambda: construct(EVA).record,
        "certificate": certified,
        "measurement": measured,
    }[kind]()
    if kind == "construction":
        _built(tmp_path)
        (tmp_path / "construction.json").unlink()
    places = _places(json.loads(canonical(record.body())))
    draw = random.Random(tries)
    cases = [(path, value) for path in places for value in WRONG]
    draw.shuffle(cases)
    refused = [
        refused_or_true(fuzzed(record, path, value), record, tmp_path)
        for path, value in cases[:tries]
    ]
    assert sum(refused) > 0.8 * len(refused)


@pytest.mark.parametrize("name", ["vocabulary", "length", "answers", "width", "hidden"])
@pytest.mark.parametrize("value", [10**400, 10**18, (1 << 40) + 1])
def test_a_size_beyond_any_model_is_refused_before_anything_is_estimated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, value: int
) -> None:
    built = construct(EVA)
    built.save_weights(tmp_path)
    for record in (built.record, certified()):
        told = replace(record, model=record.model | {name: value})
        path = written(tmp_path, canonical(told.envelope()))
        assert "an integer" in refusal(capsys, 1, str(path))
