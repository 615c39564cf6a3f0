"""Exchanges of neighbours after a first permutation of any kind: one head carries the first one,
another follows the exchanges, and the answer is the product of both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.reflections import Followed
from separatrix.proofs.derivations.parts.tracking import Tracking, derive_tracking
from separatrix.tasks import Permutation
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.functions.arrangements import arrangements


def neighbours(k: int) -> Tokens:
    """Ids of the permutations that exchange two neighbours."""
    rows = np.tile(np.arange(k), (k - 1, 1))
    for i, row in enumerate(rows):
        row[[i, i + 1]] = i + 1, i
    return arrangements(k).ids(rows)


def tracking(task: Permutation) -> Tracking:
    """The heads in the order in which they stand."""
    every = arrangements(task.k)
    ids = np.arange(every.order)
    table = every.table.reshape(every.order, every.order)
    exchanged = Followed(first=np.zeros_like(ids), step=table, answers=ids)
    carried = Followed(first=ids, step=np.repeat(ids[:, None], every.order, axis=1), answers=ids)
    return Tracking(
        followed=(exchanged, carried),
        first=ids,
        later=neighbours(task.k),
        # the one carried acts first
        together=lambda exchanges, start: table[start, exchanges],
    )


def derive(task: Permutation, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    if task.shift != "swaps":
        raise CheckFailed(f"{task.spec}: this construction is about the prompts of shift=swaps")
    return derive_tracking(task, model, tracking(task), arithmetic)


def ids(task: Permutation) -> list[int]:
    """Any permutation at every place, of which `asked` leaves exchanges after the first."""
    return [task.vocabulary] * task.length


def asked(task: Permutation, tokens: Tokens) -> NDArray[np.bool_]:
    return np.logical_and.reduce(np.isin(tokens[:, 1:], neighbours(task.k)), axis=1)


DERIVATION = Derivation(
    name="swaps",
    task=Permutation,
    derive=derive,
    ids=ids,
    asked=asked,
)
