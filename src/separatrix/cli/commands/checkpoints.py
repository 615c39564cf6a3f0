"""What `construct --format` names beside number formats: stock architectures of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.core.errors import UnknownNameError

if TYPE_CHECKING:
    from separatrix.constructions import Built
    from separatrix.models.stock import Checkpoint

STOCK_NAMES = ("gpt2", "llama")
"""Those of `separatrix.models.stock.STOCK`, known without torch."""


def stock_named(name: str | None, *others: str) -> str | None:
    """The stock architecture that `--format` names. Raises UnknownNameError, which tells of these
    and of all others that it may name.
    """
    if name is not None and name not in STOCK_NAMES:
        raise UnknownNameError.of("format", name[:60], (*others, *STOCK_NAMES))
    return name


def write_stock(built: Built, name: str, folder: Path) -> Checkpoint:
    """Writes the checkpoint beside the record, in place of the model's own config.json. Raises
    SizeError, naming the feature in the way, and OutputError.
    """
    from separatrix.core.errors import SizeError
    from separatrix.models.stock import stock_checkpoint

    if built.record.format:
        raise SizeError(
            f"{name}: the proof is about {built.record.format}; a checkpoint of a stock"
            " architecture is written, and computes, in float32"
        )
    checkpoint = stock_checkpoint(built.model, name)
    checkpoint.save(folder)
    return checkpoint


def said_of(checkpoint: Checkpoint, out: Path) -> list[str]:
    """What a person reads of a checkpoint that was written."""
    start = checkpoint.start
    prompt = "" if start is None else f"; every prompt begins with the id {start}"
    return [
        f"{checkpoint.name}: AutoModelForCausalLM.from_pretrained({str(out)!r}) loads it without"
        f" any code of ours{prompt}",
        *(f"  {remark}" for remark in checkpoint.remarks),
    ]


def stock_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """The same as data."""
    return {
        "model_type": checkpoint.name,
        "start": checkpoint.start,
        "remarks": list(checkpoint.remarks),
    }
