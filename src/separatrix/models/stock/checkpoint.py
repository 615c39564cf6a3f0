"""A checkpoint of a stock architecture: its config.json, its tensors, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.folder import write_atomic
from separatrix.models.stored.description import CONFIG

WEIGHTS = "model.safetensors"
NO_ANSWER = -(2.0**20)
"""The logit of an id that is no answer."""
FLAT = 2.0**60
"""The epsilon of a norm that does nothing: beside it the mean square of what is normed is rounded
away, and the root of 2^60 is 2^30, a power of two.
"""
ROOT = 2.0**30
"""The weight that undoes it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """A model in the layout of a stock architecture."""

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    start: int | None
    """The id that stands before every prompt; None where none does."""
    remarks: tuple[str, ...]
    """What differs from the model, in sentences."""

    @property
    def name(self) -> str:
        """The stock architecture."""
        return str(self.config["model_type"])

    def bytes(self) -> bytes:
        """The file of the weights."""
        tensors = {name: tensor.contiguous() for name, tensor in self.tensors.items()}
        return safetensors.torch.save(tensors, metadata={"format": "pt"})

    def save(self, folder: Path) -> None:
        """Writes config.json and model.safetensors. Raises OutputError."""
        write_atomic(Path(folder) / WEIGHTS, self.bytes())
        write_atomic(Path(folder) / CONFIG, canonical(self.config) + "\n")
