"""The files for transformers beside a construction, checked with it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from separatrix.checks.verify import verify_path
from separatrix.cli.main import run
from separatrix.constructions import construct
from separatrix.constructions.parts.built import built, proved_in
from separatrix.core.errors import CannotCheck, CheckFailed, EvidenceError, SizeError
from separatrix.core.evidence.canonical import sha256
from separatrix.models.model import Model
from separatrix.models.stock import stock_checkpoint
from separatrix.proofs.arithmetic import arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory.judge import judge


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


@pytest.mark.parametrize("name", ["construction.json", "certificate.json", "evidence.json"])
def test_evidence_of_another_kind_says_nothing_of_a_model(folder: Path, name: str) -> None:
    """A verdict holds, whatever model it stands beside."""
    verdict, *_ = judge(Architecture.parse("full"), parse_task("eva:n=4,V=4"))
    (folder / "construction.json").unlink()
    (folder / name).write_text(json.dumps(verdict.envelope()))
    with pytest.raises(CheckFailed, match="no record"):
        verify_path(folder)
    for file in folder.iterdir():
        if file.name != name:
            file.unlink()
    verify_path(folder)


def test_an_adapter_needs_no_description_to_be_loaded(tmp_path: Path) -> None:
    construct(parse_task("eva:n=4,V=4")).save(tmp_path)
    (tmp_path / "config.json").unlink()
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "elsewhere"}')
    with pytest.raises(CheckFailed, match=r"adapter_config\.json"):
        verify_path(tmp_path)


def test_a_number_format_that_nothing_loads_is_told(tmp_path: Path) -> None:
    """Loaded in float32, weights that are proved in 50 bits answer wrongly at n = 20,000."""
    construct(parse_task("counting:n=9,V=2,form=ones"), arithmetic=arithmetic("p50")).save(tmp_path)
    (checked,) = verify_path(tmp_path)
    assert "loads it in float32" in checked.checks[-1]


Header = dict[str, dict[str, Any]]


def aliased(header: Header, numbers: bytes) -> bytes:
    header["head.bias"]["data_offsets"] = header["head.weight"]["data_offsets"]
    return packed(json.dumps(header), numbers)


def empty_tensor(header: Header, numbers: bytes) -> bytes:
    end = [len(numbers)] * 2
    header["more"] = {"dtype": "F32", "shape": [0], "data_offsets": end}
    return packed(json.dumps(header), numbers)


def integers(header: Header, numbers: bytes) -> bytes:
    return packed(json.dumps(header).replace("F32", "I32"), numbers)


def named_twice(header: Header, numbers: bytes) -> bytes:
    """Other numbers under a name that stands already, behind all others."""
    entry = header["head.weight"]
    first, last = entry["data_offsets"]
    again = entry | {"data_offsets": [len(numbers), len(numbers) + last - first]}
    text = json.dumps(header)[:-1] + f', "head.weight": {json.dumps(again)}}}'
    return packed(text, numbers + bytes(last - first))


def trailing(header: Header, numbers: bytes) -> bytes:
    return packed(json.dumps(header), numbers + bytes(8))


def minus_zeros(header: Header, numbers: bytes) -> bytes:
    found = np.frombuffer(numbers, "<f4").copy()
    found[found == 0] = -0.0
    return packed(json.dumps(header), found.tobytes())


def subnormal(header: Header, numbers: bytes) -> bytes:
    found = np.frombuffer(numbers, "<f4").copy()
    found[found == 0] = 1e-40
    return packed(json.dumps(header), found.tobytes())


def other_framework(header: Header, numbers: bytes) -> bytes:
    said = {"__metadata__": {"format": "tf", "quantization": "int8"}}
    return packed(json.dumps(said | header), numbers)


def escaped(header: Header, numbers: bytes) -> bytes:
    return packed(json.dumps(header).replace('"head', '"\\u0068ead'), numbers)


def packed(header: str, numbers: bytes) -> bytes:
    text = header.encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + numbers


Packing = Callable[[Header, bytes], bytes]
REFUSED: list[Packing] = [aliased, empty_tensor, integers, named_twice, trailing, subnormal]
SAME: list[Packing] = [minus_zeros, other_framework, escaped]


def packed_anew(folder: Path, edit: Packing) -> Model:
    """The construction of a folder, its file of weights edited, and a record that names the new
    one.
    """
    task = parse_task("eva:n=4,V=4")
    honest = construct(task)
    honest.save(folder)
    path = folder / honest.record.weights
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    data = edit(json.loads(data[8 : 8 + size]), data[8 + size :])
    path.unlink()
    name = f"retrieval-{sha256(data)[:12]}.safetensors"
    (folder / name).write_bytes(data)
    record = replace(honest.record, weights=name, weights_sha256=sha256(data))
    (folder / "construction.json").write_text(json.dumps(record.envelope()))
    text = (folder / "config.json").read_text().replace(honest.record.weights, name)
    (folder / "config.json").write_text(text)
    return honest.model


@pytest.mark.parametrize("edit", REFUSED)
def test_weights_that_two_readers_may_read_differently_are_refused(
    edit: Packing, tmp_path: Path
) -> None:
    packed_anew(tmp_path, edit)
    with pytest.raises(EvidenceError, match=r"safetensors|normal number"):
        verify_path(tmp_path)


@pytest.mark.parametrize("edit", SAME)
def test_the_same_weights_in_an_odd_file_hold_and_are_those(edit: Packing, tmp_path: Path) -> None:
    honest = packed_anew(tmp_path, edit)
    verify_path(tmp_path)
    found = load_file(next(tmp_path.glob("*.safetensors")))
    assert all(torch.equal(found[name], own) for name, own in honest.state_dict().items())
