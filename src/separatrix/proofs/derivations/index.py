"""Index lookup in one full layer: one hop, to the position whose id the last token is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.chain import Wanted, derive_chain
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.softmax import full_fetch
from separatrix.tasks import Index
from separatrix.tasks.base.task import Tokens


def hops(task: Index) -> list[Wanted]:
    """The one place to read: position i, for the last token V + i."""
    return [Wanted("x_i", task.V, np.arange(task.n), lambda i, before: i, first=task.V)]


def derive(task: Index, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_chain(task, model, hops(task), [full_fetch], ids(task), arithmetic)


def ids(task: Index) -> list[int]:
    """Values in the sequence, then a position, whose id is V or more."""
    return [task.V] * task.n + [task.vocabulary]


def asked(task: Index, tokens: Tokens) -> NDArray[np.bool_]:
    return tokens[:, -1] >= task.V


DERIVATION = Derivation(name="index", task=Index, derive=derive, ids=ids, asked=asked)
