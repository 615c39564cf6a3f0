"""Associative recall in one full layer behind a short convolution in a layer before it."""

from __future__ import annotations

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.lookups import derive_lookup
from separatrix.proofs.derivations.recall import asked, closest, ids, pairs
from separatrix.tasks import Recall


def derive(task: Recall, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_lookup(
        model, pairs(task), lambda rng: closest(task, rng), arithmetic, carried=True
    )


DERIVATION = Derivation(name="carried-recall", task=Recall, derive=derive, ids=ids, asked=asked)
