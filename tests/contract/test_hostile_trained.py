"""A trained model's folder of a stranger: every damage and every edit gives one clear line."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save

import separatrix as sx
from separatrix.checks.verify import verify_path
from separatrix.cli.main import run
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.evidence.records import Measurement, enveloped, from_envelope
from separatrix.core.numbers.wilson import wilson, wilson_of_answers
from separatrix.training.alone import measurement

RUN = sx.Run(
    architecture="full @ heads=1, head_dim=4",
    task="eva:n=4,V=8",
    seed=1,
    steps=6,
    batch=16,
    width=8,
    hidden=0,
    tested=300,
    longer=("n=6",),
)


@pytest.fixture(scope="module", name="made")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "made"
    sx.train(RUN).save(folder)
    return folder


@pytest.fixture(scope="module", name="answered")
def _answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that gives several answers to a prompt, tested with rounded states, too."""
    folder = tmp_path_factory.mktemp("hostile") / "answered"
    several = replace(
        RUN,
        architecture="gdn @ heads=1, head_dim=4",
        task="mqar:input_seq_len=16,num_kv_pairs=2,vocab_size=8",
        longer=("input_seq_len=24",),
        formats=("bf16",),
    )
    sx.train(several).save(folder)
    return folder


@pytest.fixture(name="folder")
def _folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "folder"))


def refusal(capsys: pytest.CaptureFixture[str], codes: tuple[int, ...], *words: str) -> str:
    assert run(list(words)) in codes
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert err[:-1].isprintable()
    assert len(err) < 2_100
    return err


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the body of a file and makes its hash fit."""
    envelope = json.loads(path.read_text())
    change(envelope["body"])
    kind = envelope["kind"]
    envelope["sha256"] = sha256(canonical({"kind": kind, "body": envelope["body"]}))
    path.write_text(canonical(envelope))


def set_weights(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Other weights, with a hash that fits."""
    data = save(tensors)
    (folder / "model.safetensors").write_bytes(data)
    edit(folder / "training.json", lambda body: body.update(weights_sha256=sha256(data)))


def set_record(folder: Path, change: Callable[[Measurement], Measurement]) -> None:
    path = folder / "measurement.json"
    record = from_envelope(json.loads(path.read_text()))
    assert isinstance(record, Measurement)
    path.write_text(canonical(change(record).envelope()))


COMMANDS = (["verify"], ["refute", "--task", "eva:n=4,V=8"], ["task", "eva", "evaluate"])


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "training.json", "measurement.json"]
)
def test_half_a_folder(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / name).unlink()
    assert f"separatrix train`: {name}" in refusal(capsys, (2,), "verify", str(folder))


