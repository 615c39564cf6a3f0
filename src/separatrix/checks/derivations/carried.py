"""L-SeqComp in L full layers behind a recurrent one: the hops of seqcomp.py, the first made by
the recurrent layer.
"""

from __future__ import annotations

from separatrix.checks.derivation import Derivation, Derived
from separatrix.checks.derivations.seqcomp import hops, ids
from separatrix.checks.retrieval_chain import LARGEST_WEIGHT, carry, derive_chain, full_fetch
from separatrix.model import Model
from separatrix.tasks import SeqComp


def derive(task: SeqComp, model: Model) -> Derived:
    return derive_chain(task, model, hops(task), [carry, *[full_fetch] * task.L])


DERIVATION = Derivation(
    name="carried", task=SeqComp, derive=derive, ids=ids, largest_weight=LARGEST_WEIGHT
)
