"""The weights of a model as a safetensors file: written, and read as a stranger's."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError

from separatrix.core.errors import EvidenceError, first_line
from separatrix.models.model import Model, ModelConfig, NoPositions
from separatrix.models.stored.plain_file import read_plain

SINGLE = (torch.float32,)
EITHER = (torch.float32, torch.float64)
"""Formats of the numbers in a file of weights, narrowest first."""
_HEADER = 1 << 12
_HEADER_EACH = 1 << 9
"""Most bytes that such a file has beside its numbers, and for each tensor."""


def weight_bytes(model: Model) -> bytes:
    """The file of a model's weights."""
    return safetensors.torch.save(
        {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    )


def described(config: ModelConfig) -> Model:
    """The model of a description without its numbers, so that a huge one costs nothing. Raises
    EvidenceError for one that cannot be built.
    """
    try:
        with torch.device("meta"):
            return Model(config)
    except (RuntimeError, OverflowError) as error:
        raise EvidenceError(f"the model described cannot be built: {first_line(error)}") from None


def weight_file(path: Path, model: Model, dtypes: Sequence[torch.dtype] = SINGLE) -> bytes:
    """The bytes of a file that has about the size of the model's weights. Raises CannotCheck."""
    shapes = [tuple(tensor.shape) for tensor in model.state_dict().values()]
    numbers = sum(map(prod, shapes))
    least, *_, most = (dtype.itemsize * numbers for dtype in (*dtypes, dtypes[-1]))
    return read_plain(path, least=least, most=most + _HEADER + _HEADER_EACH * len(shapes))


def filled(model: Model, data: bytes, path: Path, dtypes: Sequence[torch.dtype] = SINGLE) -> Model:
    """A model that was described, with the weights of a file's bytes, all in one of these formats.
    Raises EvidenceError where they are not the model's.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    try:
        tensors = safetensors.torch.load(data)
    except SafetensorError as error:
        raise EvidenceError(f"{path}: not a safetensors file: {error}") from None
    if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != shapes or not any(
        {t.dtype for t in tensors.values()} <= {dtype} for dtype in dtypes
    ):
        raise EvidenceError(
            f"{path}: names, shapes or number format of the weights are not those of the model"
            " described"
        )
    model.load_state_dict(tensors, assign=True)
    if isinstance(model.position, NoPositions):
        # of no file, and made as a shape only
        model.position = NoPositions(*model.position.weight.shape)
    return model.requires_grad_(False)
