"""Modular counting in one layer that reflects its state: the number of ones, modulo m."""

from __future__ import annotations

import numpy as np

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.reflections import Followed
from separatrix.proofs.derivations.parts.tracking import Tracking, derive_tracking
from separatrix.tasks import Modular


def counted(m: int, ids: int = 2) -> Tracking:
    """Sums modulo m of ids 0, 1, ...: of two bits, or of so many numbers."""
    tokens = np.arange(ids)
    numbers = np.arange(m)
    sums = Followed(first=tokens % m, step=(numbers[:, None] + tokens) % m, answers=numbers)
    return Tracking(followed=(sums,), first=tokens, later=tokens)


def derive(task: Modular, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_tracking(task, model, counted(task.m), arithmetic)


def ids(task: Modular) -> list[int]:
    """Bits."""
    return [2] * task.length


DERIVATION = Derivation(name="modular", task=Modular, derive=derive, ids=ids)
