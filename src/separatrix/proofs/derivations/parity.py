"""Parity in one layer that reflects its state: the number of ones, modulo 2."""

from __future__ import annotations

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.modular import counted
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.tracking import derive_tracking
from separatrix.tasks import Parity


def derive(task: Parity, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_tracking(task, model, counted(2), arithmetic)


def ids(task: Parity) -> list[int]:
    """Bits."""
    return [2] * task.length


DERIVATION = Derivation(name="parity", task=Parity, derive=derive, ids=ids)
