"""Eva in one full layer: one hop, to the position that the last token names."""

from __future__ import annotations

import numpy as np

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.chain import Wanted, derive_chain
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.softmax import full_fetch
from separatrix.tasks import Eva


def hops(task: Eva) -> list[Wanted]:
    """The one place to read: position x, for a last token x."""
    return [Wanted("f(x)", task.V, np.arange(task.n), lambda x, before: x)]


def derive(task: Eva, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_chain(task, model, hops(task), [full_fetch], ids(task), arithmetic)


def ids(task: Eva) -> list[int]:
    """Values in the table, then an argument."""
    return [task.V] * task.n + [task.n]


DERIVATION = Derivation(name="retrieval", task=Eva, derive=derive, ids=ids)
