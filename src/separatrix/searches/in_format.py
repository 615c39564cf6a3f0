"""A model run in a number format, on inputs of a task: which of them it answers wrongly."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from separatrix.derivations.parts.generation import Logits, due, given, logits_of
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
    """What the model says; -1 where its logits are no numbers. Of several answers, the first that
    is wrong.
    """
    right: int
    how: str


def wrong_in(
    model: Model, arithmetic: Arithmetic, task: Task, tokens: Tokens, *, numbers: int = 1 << 21
) -> Wrong | None:
    """The first input found that is answered wrongly in a format; None where there is none. PyTorch
    computes in its own formats, others are emulated with both orders of sums. Raises SizeError
    for a model that is not emulated in the format.
    """
    wanted = due(task, tokens)
    size = max(1, numbers // (task.length * model.config.width))
    for how, logits in _computed(model, arithmetic):
        for start in range(0, len(tokens), size):
            some, right = tokens[start : start + size], wanted[start : start + size]
            found, finite = given(logits, task, some)
            found[~finite] = -1
            rows, columns = np.nonzero(found != right)
            if len(rows):
                row, column = rows[0], columns[0]
                return Wrong(
                    some[row].tolist(),
                    int(found[row, column]),
                    int(right[row, column]),
                    how if right.shape[1] == 1 else f"{how}, answer {column + 1}",
                )
    return None


def _computed(model: Model, arithmetic: Arithmetic) -> list[tuple[str, Logits]]:
    """Each way in which the format is computed. Raises SizeError where there is none."""
    if arithmetic.name in DTYPES:
        return [("PyTorch", logits_of(copy.deepcopy(model).to(DTYPES[arithmetic.name])))]
    return [(f"{order} sums", Emulated(model, arithmetic, order).logits) for order in ORDERS]
