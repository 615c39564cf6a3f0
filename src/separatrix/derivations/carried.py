"""L-SeqComp in L full layers behind a recurrent one: the hops of seqcomp.py, the first made by
the recurrent layer.
"""

from __future__ import annotations

from separatrix.derivations.parts.chain import derive_chain
from separatrix.derivations.parts.derivation import Derivation, Derived
from separatrix.derivations.parts.recurrent import carry
from separatrix.derivations.parts.softmax import full_fetch
from separatrix.derivations.seqcomp import hops, ids
from separatrix.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.tasks import SeqComp


def derive(task: SeqComp, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_chain(
        task, model, hops(task), [carry, *[full_fetch] * task.L], ids(task), arithmetic
    )


DERIVATION = Derivation(name="carried", task=SeqComp, derive=derive, ids=ids)
