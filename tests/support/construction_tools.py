"""What the tests of constructions share: every input of a small task, the inputs a model answers
wrongly, and edited weights that must be refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from numpy.typing import NDArray

from separatrix.checks.verify.construction import verify_construction
from separatrix.constructions import Built
from separatrix.core.errors import CheckFailed
from separatrix.core.evidence.canonical import sha256
from separatrix.models.model import Model

Tokens = NDArray[np.int64]


def every(ranges: Sequence[int]) -> Tokens:
    """All sequences whose position p holds one of ranges[p] ids."""
    return np.array(list(itertools.product(*map(range, ranges))), np.int64)


def logits(built: Built, tokens: Tokens, *, batch: int = 4096) -> NDArray[np.float32]:
    with torch.inference_mode():
        return np.concatenate(
            [
                built.model(torch.from_numpy(tokens[i : i + batch])).numpy()
                for i in range(0, len(tokens), batch)
            ]
        )


def wrong(
    built: Built, tokens: Tokens, answers: NDArray[np.int64], *, batch: int = 4096
) -> list[list[int]]:
    """The inputs (their first 20 tokens) that are answered wrongly, at most five of them."""
    found = logits(built, tokens, batch=batch).argmax(-1)
    return [tokens[i][:20].tolist() for i in np.flatnonzero(found != answers)[:5]]


def refused(
    built: Built, folder: Path, edits: dict[str, tuple[tuple[int, ...], float]], message: str
) -> None:
    """Asserts that the weights with some numbers changed, under a record that names them, are
    refused with this message.
    """
    tensors = {name: tensor.clone() for name, tensor in built.model.state_dict().items()}
    for name, (place, value) in edits.items():
        assert tensors[name][place] != value
        tensors[name][place] = value
    data = safetensors.torch.save(tensors)
    name = f"{built.record.name}-{sha256(data)[:12]}.safetensors"
    (folder / name).write_bytes(data)
    with pytest.raises(CheckFailed, match=message):
        verify_construction(
            replace(built.record, weights=name, weights_sha256=sha256(data)), folder
        )


def wider(model: Model, by: int) -> Model:
    """The same model with so many more numbers in its residual stream, which nothing reads."""
    found = Model(replace(model.config, width=model.config.width + by)).requires_grad_(False)
    for name, tensor in found.named_parameters():
        given = model.get_parameter(name)
        tensor.zero_()
        tensor[tuple(slice(size) for size in given.shape)] = given
    return found
