"""Eva by the automaton of its prefixes' classes, followed on every input: which rule each token
at each place has, the state that each prefix leads to, and the answer read off the last.

All numbers on the way are held exactly (proofs/exact.py): nothing is rounded.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.automaton import AutomatonMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import array, live_of
from separatrix.proofs.derivations.retrieval import ids
from separatrix.proofs.entries import entry
from separatrix.proofs.exact import Columns, Digits, leads, linear
from separatrix.proofs.machine import Array
from separatrix.tasks import Eva, Task
from separatrix.tasks.base.task import Tokens

MOST_INPUTS = 1 << 20


def derive(task: Eva, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_machine(task, model, ids(task), arithmetic)


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
    digits = Digits()
    embed, position = array(model.embed.weight), array(model.position.weight)
    both = Columns.of(embed).plus(Columns.of(position), digits, "the residual stream")
    weight, bias = array(mixer.rules.weight), array(mixer.rules.bias)
    both.through(weight, bias, digits, f"{part.where}, rules")
    table = (array(mixer.table) > 0) @ (1 << np.arange(mixer.bits))
    if not bool(np.isfinite(array(mixer.table)).all()):
        raise CheckFailed(f"{part.where}: its table holds what is no number")
    states = np.zeros(1, np.int64)
    most = 1
    lead = np.inf
    for place, count in enumerate(ids):
        scores = (embed[:count] + position[place]) @ weight.T + bias
        rule = scores.argmax(1)
        lead = min(lead, float(leads(scores, rule).min(initial=np.inf)))
        # a row for each prefix, a column for each token that may follow
        states = table[rule].astype(np.int64).T[states].reshape(-1)
        most = max(most, len(np.unique(states)))
    if lead <= 0:
        raise CheckFailed(f"{part.where}: two rules score alike for some token")
    answers = task.answer(np.stack(np.unravel_index(np.arange(prod(ids)), ids), 1))
    margin = _read(
        model, mixer, embed[: ids[-1]] + position[len(ids) - 1], states, answers, digits, part.where
    )
    digits.hold(arithmetic)
    said = entry(
        part.place, states=most, bits=mixer.bits, rules=len(weight), rule_lead=Fraction(lead)
    )

    layer = Layer(said, "carriers", int(weight.any(0).sum()), mixer.bits)
    return derived(arithmetic, [layer], Fraction(margin))


def _read(
    model: Model,
    mixer: AutomatonMixer,
    last: Array,
    states: Tokens,
    answers: Tokens,
    digits: Digits,
    where: str,
) -> float:
    """The smallest lead of the right logit."""
    digits_of = (np.arange(1 << mixer.bits)[:, None] >> np.arange(mixer.bits)) & 1
    signs = (2 * digits_of - 1).astype(np.float64)
    written = linear(signs, array(mixer.o.weight), None, digits, f"{where}, o")
    whole = Columns.of(last).plus(Columns.of(written), digits, "the residual stream")
    head, bias = array(model.head.weight), array(model.head.bias)
    whole.through(head, bias, digits, "the head")
    of_state, of_token = written @ head.T, last @ head.T + bias
    logits = of_state[states] + np.tile(of_token, (len(states) // len(last), 1))
    found = leads(logits, answers)
    worst = int(found.argmin())
    if found[worst] <= 0:
        raise CheckFailed(f"the answer of input {worst} has not the largest logit")
    return float(found[worst])


DERIVATIONS = (Derivation(name="automaton", task=Eva, derive=derive, ids=ids),)
