"""Eva in one block-sparse layer: the hop of retrieval.py, among the tokens that the layer opens."""

from __future__ import annotations

from separatrix.checks.derivation import Derivation, Derived
from separatrix.checks.derivations.retrieval import hops, ids
from separatrix.checks.retrieval_chain import LARGEST_WEIGHT, derive_chain, sparse_fetch
from separatrix.model import Model
from separatrix.tasks import Eva


def derive(task: Eva, model: Model) -> Derived:
    return derive_chain(task, model, hops(task), [sparse_fetch])


DERIVATION = Derivation(
    name="sparse-retrieval", task=Eva, derive=derive, ids=ids, largest_weight=LARGEST_WEIGHT
)
