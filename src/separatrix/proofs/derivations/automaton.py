"""Eva by the automaton of its prefixes' classes, followed on every input."""

from __future__ import annotations

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.machines import derive_machine
from separatrix.proofs.derivations.retrieval import ids
from separatrix.tasks import Eva


def derive(task: Eva, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_machine(task, model, ids(task), arithmetic)


DERIVATION = Derivation(name="automaton", task=Eva, derive=derive, ids=ids)
