"""MQAR in one full layer behind a short convolution in a layer before it."""

from __future__ import annotations

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.mqar import asked, closest, ids, pairs
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.lookups import derive_lookup
from separatrix.tasks import MQAR


def derive(task: MQAR, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_lookup(
        model, pairs(task), lambda rng: closest(task, rng), arithmetic, carried=True
    )


DERIVATION = Derivation(name="carried-mqar", task=MQAR, derive=derive, ids=ids, asked=asked)
