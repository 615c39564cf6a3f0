"""2-Sum per query by a bit code: the weight of a start token that ties with every match, and the
logits it leads to.
"""

from __future__ import annotations

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.counted import Counted, closest_pairs, count, reads
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.flagged import after_mlp, lead_of, said
from separatrix.proofs.derivations.parts.live_parts import live_parts
from separatrix.tasks import TwoSum
from separatrix.tasks.base.task import Tokens


def derive(task: TwoSum, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of the one layer. Raises CheckFailed where the weights do not bear it out."""
    if not model.config.bos or task.form != "query":
        raise CheckFailed("this construction answers the query form and has a start token")
    live = live_parts(model, placed=False)
    if len(live) != 1:
        raise CheckFailed(f"{len(live)} layers write; this construction is one")
    (part,) = live
    counted = count(task, model, part, reads(model, mlp=part), arithmetic)
    after_mlp(part, counted.start)
    margins = [
        lead_of(model, after_mlp(part, rows), answer)
        for answer, rows in enumerate((counted.alone, counted.met))
    ]
    return Derived(
        [counted.entry],
        min(margins),
        {"layers": 1, "head_dim": counted.key_numbers, "value_dim": counted.value_numbers},
        lambda rng: closest(task, counted, rng),
        arithmetic=said(arithmetic, counted.assumes),
        formats=(arithmetic.name,),
    )


def closest(task: TwoSum, counted: Counted, rng: np.random.Generator) -> Tokens:
    """Queries with nothing but the nearest other code before them, with one match among these, and
    with matches only.
    """
    rows = []
    for query, partner, near in closest_pairs(task, counted):
        alone = np.full(task.n, near)
        one = alone.copy()
        one[rng.integers(task.n)] = partner
        rows += [np.append(row, query) for row in (alone, one, np.full(task.n, partner))]
    return np.array(rows, np.int64)


def ids(task: TwoSum) -> list[int]:
    """Any value at every place."""
    return [task.M] * task.length


DERIVATION = Derivation(name="match2-bits", task=TwoSum, derive=derive, ids=ids)
