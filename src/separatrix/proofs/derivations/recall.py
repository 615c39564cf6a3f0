"""Associative recall in one full layer behind a short convolution: one lookup by content, and the
first token as the blank where nothing matches.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.lookups import Pairs, derive_lookup
from separatrix.tasks import Recall
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.recall import PROMISED


def pairs(task: Recall) -> Pairs:
    return Pairs(
        length=task.length,
        keys=range(task.V, task.vocabulary),
        values=range(task.V),
        at=np.arange(0, 2 * task.n, 2),
        asking=np.array([2 * task.n]),
        absent=task.form not in PROMISED,
        rewritten=task.form == "last",
    )


def derive(task: Recall, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_lookup(model, pairs(task), lambda rng: closest(task, rng), arithmetic)


def closest(task: Recall, rng: np.random.Generator) -> Tokens:
    """Prompts in which every value but the one asked for is its complement; where keys may be
    written again, prompts that write the key asked for again and again, too.
    """
    tokens, answers = task.sample(4, rng)
    tokens = tokens.copy()
    values = tokens[:, 1:-1:2]
    values[:] = np.where(
        values == answers[:, None], values, (task.V - 1 - answers)[:, None] % task.V
    )
    if task.form != "last":
        return tokens
    again = tokens.copy()
    again[:, 0:-1:2] = again[:, -1:]
    return np.concatenate([tokens, again])


def ids(task: Recall) -> list[int]:
    """Keys, whose ids follow those of values, and values in turn; then a key."""
    return [task.vocabulary, task.V] * task.n + [task.vocabulary]


def asked(task: Recall, tokens: Tokens) -> NDArray[np.bool_]:
    """Prompts whose keys are keys, and which keep what the form promises."""
    keys = tokens[:, ::2]
    written = np.sort(keys[:, :-1], 1)
    found = np.asarray((keys >= task.V).all(1))
    if task.form != "last":
        found = found & (written[:, 1:] != written[:, :-1]).all(1)
    if task.form in PROMISED:
        found = found & (keys[:, :-1] == keys[:, -1:]).any(1)
    return found


DERIVATION = Derivation(name="recall", task=Recall, derive=derive, ids=ids, asked=asked)
