"""A model run in a number format, on inputs of a task: which of them it answers wrongly."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from separatrix.mixers.base.mixer import DTYPES
from separatrix.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.searches.emulated import ORDERS, Emulated
from separatrix.tasks import Task
from separatrix.tasks.base.task import Tokens


@dataclass(frozen=True)
class Wrong:
    """An input that is answered wrongly, and how it was computed."""

    tokens: list[int]
    answer: int
    """What the model says; -1 where its logits are no numbers."""
    right: int
    how: str


def wrong_in(
    model: Model, arithmetic: Arithmetic, task: Task, tokens: Tokens, *, numbers: int = 1 << 21
) -> Wrong | None:
    """The first input found that is answered wrongly in a format; None where there is none. PyTorch
    computes in its own formats, others are emulated with both orders of sums.
    """
    right = task.answer(tokens)
    size = max(1, numbers // (task.length * model.config.width))
    for start in range(0, len(tokens), size):
        some = tokens[start : start + size]
        for how, found in _answers(model, arithmetic, some):
            missed = np.flatnonzero(found != right[start : start + size])
            if len(missed):
                row = int(missed[0])
                return Wrong(some[row].tolist(), int(found[row]), int(right[start + row]), how)
    return None


def _answers(
    model: Model, arithmetic: Arithmetic, tokens: Tokens
) -> list[tuple[str, NDArray[np.int64]]]:
    if arithmetic.name not in DTYPES:
        return [
            (f"{order} sums", Emulated(model, arithmetic, order).answers(tokens))
            for order in ORDERS
        ]
    cast = copy.deepcopy(model).to(DTYPES[arithmetic.name])
    with torch.inference_mode():
        logits = cast(torch.from_numpy(tokens)).double().numpy()
    return [("PyTorch", np.where(np.isfinite(logits).all(-1), logits.argmax(-1), -1))]
