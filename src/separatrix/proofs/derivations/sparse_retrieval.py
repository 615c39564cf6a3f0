"""Eva in one block-sparse layer: the hop of retrieval.py, among the tokens that the layer opens."""

from __future__ import annotations

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.chain import derive_chain
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.sparse import sparse_fetch
from separatrix.proofs.derivations.retrieval import hops, ids
from separatrix.tasks import Eva


def derive(task: Eva, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_chain(task, model, hops(task), [sparse_fetch], ids(task), arithmetic)


DERIVATION = Derivation(name="sparse-retrieval", task=Eva, derive=derive, ids=ids)
