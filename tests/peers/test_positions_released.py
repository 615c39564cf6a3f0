"""Rotations as files are read, against transformers' own rotary embeddings of the same fields: how
many numbers of a head turn, and by which angles.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import torch

from separatrix.core.evidence.canonical import json_object
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.resolve import preset

transformers = pytest.importorskip("transformers")

# preset, and for each kind of layer in it what transformers calls that kind (None: all alike)
CASES = [
    ("llama-3.1-8b", "LlamaRotaryEmbedding", {"full": None}),
    ("gpt-oss-20b", "GptOssRotaryEmbedding", {"full": None, "windowed": None}),
    (
        "gemma-3-27b",
        "Gemma3RotaryEmbedding",
        {"full": "full_attention", "windowed": "sliding_attention"},
    ),
    (
        "gemma-4-26b-a4b",
        "Gemma4TextRotaryEmbedding",
        {"full": "full_attention", "windowed": "sliding_attention"},
    ),
    ("qwen3-next-80b", "Qwen3NextRotaryEmbedding", {"full": None}),
    ("recurrentgemma-2b", "RecurrentGemmaRotaryEmbedding", {"windowed": None}),
    ("deepseek-v3", "DeepseekV3RotaryEmbedding", {"full": None}),
    ("zamba2-7b", "Zamba2RotaryEmbedding", {"full": None}),
    ("falcon-h1-7b", "FalconH1RotaryEmbedding", {"full": None}),
    ("bamba-9b-fp8", "BambaRotaryEmbedding", {"full": None}),
    (
        "mimo-v2-flash",
        "MiMoV2FlashRotaryEmbedding",
        {"full": "full_attention", "windowed": "sliding_attention"},
    ),
    ("llama-4-scout", "Llama4TextRotaryEmbedding", {"windowed": None}),
]


def _fields(name: str) -> dict[str, Any]:
    config = PRESETS[name]["config"]
    return dict(json_object(config.get("text_config")) or config)


@pytest.mark.parametrize(("name", "cls", "kinds"), CASES, ids=[name for name, _, _ in CASES])
def test_angles_are_those_of_transformers(
    name: str, cls: str, kinds: dict[str, str | None]
) -> None:
    fields = _fields(name)
    family = str(fields["model_type"])
    config = transformers.AutoConfig.for_model(
        **{key: value for key, value in fields.items() if "dtype" not in key}
    )
    folder = family.removesuffix("_text")
    module = import_module(f"transformers.models.{folder}.modeling_{folder}")
    rotary = getattr(module, cls)(config)
    parts = {part.group: part for layer in preset(name) for part in layer if part.rotation}
    assert set(parts) == set(kinds)
    for group, kind in kinds.items():
        theirs = getattr(rotary, f"{kind}_inv_freq" if kind else "inv_freq").double()
        rotation = parts[group].rotation
        assert rotation is not None
        ours = torch.tensor(rotation.frequencies, dtype=torch.float64)
        turning = theirs[theirs != 0]
        assert len(turning) == rotation.dims // 2
        # theirs are float32
        assert torch.allclose(turning, ours, rtol=3e-6, atol=0)
