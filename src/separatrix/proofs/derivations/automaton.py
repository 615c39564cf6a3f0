"""Eva by the automaton of its prefixes' classes, followed on every input: which rule each token
at each place has, the state that each prefix leads to, and the answer read off the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import prod

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.automaton import AutomatonMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import (
    Derivation,
    Derived,
    Layer,
    derived,
    ids_of,
)
from separatrix.proofs.derivations.parts.live_parts import array, live_of
from separatrix.proofs.derivations.parts.reading import CHUNK, lead_of, leads
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import RESIDUAL, Enclosure, add, limited, linear
from separatrix.tasks import Eva, Task
from separatrix.tasks.base.task import Tokens

MOST_INPUTS = 1 << 20


def derive(task: Eva, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_machine(task, model, ids_of(task), arithmetic)


def derive_machine(task: Task, model: Model, ids: list[int], arithmetic: Arithmetic) -> Derived:
    """The proof for every input, of which ids 0..ids[p]-1 may stand at place p. Raises CheckFailed
    where the weights do not bear it out, or the inputs are too many to be followed.
    """
    if prod(ids) > MOST_INPUTS:
        raise CheckFailed(f"{task.spec}: its {prod(ids):,} inputs are too many to be followed")
    (part,) = live_of(model, 1, mlp=False)
    mixer = part.mixer
    if not isinstance(mixer, AutomatonMixer):
        raise part.other("an automaton")
    table = array(mixer.table)
    if not bool(np.isfinite(table).all()):
        raise CheckFailed(f"{part.where}: its table holds what is no number")
    digits = 1 << np.arange(mixer.bits)
    table = (table > 0) @ digits
    weight, bias = array(mixer.rules.weight), array(mixer.rules.bias)
    at = Embedded.of(model, len(ids), arithmetic)
    last = at.embed
    states = np.zeros(1, np.int64)
    most = 1
    lead = np.inf
    for place, count in enumerate(ids):
        last = at.tokens(slice(0, count), slice(place, place + 1))
        scores = linear(last, weight, bias, what=f"{part.where}, rules")
        # a mixer adds up all of them, times 0
        limited(scores.size.sum(1), f"{part.where}, rules", arithmetic)
        rule = scores.mid.argmax(1)
        lead = min(lead, float(leads(scores, rule).min()))
        # a row for each prefix, a column for each token that may follow
        states = table[rule].astype(np.int64).T[states].reshape(-1)
        most = max(most, len(np.unique(states)))
    if lead <= 0:
        raise CheckFailed(f"{part.where}: two rules may score alike for some token")
    # what is read of each state, its digits as +-1, beside each last token
    signs = np.where(np.arange(1 << mixer.bits)[:, None] & digits, 1.0, -1.0)
    what = f"{part.where}, o"
    read = linear(Enclosure.point(signs, arithmetic), array(mixer.o.weight), what=what)
    answers = task.answer(np.stack(np.unravel_index(np.arange(prod(ids)), ids), 1))
    tokens = np.arange(len(states)) % ids[-1]
    ends = np.unique(np.stack([states, tokens, answers]), axis=1)
    margin = min(
        lead_of(model, add(last.rows(token), read.rows(state), RESIDUAL), answer)
        for state, token, answer in _some(ends, max(1, CHUNK // model.config.width))
    )
    if margin <= 0:
        raise CheckFailed("the answer of some input has not the largest logit")
    said = entry(
        part.place, states=most, bits=mixer.bits, rules=len(weight), rule_lead=Fraction(lead)
    )
    layer = Layer(said, "carriers", int(weight.any(0).sum()), mixer.bits)
    return derived(arithmetic, [layer], margin)


def _some(table: Tokens, columns: int) -> Iterator[Tokens]:
    """So many columns at a time."""
    return (table[:, at : at + columns] for at in range(0, table.shape[1], columns))


DERIVATIONS = (Derivation(name="automaton", task=Eva, derive=derive),)
