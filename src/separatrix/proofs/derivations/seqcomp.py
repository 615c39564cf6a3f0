"""L-SeqComp in L+1 full layers: a hop that fetches z_0, and one for each function."""

from __future__ import annotations

import numpy as np

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.chain import Wanted, derive_chain
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.softmax import full_fetch
from separatrix.tasks import SeqComp


def hops(task: SeqComp) -> list[Wanted]:
    """z_0 has one place; i_l = z_l(w_{l-1}, i_{l-1}) has the place of its row and column."""
    tokens = np.arange(task.w_values)
    # z_0 and z_1 are asked for alike by every w: their part of the last token is 0
    parts = [0 * tokens, 0 * tokens, *task.split_w(tokens)]
    first = Wanted("z_0", task.m, parts[0], lambda a, before: task.position_z0 + 0 * (a + before))
    rest = [
        Wanted(
            f"i_{level}",
            task.entries(level),
            parts[level],
            lambda a, i, level=level: task.position(level, a, i),
        )
        for level in range(1, task.L + 1)
    ]
    return [first, *rest]


def derive(task: SeqComp, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_chain(task, model, hops(task), [full_fetch] * (task.L + 1), ids(task), arithmetic)


def ids(task: SeqComp) -> list[int]:
    """The functions, last one first, as tables; then z_0 and w."""
    counts = [task.entries(level) for level in range(task.L, 0, -1)]
    tables = [count for count in counts for _ in range(count)]
    return [*tables, task.m, task.w_values]


DERIVATION = Derivation(name="seqcomp", task=SeqComp, derive=derive, ids=ids)
