"""2-Sum as a decision: every token counts what cancels it, the MLP flags it, and the last token
looks for a flag.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.balls import down
from separatrix.proofs.derivations.parts.counted import Counted, closest_pairs, count, reads
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.flagged import (
    Kinds,
    after_mlp,
    look,
    said,
    stacked,
    threshold_margin,
)
from separatrix.proofs.derivations.parts.live_parts import live_parts
from separatrix.tasks import TwoSum
from separatrix.tasks.base.task import Tokens


def derive(task: TwoSum, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    if not model.config.bos or task.form != "decision":
        raise CheckFailed("this construction answers the decision form and has a start token")
    live = live_parts(model, placed=False)
    if len(live) != 2:
        raise CheckFailed(f"{len(live)} layers write; this construction is two")
    first, second = live
    counted = count(task, model, first, reads(model, second, mlp=first), arithmetic)
    alone = after_mlp(first, counted.alone)
    met = after_mlp(first, counted.met)
    start = after_mlp(first, counted.start)
    last = Kinds(plain=alone, flagged=met)
    tokens = Kinds(plain=stacked(alone, start), flagged=met)
    looked = look(model, second, tokens, last, task.length + 1, (0, 1))
    used = {
        "layers": 2,
        "head_dim": max(counted.key_numbers, looked.key_numbers),
        "value_dim": max(counted.value_numbers, looked.value_numbers),
    }
    margin = threshold_margin(first, stacked(counted.alone, counted.met, counted.start))
    entry = counted.entry | {"threshold_margin": down(Fraction(margin))}
    return Derived(
        [entry, looked.entry],
        looked.margin,
        used,
        lambda rng: closest(task, counted, rng),
        arithmetic=said(arithmetic, counted.assumes, looked.assumes),
        formats=(arithmetic.name,),
    )


def closest(task: TwoSum, counted: Counted, rng: np.random.Generator) -> Tokens:
    """Values among others of the nearest code to what would cancel them: once; twice, which is a
    pair where a value cancels itself; and with their partner at the first, the last and any place.
    """
    n = task.n
    rows = []
    for value, partner, near in closest_pairs(task, counted):
        places = rng.permutation(n)
        once = np.full(n, near)
        once[places[0]] = value
        twice = once.copy()
        twice[places[1]] = value
        rows += [once, twice, np.full(n, value)]
        for place in (0, n - 1, int(rng.integers(n))):
            met = np.full(n, value)
            met[place] = partner
            rows.append(met)
    return np.array(rows, np.int64)


def ids(task: TwoSum) -> list[int]:
    """Any value at every place."""
    return [task.M] * task.length


DERIVATION = Derivation(name="pairs", task=TwoSum, derive=derive, ids=ids)
