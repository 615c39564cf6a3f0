"""config.json of a model: its description, in a form that transformers finds a class for.

`separatrix.models.hf` registers that class; the file is written and read here without transformers.
What transformers would do with the rest of a folder is kept out here, too: it reads settings of
generation, adapters, tokens and code from further files, and the number format from this one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from separatrix.core.errors import CheckFailed, SpecError
from separatrix.core.evidence.canonical import canonical, json_object
from separatrix.core.evidence.records import Construction
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
_LOADED = (CONFIG, "model.safetensors", "adapter_config.json")
"""Files from which transformers starts to load a model."""
_HARMLESS = ("README", "LICENSE", ".")
"""Beginnings of names that transformers reads nothing of."""
CERTIFICATE = "certificate.json"
"""What `refute` writes."""


def description(config: ModelConfig, weights: str = "", number_format: str = "") -> dict[str, Any]:
    """The content of config.json; `weights` is the name of their file, where it is not
    model.safetensors, and `number_format` what the model computes in, where that is not float32.
    """
    named = {WEIGHTS_FIELD: weights} if weights else {}
    head = {"model_type": MODEL_TYPE, "architectures": [CLASS], "dtype": _dtype(number_format)}
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


def _dtype(number_format: str) -> str:
    """What PyTorch calls a number format; its float32 where it has none such."""
    return str(DTYPES.get(number_format, torch.float32)).removeprefix("torch.")


def proved_in(record: Construction) -> set[str]:
    """The formats of PyTorch in which a record says that its weights are proved."""
    proofs = {record.format or "fp32": record.proof, **record.proofs}
    proved = {name for name, own in proofs.items() if own and not {"breaks", "unproved"} & set(own)}
    return {_dtype(name) for name in proved & set(DTYPES)}


def check_description(path: Path, data: Any, record: Construction) -> None:
    """Raises CheckFailed unless the content of a config.json is what `construct` writes beside a
    record, up to a number format in which the record has a proof.
    """
    wanted = description(ModelConfig.from_json(record.model), record.weights, record.format)
    fields = json_object(data) or {}
    if canonical(fields | {"dtype": wanted["dtype"]}) != canonical(wanted):
        raise CheckFailed(
            f"{path}: edited: describes another model than {RECORD}, names other weights, or has"
            " fields that `construct` does not write"
        )
    dtype = fields.get("dtype")
    proved = proved_in(record)
    if dtype != wanted["dtype"] and dtype not in [*proved]:
        raise CheckFailed(
            f"{path}: edited: the model would be loaded in {str(dtype)[:40]}; it is proved in"
            f" {', '.join(sorted(proved)) or 'no format'}"
        )


def check_files(folder: Path, *known: str) -> None:
    """Raises CheckFailed where a folder that transformers loads holds other files than these."""
    for path in sorted(folder.iterdir()):
        if path.name not in known and not path.name.startswith(_HARMLESS):
            raise CheckFailed(
                f"{path}: none of the files of this folder ({', '.join(known)}); transformers reads"
                " settings, adapters and code of such: move it elsewhere"
            )


def check_no_model(folder: Path, lacking: str) -> None:
    """Raises CheckFailed where transformers would load a model from a folder that has none."""
    for name in _LOADED:
        if os.path.lexists(folder / name):
            raise CheckFailed(f"{folder / name}: of a model that transformers loads, {lacking}")
