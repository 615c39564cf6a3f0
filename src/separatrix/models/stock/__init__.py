"""Models as checkpoints of stock architectures of transformers, which load without any code of this
package: one file for each architecture.

Nothing here imports transformers: a checkpoint is a config.json and a model.safetensors.
"""

from __future__ import annotations

import torch

from separatrix.core.errors import SizeError
from separatrix.models.model import Model
from separatrix.models.stock import gpt2, llama
from separatrix.models.stock.checkpoint import Checkpoint

__all__ = ["STOCK", "Checkpoint", "stock_checkpoint"]

STOCK = {"gpt2": gpt2.write, "llama": llama.write}
"""What writes a model as a checkpoint of each stock architecture, by its model_type."""


def stock_checkpoint(model: Model, name: str) -> Checkpoint:
    """The model as a checkpoint of the stock architecture `name`, a key of `STOCK`.

    Raises SizeError, naming the feature that stands in the way, where it cannot hold the model.
    """
    if model.head.weight.dtype != torch.float32:
        raise SizeError(
            f"{name}: the weights are {str(model.head.weight.dtype).removeprefix('torch.')};"
            " checkpoints of stock architectures are written in float32"
        )
    return STOCK[name](model)
