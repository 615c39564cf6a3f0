"""Eva in one layer of indexed attention: the hop of retrieval.py, among the tokens that the indexer
chooses.
"""

from __future__ import annotations

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.chain import derive_chain
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.indexed import indexed_fetch
from separatrix.proofs.derivations.retrieval import hops, ids
from separatrix.tasks import Eva


def derive(task: Eva, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_chain(task, model, hops(task), [indexed_fetch], ids(task), arithmetic)


DERIVATION = Derivation(name="indexed-retrieval", task=Eva, derive=derive, ids=ids)
