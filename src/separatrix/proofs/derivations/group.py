"""The word problem of a group in one layer that reflects its state: the product so far."""

from __future__ import annotations

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.modular import counted
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.tracking import Tracking, derive_tracking
from separatrix.proofs.derivations.permutation import products
from separatrix.tasks import Group
from separatrix.tasks.functions.arrangements import arrangements


def tracking(task: Group) -> Tracking:
    if task.degree:
        return products(arrangements(task.degree, even=True))
    return counted(task.vocabulary, task.vocabulary)


def derive(task: Group, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_tracking(task, model, tracking(task), arithmetic)


def ids(task: Group) -> list[int]:
    """Any element at every place."""
    return [task.vocabulary] * task.length


DERIVATION = Derivation(name="group", task=Group, derive=derive, ids=ids)
