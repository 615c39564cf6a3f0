"""Permutation composition in one layer that reflects its state: the product so far."""

from __future__ import annotations

import numpy as np

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.reflections import Followed
from separatrix.proofs.derivations.parts.tracking import Tracking, derive_tracking
from separatrix.tasks import Permutation
from separatrix.tasks.functions.arrangements import Arrangements, arrangements


def products(every: Arrangements) -> Tracking:
    """Products of any of these permutations, the first acting first."""
    ids = np.arange(every.order)
    step = every.table.reshape(every.order, every.order)
    return Tracking(followed=(Followed(first=ids, step=step, answers=ids),), first=ids, later=ids)


def tracking(task: Permutation) -> Tracking:
    return products(arrangements(task.k))


def derive(task: Permutation, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_tracking(task, model, tracking(task), arithmetic)


def ids(task: Permutation) -> list[int]:
    """Any permutation at every place, whatever the shift draws."""
    return [task.vocabulary] * task.length


DERIVATION = Derivation(name="permutation", task=Permutation, derive=derive, ids=ids)
