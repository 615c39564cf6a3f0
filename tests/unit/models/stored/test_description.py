"""config.json of a model: for transformers, and without it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import separatrix as sx
from separatrix.core.errors import MissingExtraError, SpecError
from separatrix.models.stored.description import described_by, description


def test_a_construction_describes_its_model_and_names_its_weights(tmp_path: Path) -> None:
    built = sx.construct(sx.parse_task("eva:n=4,V=4"))
    built.save(tmp_path)
    data = json.loads((tmp_path / "config.json").read_text())
    assert data["model_type"] == "separatrix"
    assert (tmp_path / data["transformers_weights"]).name == built.record.weights
    assert described_by(data) == built.model.config


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "llama"}, "of type 'llama'"),
        ({"wide": 3}, "exactly the fields"),
        ({"width": "3"}, "be of type int"),
    ],
)
def test_what_describes_no_model_is_refused(change: dict[str, object], said: str) -> None:
    config = sx.construct(sx.parse_task("eva:n=4,V=4")).model.config
    assert described_by(description(config)) == config
    # files of earlier versions have no word for transformers
    assert described_by(config.to_json()) == config
    with pytest.raises(SpecError, match=said):
        described_by(description(config) | change)
    with pytest.raises(SpecError, match="a JSON object"):
        described_by([])


def test_without_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("separatrix.models.hf")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match="'hf'") as caught:
        import separatrix.models.hf  # noqa: F401
    assert "\n" not in str(caught.value)