@pytest.mark.slow  # three commands on six damages of four files
@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "training.json", "measurement.json"]
)
def test_files_that_are_missing_cut_off_or_no_files(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / name
    data = path.read_bytes()

    def every(codes: tuple[int, ...]) -> list[str]:
        return [refusal(capsys, codes, *words, str(folder)) for words in COMMANDS]

    path.unlink()
    assert all(name in said for said in every((2,)))
    os.mkfifo(path)
    assert all("a pipe" in said for said in every((2,)))
    path.unlink()
    path.symlink_to("/dev/zero")
    assert all("a link" in said for said in every((2,)))
    path.unlink()
    for damaged in (b"", data[: len(data) // 2], b"[" * 5_000, b"\xff" * len(data)):
        path.write_bytes(damaged)
        assert all(name in said for said in every((1, 2)))
    path.write_bytes(data)
    assert verify_path(folder)


@pytest.mark.parametrize("name", ["training.json", "measurement.json"])
def test_an_edit_breaks_the_hash(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / name
    text = path.read_text()
    assert text.count('"batch":16') == 1
    path.write_text(text.replace('"batch":16', '"batch":17'))
    for words in COMMANDS:
        said = refusal(capsys, (2,), *words, str(folder))
        assert "edited or damaged" in said


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("batch", 17, marks=pytest.mark.slow),
        ("steps", 7),
        ("seed", 2),
        ("learning_rate", 0.1),
        ("optimiser", "adamw"),
        ("architecture", "linear @ head_dim=4, heads=1"),
        ("task", "eva:n=5,V=8"),
        ("longer", []),
        ("curriculum", ["n=2@3"]),
        ("steps", None),
        ("width", 10**12),
        ("unknown", 1),
    ],
)
def test_a_run_that_is_not_the_records(
    field: str, value: object, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(folder / "training.json", lambda body: body["run"].update({field: value}))
    assert "training.json" in refusal(capsys, (1,), "verify", str(folder))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("correct", 299),
        ("steps_done", 5),
        ("parameters", 7),
        ("stopped", "solved"),
        ("longer", [1]),
        ("longer_due", []),
        ("longer_right", [1, 2]),
        ("right", 0),
        ("due", 299),
        ("bits", 1e-3),
        ("bits", -1),
        ("formats", {}),
        ("formats", [{"format": "bf16", "correct": 1, "right": 1, "due": 1, "bits": 1.0}]),
        ("seed", 3),
        ("status", "diverged"),
        ("tested", 299),
        ("seconds", -1),
        ("seconds", "long"),
        ("unknown", 1),
    ],
)
def test_an_outcome_that_is_not_the_records(
    field: str, value: object, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(folder / "training.json", lambda body: body["outcome"].update({field: value}))
    said = refusal(capsys, (1,), "verify", str(folder))
    # of single answers the record says nothing where each prompt has one: the weights tell
    assert "training.json" in said or (field in ("right", "due", "bits") and "recorded" in said)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("architecture", "linear @ head_dim=4, heads=1"),
        ("width", 1 << 39),
        *(
            pytest.param(*entry, marks=pytest.mark.slow)
            for entry in (
                ("architecture", "\x1b[31mred\u202e"),
                ("vocabulary", 9),
                ("answers", 7),
                ("length", 3),
                ("length", 1 << 40),
                ("width", 16),
                ("hidden", 1 << 40),
                ("hidden", True),
                ("norm", 1),
                ("bos", False),
            )
        ),
    ],
)
def test_descriptions_of_other_models(
    field: str, value: object, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    for words in COMMANDS:
        refusal(capsys, (1, 2), *words, str(folder))


@pytest.mark.slow
def test_weights_that_are_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "model.safetensors"
    data = path.read_bytes()
    whole = load(data)
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "changed or damaged" in refusal(capsys, (1,), "verify", str(folder))
    for value in (float("nan"), float("inf")):
        bad = whole | {"head.bias": torch.full_like(whole["head.bias"], value)}
        set_weights(folder, bad)
        assert "not finite" in refusal(capsys, (1,), "verify", str(folder))
    set_weights(folder, {name: t for name, t in whole.items() if name != "head.bias"})
    refusal(capsys, (1, 2), "verify", str(folder))
    set_weights(folder, whole | {"head.bias": whole["head.bias"].half()})
    refusal(capsys, (1, 2), "verify", str(folder))
    # weights of the right shapes that answer something else: the count tells
    set_weights(folder, whole | {"head.weight": -whole["head.weight"]})
    assert "and not" in refusal(capsys, (1,), "verify", str(folder))
    set_weights(folder, whole)
    assert verify_path(folder)


def test_a_count_that_the_weights_do_not_have(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All files agree with each other, every hash fits: only running the weights tells."""

    def one_more(record: Measurement) -> Measurement:
        right = record.correct[0] + 1
        return replace(record, correct=(right,), intervals=(wilson(right, record.total),))

    set_record(folder, one_more)
    right = json.loads((folder / "measurement.json").read_text())["body"]["correct"][0]
    edit(folder / "training.json", lambda body: body["outcome"].update(correct=right))
    assert f"and not {right}" in refusal(capsys, (1,), "verify", str(folder))


def test_a_count_at_a_longer_size_that_the_weights_do_not_have(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_more(record: Measurement) -> Measurement:
        right = record.longer[0]["correct"][0] + 1
        said = {"correct": [right], "intervals": [list(wilson(right, record.total))]}
        return replace(record, longer=(record.longer[0] | said,))

    set_record(folder, one_more)
    body = json.loads((folder / "measurement.json").read_text())["body"]
    counts = body["longer"][0]["correct"]
    edit(folder / "training.json", lambda body: body["outcome"].update(longer=counts))
    assert "eva:n=6,V=8" in refusal(capsys, (1,), "verify", str(folder))


def test_single_answers_are_counted_again(answered: Path) -> None:
    (checked,) = verify_path(answered)
    record = checked.record
    assert isinstance(record, Measurement)
    assert [one.get("format") for one in record.answers] == [None, None, "bf16"]
    again = [said for said in checked.checks if "exactly as recorded" in said]
    # prompts and answers, of the task, of the longer size and with rounded states
    assert len(again) == 6
    assert "with states in bf16" in again[-1]


@pytest.mark.parametrize(
    ("place", "name", "changes"),
    [
        (0, "right", {}),
        (2, "format", {"formats": ["fp16"]}),
        *(
            pytest.param(*entry, {}, marks=pytest.mark.slow)
            for entry in (
                (0, "bits"),
                (0, "bits_squares"),
                (1, "right"),
                (2, "right"),
                (2, "bits"),
                (2, "correct"),
            )
        ),
    ],
)
def test_other_answers_than_the_outcomes(
    place: int,
    name: str,
    changes: dict[str, Any],
    answered: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The record alone is edited, so that its numbers belong together."""
    folder = Path(shutil.copytree(answered, tmp_path / "folder"))

    def another(record: Measurement) -> Measurement:
        entry = dict(record.answers[place])
        entry[name] = "fp16" if name == "format" else [entry[name][0] + 1]
        if name == "right":
            entry["intervals"] = [list(wilson_of_answers(entry["right"][0], entry["due"][0], 300))]
        answers = (*record.answers[:place], entry, *record.answers[place + 1 :])
        return replace(record, answers=answers, budget=record.budget | changes)

    set_record(folder, another)
    said = refusal(capsys, (1,), "verify", str(folder))
    assert "training.json" in said


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("bits", "answer, and not"),
        *(
            pytest.param(*entry, marks=pytest.mark.slow)
            for entry in (
                ("right", "answers due in the 300 test prompts"),
                ("longer_right", "answers due in the 300 test prompts of seed 1 of mqar"),
                ("formats", "with states in bf16"),
            )
        ),
    ],
)
def test_answers_that_the_weights_do_not_have(
    field: str, said: str, answered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All files agree with each other: only running the weights tells."""
    folder = Path(shutil.copytree(answered, tmp_path / "folder"))
    body = json.loads((folder / "training.json").read_text())["body"]
    outcome = body["outcome"]
    before = json.loads(json.dumps(outcome))
    if field == "formats":
        outcome["formats"][0]["right"] -= 20
    else:
        outcome[field] = {
            "right": outcome["right"] - 20,
            "longer_right": [outcome["longer_right"][0] - 20],
            "bits": outcome["bits"] + 0.01,
        }[field]
    assert outcome != before
    edit(folder / "training.json", lambda body: body.update(outcome=outcome))
    told = Outcome.from_json(outcome)
    run_told = sx.Run.from_json(body["run"])
    set_record(folder, lambda _: measurement(run_told, [told]))
    assert said in refusal(capsys, (1,), "verify", str(folder))


def test_other_evidence_in_the_record(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = sx.judge(sx.Architecture.parse("full"), sx.parse_task("eva:n=4,V=8"))[0]
    (folder / "measurement.json").write_text(canonical(verdict.envelope()))
    assert "holds a verdict" in refusal(capsys, (2,), "verify", str(folder))


def test_two_seeds_are_no_one_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    set_record(folder, lambda record: replace(record, seeds=(1, 2)))
    refusal(capsys, (1,), "verify", str(folder))


def test_what_a_hash_holds(folder: Path) -> None:
    body = json.loads((folder / "training.json").read_text())["body"]
    assert json.loads((folder / "training.json").read_text()) == enveloped("training", body)


@pytest.mark.parametrize(
    "words", [{"dtype": "bfloat16"}, {"transformers_weights": ".other.safetensors"}]
)
def test_words_for_transformers_without_the_type_of_a_model(
    words: dict[str, str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`SeparatrixForCausalLM.from_pretrained` follows them all the same."""
    path = folder / "config.json"
    data = json.loads(path.read_text())
    own = {k: v for k, v in data.items() if k not in ("model_type", "architectures", "dtype")}
    # as earlier versions wrote it
    path.write_text(json.dumps(own))
    assert verify_path(folder)
    path.write_text(json.dumps(own | words))
    assert "config.json: edited" in refusal(capsys, (1,), "verify", str(folder))


def test_a_certificate_beside_a_model_hides_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = folder / "certificate.json"
    words = ["--task", "eva:n=4,V=8", "--method", "wrong_answer", "--out", str(beside)]
    assert run(["refute", str(folder), *words]) == 0
    assert [one.record.kind for one in verify_path(folder)] == ["measurement", "certificate"]
    capsys.readouterr()
    set_record(folder, lambda record: replace(record, correct=(record.correct[0] + 1,)))
    assert verify_path(beside)
    assert "measurement" in refusal(capsys, (1,), "verify", str(folder))


def test_a_pipe_beside_a_model_is_not_waited_for(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(folder / "certificate.json")
    assert "certificate.json: a device or a pipe" in refusal(capsys, (2,), "verify", str(folder))


def test_a_code_version_writes_no_lines_of_its_own(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(folder / "training.json", lambda body: body.update(version="1\nholds: 1 construction"))
    assert run(["verify", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "'1 holds: 1 construction'" in " ".join(out.split())
    assert not any(line.startswith("holds: 1 c") for line in out.splitlines())
