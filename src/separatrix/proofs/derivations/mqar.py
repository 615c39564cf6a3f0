"""MQAR in one full layer behind a short convolution: every question is a lookup by content."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.lookups import Pairs, derive_lookup
from separatrix.tasks import MQAR
from separatrix.tasks.base.task import NO_ANSWER, Tokens


def pairs(task: MQAR) -> Pairs:
    k = task.num_kv_pairs
    return Pairs(
        length=task.length,
        keys=range(1, task.first_value),
        values=range(task.first_value, task.vocabulary),
        at=np.arange(0, 2 * k, 2),
        asking=np.arange(2 * k, task.length, 2),
    )


def derive(task: MQAR, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_lookup(model, pairs(task), lambda rng: closest(task, rng), arithmetic)


def closest(task: MQAR, rng: np.random.Generator) -> Tokens:
    """Prompts whose values but the first, and all filler, are the complement of the first."""
    tokens, targets = task.sample(4, rng)
    tokens = tokens.copy()
    k = task.num_kv_pairs
    first = tokens[:, 1:2] - task.first_value
    other = task.first_value + task.answers - 1 - first
    tokens[:, 3 : 2 * k : 2] = other
    rest = tokens[:, 2 * k :]
    rest[:] = np.where(targets[:, 2 * k :] == NO_ANSWER, other, rest)
    return tokens


def ids(task: MQAR) -> list[int]:
    """Any id anywhere."""
    return [task.vocabulary] * task.length


def asked(task: MQAR, tokens: Tokens) -> NDArray[np.bool_]:
    """Prompts whose keys are keys, differ, and stand once more behind the pairs, at even places."""
    k = task.num_kv_pairs
    keys = tokens[:, 0 : 2 * k : 2]
    values = tokens[:, 1 : 2 * k : 2]
    written = np.sort(keys, 1)
    met = tokens[:, None, 2 * k :] == keys[:, :, None]
    return (
        ((keys >= 1) & (keys < task.first_value)).all(1)
        & (values >= task.first_value).all(1)
        & (written[:, 1:] != written[:, :-1]).all(1)
        & (met[:, :, ::2].sum(2) == 1).all(1)
        & ~met[:, :, 1::2].any((1, 2))
    )


DERIVATION = Derivation(name="mqar", task=MQAR, derive=derive, ids=ids, asked=asked)
