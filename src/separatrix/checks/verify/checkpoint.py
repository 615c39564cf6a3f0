"""Checks the config.json that stands beside a construction, and the checkpoint of a stock
architecture where it describes one.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.core.evidence.canonical import canonical, json_object
from separatrix.core.evidence.records import Construction
from separatrix.models.model import Model
from separatrix.models.stock import STOCK, stock_checkpoint
from separatrix.models.stock.checkpoint import WEIGHTS, Checkpoint
from separatrix.models.stock.run import logits_at, work
from separatrix.models.stored.description import (
    CERTIFICATE,
    CONFIG,
    RECORD,
    check_description,
    check_files,
    check_no_model,
    proved_in,
)
from separatrix.models.stored.plain_file import plain_json, read_plain
from separatrix.proofs.derivations.parts.derivation import all_right
from separatrix.tasks import Task, parse_task
from separatrix.tasks.base.task import Tokens

_WORK = 1 << 38
"""Operations that a checkpoint is run for: some ten seconds."""
_AT_ONCE = 1 << 30


def verify_checkpoint(
    record: Construction, folder: Path, model: Model, tokens: Tokens
) -> list[str]:
    """What was checked of the files that transformers reads; nothing where there are none. A
    checkpoint is run on the inputs `tokens`.

    Raises CheckFailed where they are not those of the record.
    """
    path = folder / CONFIG
    if not os.path.lexists(path):
        check_no_model(folder, f"and no {CONFIG} beside it says which")
        return []
    data = plain_json(path)
    kind = str((json_object(data) or {}).get("model_type"))
    if kind in STOCK:
        check_files(folder, RECORD, CONFIG, WEIGHTS, record.weights, CERTIFICATE)
        return _stock(folder, model, kind, data, parse_task(record.task), tokens)
    check_files(folder, RECORD, CONFIG, record.weights, CERTIFICATE)
    check_description(path, data, record)
    loaded = str((json_object(data) or {}).get("dtype"))
    unproved = f"; transformers loads it in {loaded}, in which nothing is proved of it"
    said = "" if loaded in proved_in(record) else unproved
    return [f"{CONFIG} describes this model, and no further file is read with it{said}"]


def _stock(
    folder: Path, model: Model, kind: str, data: object, task: Task, tokens: Tokens
) -> list[str]:
    """The checkpoint, written again from the weights of the record, compared and run."""
    again = stock_checkpoint(model, kind)
    if canonical(data) != canonical(again.config):
        raise CheckFailed(f"{folder / CONFIG}: is not what these weights give as {kind}")
    wanted = again.bytes()
    if read_plain(folder / WEIGHTS, least=len(wanted), most=len(wanted)) != wanted:
        raise CheckFailed(
            f"{folder / WEIGHTS}: is not what these weights give as {kind}: it was changed"
        )
    return [
        f"{WEIGHTS} is this model as {kind}, written again from the weights: bit for bit the same",
        _ran(again, task, tokens),
        *again.remarks,
    ]


def _ran(checkpoint: Checkpoint, task: Task, tokens: Tokens) -> str:
    """On how many of the inputs a checkpoint was run. Raises CheckFailed where it is wrong."""
    one = work(checkpoint, task.length + 1)
    number = min(len(tokens), _WORK // one)
    if not number:
        return f"not run as {checkpoint.name}, and not proved: one input takes {one:.1e} operations"
    batch = max(1, _AT_ONCE // one)

    def logits(prompts: Tokens, places: Tokens | None) -> NDArray[np.floating]:
        asked = None if places is None else torch.from_numpy(places)
        return logits_at(checkpoint, torch.from_numpy(prompts), asked).double().numpy()

    all_right(logits, task, tokens[-number:], batch, f" as {checkpoint.name}")
    return (
        f"run as {checkpoint.name}, in its own arithmetic, float32: every answer right; tested on"
        f" {number:,} inputs, not proved"
    )
