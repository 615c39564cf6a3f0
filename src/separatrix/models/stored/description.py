"""config.json of a model: its description, in a form that transformers finds a class for.

`separatrix.models.hf` registers that class; the file is written and read here without transformers.
"""

from __future__ import annotations

from typing import Any

import torch

from separatrix.core.errors import SpecError
from separatrix.core.evidence.canonical import json_object
from separatrix.mixers.base.mixer import DTYPES
from separatrix.models.model import ModelConfig

CONFIG = "config.json"
RECORD = "construction.json"
"""Beside it, in the folder of a construction."""
MODEL_TYPE = "separatrix"
CLASS = "SeparatrixForCausalLM"
WEIGHTS_FIELD = "transformers_weights"
"""Under which transformers looks for the name of the weights, where it is not its own."""
_OTHERS = {"model_type", "architectures", "dtype", "transformers_version", WEIGHTS_FIELD}
"""What stands in such a file beside the description."""


def description(config: ModelConfig, weights: str = "", number_format: str = "") -> dict[str, Any]:
    """The content of config.json; `weights` is the name of their file, where it is not
    model.safetensors, and `number_format` what the model computes in, where that is not float32.
    """
    named = {WEIGHTS_FIELD: weights} if weights else {}
    dtype = str(DTYPES.get(number_format, torch.float32)).removeprefix("torch.")
    head = {"model_type": MODEL_TYPE, "architectures": [CLASS], "dtype": dtype}
    return head | named | config.to_json()


def described_by(data: Any) -> ModelConfig:
    """The description in such a file, or in one without a word for transformers. Raises SpecError
    for what is none.
    """
    fields = json_object(data)
    if fields is None:
        raise SpecError("the description of a model is a JSON object")
    kind = fields.get("model_type", MODEL_TYPE)
    if kind != MODEL_TYPE:
        raise SpecError(f"describes a model of type {kind!r}, not {MODEL_TYPE!r}")
    own = {name: value for name, value in fields.items() if name not in _OTHERS}
    return ModelConfig.from_json(own)
