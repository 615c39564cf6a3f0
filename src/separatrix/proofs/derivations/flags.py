"""What is decided by flags. 2-Sum per query by a bit code: the weight of a start token that ties
with every match, and the logits it leads to. As a decision: every token counts what cancels it, the
MLP flags it, and the last token looks for a flag. Equality of two strings: every place fetches the
bit of its partner, the MLP flags a difference, and the last token looks for a flag.
"""

from __future__ import annotations

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.counted import around, count, reads
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, derived
from separatrix.proofs.derivations.parts.flagged import Kinds, look
from separatrix.proofs.derivations.parts.live_parts import live_of
from separatrix.proofs.derivations.parts.reading import Reading, lead_of
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import rounded
from separatrix.proofs.machine import RESIDUAL, add, stacked
from separatrix.tasks import Equality, TwoSum

_BITS = 2
_FETCHES = "the bit at the same place of the first string"


def derive_query(task: TwoSum, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of the one layer. Raises CheckFailed where the weights do not bear it out."""
    if task.form != "query":
        raise CheckFailed("this construction answers the query form")
    (part,) = live_of(model, 1, placed=False, start=True)
    counted = count(task, model, part, reads(model, mlp=part), arithmetic)
    part.after_mlp(counted.start)
    margins = [
        lead_of(model, part.after_mlp(rows), answer)
        for answer, rows in enumerate((counted.alone, counted.met))
    ]
    return derived(arithmetic, [counted.layer], min(margins))


def derive_decision(task: TwoSum, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    if task.form != "decision":
        raise CheckFailed("this construction answers the decision form")
    first, second = live_of(model, 2, placed=False, start=True)
    counted = count(task, model, first, reads(model, second, mlp=first), arithmetic)
    alone = first.after_mlp(counted.alone)
    met = first.after_mlp(counted.met)
    start = first.after_mlp(counted.start)
    last = Kinds(plain=alone, flagged=met)
    tokens = Kinds(plain=stacked(alone, start), flagged=met)
    looked, margin = look(model, second, tokens, last, task.length + 1, (0, 1))
    room = first.room(stacked(counted.alone, counted.met, counted.start))
    layer = counted.layer
    layer = layer._replace(entry=layer.entry | rounded(threshold_margin=room))
    return derived(arithmetic, [layer, looked], margin)


def derive_equality(task: Equality, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    first, second = live_of(model, 2)
    stream = Stream.of(model, task.length, _BITS, arithmetic)
    # a place of the first string is its own partner
    partner = np.arange(task.length) % task.n
    head, places = first.softmax_head(), np.arange(task.length)
    at = stream.by_place
    reading = Reading.each(first, head, at, at, partner, _FETCHES, places=places)
    fetched = reading.written(
        head.values(stream.by_token.rows(slice(0, _BITS)), first.where), at.hull()
    )
    # a token at any place, and what it has fetched: the same bit, or the other
    bit, other = (grid.ravel() for grid in np.indices((_BITS, _BITS)))
    rows = add(stream.by_token.rows(bit), fetched.rows(other), RESIDUAL)
    after = first.after_mlp(rows)
    kinds = Kinds(plain=after.rows(bit == other), flagged=after.rows(bit != other))
    looked, margin = look(model, second, kinds, kinds, task.length, (1, 0))
    left = first.left([fetched.rows(other)], [rows], [after])
    return derived(arithmetic, [reading.layer(_FETCHES, left), looked], margin)


DERIVATIONS = (
    Derivation(name="match2-bits", task=TwoSum, derive=derive_query, hard=around),
    Derivation(name="pairs", task=TwoSum, derive=derive_decision, hard=around),
    Derivation(name="equality", task=Equality, derive=derive_equality),
)
