"""The files for transformers beside a construction, checked with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from separatrix.cli.main import run
from separatrix.core.errors import CannotCheck, CheckFailed


@pytest.fixture(params=[None, "gpt2", "llama"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    out = tmp_path / "m"
    asked = ["--format", request.param] if request.param else []
    assert run(["construct", "eva:n=4,V=4", "--out", str(out), *asked]) == 0
    return out


def test_what_was_written_holds_and_another_description_does_not(folder: Path) -> None:
    from separatrix.checks.verify import verify_path

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


@pytest.mark.parametrize("stock", ["gpt2", "llama"])
def test_a_changed_checkpoint_is_refused(stock: str, tmp_path: Path) -> None:
    from separatrix.checks.verify import verify_path

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
