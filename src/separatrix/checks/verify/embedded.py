"""The model inside a certificate, rebuilt strictly: every parameter there, of the right shape,
finite, and nothing else.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
import torch
from torch import Tensor

from separatrix.core.errors import EvidenceError, first_line
from separatrix.models.model import Model, ModelConfig

_TYPES = {"float32": ("<f4", np.float32), "float64": ("<f8", np.float64)}


def embedded_model(description: dict[str, Any], weights: dict[str, Any]) -> Model:
    """The model of a description and its embedded weights. Raises EvidenceError where they do
    not belong together.
    """
    config = ModelConfig.from_json(description)
    try:
        with torch.device("meta"):  # shapes only: a description of a huge model costs nothing
            model = Model(config)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise EvidenceError(f"the model described cannot be built: {first_line(error)}") from None
    wanted = model.state_dict()
    if set(weights) != set(wanted):
        odd = sorted(set(weights).symmetric_difference(wanted))
        raise EvidenceError(
            "the weights are not those of the model described; missing or unknown:"
            f" {', '.join(odd)[:120]}"
        )
    decoded = {name: _decode(name, weights[name], tuple(wanted[name].shape)) for name in wanted}
    if len({tensor.dtype for tensor in decoded.values()}) > 1:
        raise EvidenceError("the weights mix float32 and float64; a model holds one of them")
    model.load_state_dict(decoded, assign=True)
    return model.requires_grad_(False).eval()


def _decode(name: str, entry: Any, shape: tuple[int, ...]) -> Tensor:
    if (
        not isinstance(entry, dict)
        or set(entry) != {"dtype", "shape", "data"}
        or not isinstance(entry["data"], str)
    ):
        raise EvidenceError(
            f"weights '{name}' must have exactly the fields dtype, shape and data (base64)"
        )
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in _TYPES:
        raise EvidenceError(
            f"weights '{name}' are of type {str(entry['dtype'])[:20]!r}; known: {', '.join(_TYPES)}"
        )
    if (
        not isinstance(entry["shape"], list)
        or [*map(type, entry["shape"])] != [int] * len(shape)
        or tuple(entry["shape"]) != shape
    ):
        raise EvidenceError(
            f"weights '{name}' have the shape {str(entry['shape'])[:40]}; the model described needs"
            f" {list(shape)}"
        )
    little, native = _TYPES[entry["dtype"]]
    try:
        data = base64.b64decode(entry["data"], validate=True)
    except (binascii.Error, ValueError):
        raise EvidenceError(
            f"weights '{name}' are not base64; the file was edited or damaged"
        ) from None
    if (
        # several texts decode to the same bytes; only the canonical one is accepted
        base64.b64encode(data).decode() != entry["data"]
        or len(data) != int(np.prod(shape)) * np.dtype(little).itemsize
    ):
        raise EvidenceError(
            f"weights '{name}' hold {len(data)} bytes, which are not {list(shape)} numbers of type"
            f" {entry['dtype']}"
        )
    # the copy makes it writable and in the machine's own byte order
    array = np.frombuffer(data, little).astype(native).reshape(shape)
    if not np.isfinite(array).all():
        raise EvidenceError(f"weights '{name}' hold a number that is not finite")
    return torch.from_numpy(array)
