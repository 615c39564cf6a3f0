"""Any total task by the automaton of its prefixes' classes (theory.md, section 3, tightness of
Theorem I).

Two prefixes are of one class when every continuation has the same answer after both. Classes are
found from the end: after the last token a class is an answer, and before a token two classes are
one where every token leads them to the same class. Classes at a place are numbered from 0, so that
the empty prefix, which is alone, is state 0, as the layer starts; b = ceil(log2 max_t C(t)) bits
number them all.

    space    width                 place t      token x      written by the layer
    place    ceil(log2 length)     bits of t    .            .
    token    ceil(log2 ids)        .            bits of x    .
    state    b                     .            .            bits of the state

There is a rule for every token that may stand at a place, whose key is (bits of t, bits of x): it
scores all P bits against its own token there, and at most P - 2 against any other. Its row of the
table is the map of classes. The head compares the state with the number of each answer's class: b
against at most b - 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul

import numpy as np
import torch
from numpy.typing import NDArray

from separatrix.constructions.parts.built import recipe
from separatrix.constructions.parts.spaces import Spaces, empty_model, mixer_at, put, signs
from separatrix.core.errors import SizeError
from separatrix.mixers.automaton import AutomatonMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.derivation import ids_of
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Automaton
from separatrix.tasks import Eva, Task
from separatrix.theory.written import MOST_LISTED, bits_for, slots

Classes = NDArray[np.int64]


@dataclass(frozen=True)
class Quotient:
    """The automaton of a task."""

    maps: tuple[Classes, ...]
    """For each place (classes before it, tokens): the class behind it."""
    answers: Classes
    """The answer of each class after the last token."""

    @classmethod
    def of(cls, task: Task, ids: list[int]) -> Quotient:
        """Of a task whose place p may hold ids 0..ids[p]-1, whatever stands before. Raises
        SizeError where its inputs are too many to be listed.
        """
        # products of all lengths are not multiplied out
        if any(count > MOST_LISTED for count in accumulate(ids, mul)):
            raise too_many(task)
        inputs = np.stack(np.unravel_index(np.arange(prod(ids)), ids), 1)
        answers, classes = np.unique(task.answer(inputs), return_inverse=True)
        maps: list[Classes] = []
        for count in reversed(ids):
            rows, classes = np.unique(classes.reshape(-1, count), axis=0, return_inverse=True)
            maps.insert(0, rows)
        return cls(tuple(maps), answers)

    @property
    def counts(self) -> list[int]:
        """C(t) for every prefix length t."""
        return [*(len(rows) for rows in self.maps), len(self.answers)]

    @property
    def bits(self) -> int:
        """b."""
        return max(1, bits_for(max(self.counts)))


@recipe(
    "automaton",
    Eva,
    takes=(
        "an automaton with ceil(n log2 V) bits and a rule for every token at every place, n V + n;"
        " at most 2^20 inputs"
    ),
)
def automaton(task: Eva, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """One automaton (default: one of ceil(n log2 V) bits). Raises SizeError where it has too few
    bits or rules, or the task too many inputs to be listed.
    """
    # its inputs are no fewer than its arguments
    if task.n > MOST_LISTED:
        raise too_many(task)
    return machine(task, ids_of(task), architecture)


def too_many(task: Task) -> SizeError:
    """The refusal of a task whose inputs cannot be listed."""
    return SizeError(
        f"{task.spec}: the automaton is found from all inputs, at most {MOST_LISTED:,}; these are"
        " more: use a smaller n"
    )


def machine(task: Task, ids: list[int], architecture: Architecture | None) -> Model:
    """A model whose one automaton answers every input of the task (default: a stack of just that,
    with no bit and no rule to spare). Raises SizeError, saying what is needed.
    """
    quotient = Quotient.of(task, ids)
    rules = sum(ids)
    architecture = architecture or stack([Automaton(bits=quotient.bits, rules=rules)])
    ((place, *_),) = slots("automaton", task, architecture)
    places_, tokens = bits_for(len(ids)), bits_for(max(ids))
    space = Spaces(place=places_, token=tokens, state=quotient.bits)
    model = empty_model(task, architecture, width=space.width, hidden=0)
    model.position.weight[: len(ids), space["place"]] = signs(len(ids), places_)
    model.embed.weight[: max(ids), space["token"]] = signs(max(ids), tokens)
    mixer = mixer_at(model, place)
    assert isinstance(mixer, AutomatonMixer)
    rule = 0
    for at, (rows, count) in enumerate(zip(quotient.maps, ids, strict=True)):
        for token in range(count):
            mixer.rules.weight[rule, space["place"]] = signs(np.array([at]), places_)[0]
            mixer.rules.weight[rule, space["token"]] = signs(np.array([token]), tokens)[0]
            mixer.table[rule, : len(rows), : quotient.bits] = signs(rows[:, token], quotient.bits)
            rule += 1
    # rules to spare score less than any
    mixer.rules.bias[rule:] = -2.0 * (places_ + tokens)
    put(mixer.o.weight, space["state"])
    answers = torch.from_numpy(quotient.answers)
    model.head.weight[answers, space["state"]] = signs(len(answers), quotient.bits)
    return model
