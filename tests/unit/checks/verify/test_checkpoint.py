"""The files for transformers beside a construction, checked with it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from separatrix.checks.verify import verify_path
from separatrix.cli.main import run
from separatrix.constructions import construct
from separatrix.constructions.parts.built import built, proved_in
from separatrix.core.errors import CannotCheck, CheckFailed, EvidenceError, SizeError
from separatrix.models.model import Model
from separatrix.models.stock import stock_checkpoint
from separatrix.tasks import parse_task


@pytest.fixture(params=[None, "gpt2", "llama"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    out = tmp_path / "m"
    asked = ["--format", request.param] if request.param else []
    assert run(["construct", "eva:n=4,V=4", "--out", str(out), *asked]) == 0
    return out


def test_what_was_written_holds_and_another_description_does_not(folder: Path) -> None:
    (checked,) = verify_path(folder)
    assert any(
        "config.json describes this model" in c or "bit for bit" in c for c in checked.checks
    )
    path = folder / "config.json"
    data = json.loads(path.read_text())
    size = {"separatrix": "answers", "gpt2": "vocab_size", "llama": "vocab_size"}
    data[size[data["model_type"]]] += 1
    path.write_text(json.dumps(data))
    with pytest.raises(CheckFailed, match=r"config\.json"):
        verify_path(folder)


def test_a_checkpoint_whose_description_was_taken_away_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    if (folder / "model.safetensors").exists():
        with pytest.raises(CheckFailed, match=r"model\.safetensors"):
            verify_path(folder)
    else:
        # nothing is left that transformers loads
        verify_path(folder)


@pytest.mark.parametrize("stock", ["gpt2", "llama"])
def test_a_changed_checkpoint_is_refused(stock: str, tmp_path: Path) -> None:
    out = tmp_path / "m"
    assert run(["construct", "eva:n=4,V=4", "--out", str(out), "--format", stock]) == 0
    path = out / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-2] ^= 8
    path.write_bytes(bytes(data))
    with pytest.raises(CheckFailed, match="it was changed"):
        verify_path(out)
    path.write_bytes(bytes(data[:-8]))
    with pytest.raises(CannotCheck, match=r"model\.safetensors"):
        verify_path(out)


def test_an_unknown_format_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["construct", "eva:n=4,V=4", "--out", str(tmp_path / "m"), "--format", "lama"]
    assert run(asked) == 2
    assert "lama" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def positions_far_away(model: Model) -> None:
    """Columns of positions times 2^40, what reads them times 2^-40: a norm is the identity no
    more.
    """
    own = (model.position.weight != 0).any(0) & ~(model.embed.weight != 0).any(0)
    assert own.any()
    model.position.weight[:, own] *= 2.0**40
    block = model.blocks[0]
    for name in ("mixers.0.q", "mixers.0.k", "mixers.0.v", "mlp.up"):
        block.get_parameter(f"{name}.weight")[:, own] *= 2.0**-40


def tokens_far_away(model: Model) -> None:
    """The same of the columns of tokens."""
    own = (model.embed.weight != 0).any(0) & ~(model.position.weight != 0).any(0)
    assert own.any()
    model.embed.weight[:, own] *= 2.0**40
    block = model.blocks[0]
    for name in ("mixers.0.q", "mixers.0.k", "mixers.0.v", "mlp.up"):
        block.get_parameter(f"{name}.weight")[:, own] *= 2.0**-40


def logits_below_no_answer(model: Model) -> None:
    """Every logit less by 2^21: what is no answer has a larger one."""
    model.head.bias.sub_(2.0**21)


def gates_too_small(model: Model) -> None:
    """Hidden units times 2^-45, outputs times 2^45: gates are soft so near to 0."""
    for block in model.blocks:
        for name, power in (("up.weight", -45), ("up.bias", -45), ("down.weight", 45)):
            block.get_parameter(f"mlp.{name}").mul_(2.0**power)


FORGERIES = [
    ("llama", "eva:n=9,V=5", positions_far_away),
    ("llama", "eva:n=9,V=5", logits_below_no_answer),
    ("llama", "seqcomp:L=1,m=4", gates_too_small),
    ("gpt2", "eva:n=9,V=5", positions_far_away),
    ("gpt2", "eva:n=9,V=5", logits_below_no_answer),
]


@pytest.mark.parametrize(("stock", "spec", "forge"), FORGERIES)
def test_a_proved_model_whose_checkpoint_is_wrong_is_refused(
    stock: str, spec: str, forge: Callable[[Model], None], tmp_path: Path
) -> None:
    """Everything fits: the proof holds of the weights, and the checkpoint is made of them."""
    task = parse_task(spec)
    honest = construct(task)
    model = honest.model
    forge(model)
    forged = built(task, model, name=honest.record.name)
    forged.save(tmp_path)
    assert verify_path(tmp_path)
    stock_checkpoint(model, stock).save(tmp_path)
    with pytest.raises(CheckFailed, match=f"as {stock} is answered"):
        verify_path(tmp_path)


@pytest.mark.parametrize("stock", ["gpt2", "llama"])
def test_tokens_that_no_norm_leaves_alone_are_not_written(stock: str) -> None:
    """Norms are the identity for embeddings below 2^17 only."""
    model = construct(parse_task("eva:n=9,V=5")).model
    tokens_far_away(model)
    with pytest.raises(SizeError, match=f"{stock}.*{2**17}"):
        stock_checkpoint(model, stock)


@pytest.mark.parametrize("stock", ["gpt2", "llama"])
def test_a_checkpoint_is_said_to_be_tested_and_not_proved(stock: str, tmp_path: Path) -> None:
    out = tmp_path / "m"
    assert run(["construct", "eva:n=4,V=4", "--out", str(out), "--format", stock]) == 0
    (checked,) = verify_path(out)
    # 4^5 prompts
    assert any("1,024 inputs, not proved" in said for said in checked.checks)


FILES = {
    "generation_config.json": '{"suppress_tokens": [1]}',
    "adapter_config.json": "{}",
    "model.safetensors.index.json": "{}",
    "tokenizer.json": "{}",
    "modeling.py": "",
}


@pytest.mark.parametrize("name", FILES)
def test_a_further_file_is_refused(folder: Path, name: str) -> None:
    verify_path(folder)
    for harmless in ("README.md", ".gitattributes"):
        (folder / harmless).write_text("a note")
    verify_path(folder)
    (folder / name).write_text(FILES[name])
    with pytest.raises(CheckFailed, match=name):
        verify_path(folder)


FIELDS: dict[str, object] = {
    "dtype": "bfloat16",
    "torch_dtype": "bfloat16",
    "quantization_config": {"load_in_8bit": True},
    "auto_map": {"AutoModelForCausalLM": "modeling.Model"},
    "suppress_tokens": [1],
    "architectures": [],
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_the_description_is_refused(folder: Path, field: str) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: FIELDS[field]}))
    with pytest.raises(CheckFailed, match=r"config\.json: (edited|is not what)"):
        verify_path(folder)


def test_a_format_that_is_proved_may_be_loaded(tmp_path: Path) -> None:
    built_in = proved_in(construct(parse_task("eva:n=4,V=4")), ["bf16"])
    built_in.save(tmp_path)
    path = tmp_path / "config.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"dtype": "bfloat16"}))
    verify_path(tmp_path)
    path.write_text(json.dumps(data | {"dtype": "float16"}))
    with pytest.raises(CheckFailed, match="it is proved in bfloat16, float32"):
        verify_path(tmp_path)


def test_a_description_that_is_no_plain_file_is_refused(folder: Path) -> None:
    path = folder / "config.json"
    kept = path.read_bytes()
    path.unlink()
    path.symlink_to(folder / "elsewhere.json")
    with pytest.raises(CannotCheck, match="a link"):
        verify_path(folder)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CannotCheck, match="no file"):
        verify_path(folder)
    path.unlink()
    path.write_bytes(b"\xff" + kept)
    with pytest.raises(EvidenceError, match="not a text file"):
        verify_path(folder)


@pytest.mark.parametrize("name", ["evidence.json", "certificate.json"])
def test_evidence_beside_a_construction_hides_nothing(folder: Path, name: str) -> None:
    (folder / name).write_bytes((folder / "construction.json").read_bytes())
    (folder / "config.json").write_text("{}")
    with pytest.raises(CheckFailed):
        verify_path(folder)
