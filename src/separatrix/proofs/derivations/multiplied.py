"""Products of a group in full layers, each of which fetches the words at several offsets, and whose
MLP multiplies them with the token's own.

Places are found by addresses, or by rotations alone, where the start token must win whatever has no
token at its offset. By induction on layers, for every token of every prompt at once: before a layer
that looks back S places, 2 S, ... a token holds the product of its last S letters, or of all up to
itself, and the start token the identity. So each layer is proved for every place, whose offset must
win, and for every choice of words that it may multiply.

Eva by the automaton of its prefixes' classes, followed on every input: which rule each token
at each place has, the state that each prefix leads to, and the answer read off the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.mixers.automaton import AutomatonMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.compared import OPTIONS, Heads, check_offsets, looking_back
from separatrix.proofs.derivations.parts.derivation import (
    Derivation,
    Derived,
    Layer,
    derived,
    ids_of,
)
from separatrix.proofs.derivations.parts.live_parts import Live, array, live_of, live_parts
from separatrix.proofs.derivations.parts.reading import CHUNK, all_of, lead_of, leads, readout
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.derivations.tracked import counted, tracking
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import RESIDUAL, Enclosure, add, hull, limited, linear, stacked
from separatrix.tasks import Eva, Group, Modular, Parity, Permutation, Task
from separatrix.tasks.base.task import Tokens

MOST_COMBINED = 1 << 16
"""Choices of words of one layer."""


@dataclass(frozen=True)
class Held:
    """What tokens hold before a layer."""

    by_place: Enclosure
    """A row per place, the start token's first, whatever the word."""
    words: NDArray[np.int64]
    """Elements of the group that some token may hold."""
    by_word: Enclosure
    """A row for each, at whatever place."""


def derive(task: Task, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of all layers. Raises CheckFailed where the weights do not bear it out."""
    table = products(task)
    # whatever finds places, the score of the right key leads by it
    live = live_of(model, len(live_parts(model, placed=False)), placed=False, start=True)
    held = _embedded(task, model, arithmetic)
    layers: list[Layer] = []
    most, back = 1, 1
    for part in live:
        heads = Heads.of(part, OPTIONS)
        most = max(most, len(heads.each))
        found, held = _multiplied(part, heads, back, held, table)
        layers.append(found)
        back *= len(heads.each) + 1
    if back < task.length:
        raise CheckFailed(f"{len(live)} layers multiply {back:,} letters, of {task.length:,}")
    margin = readout(model, held.by_word, answers=held.words)
    return derived(arithmetic, layers, margin, **({"most_heads": most} if most > 1 else {}))


def products(task: Task) -> Tokens:
    """(order, order): the product of any two elements, the first acting first; element 0 is the
    identity, and the answer of each is its number.
    """
    bits = isinstance(task, Parity | Modular)
    # two bits are followed there, and here sums of them are multiplied
    found = counted(task.answers, task.answers) if bits else tracking(task)
    return found.followed[0].step


def _embedded(task: Task, model: Model, arithmetic: Arithmetic) -> Held:
    """Letters, each an element, and the start token, which is the identity, and of which nothing
    but its place is exact.
    """
    at = Embedded.of(model, task.length + 1, arithmetic)
    ids = np.arange(task.vocabulary)
    letters, places = slice(0, task.vocabulary), slice(1, None)
    start, tokens = at.start(task.vocabulary), at.tokens(letters, places)
    identity = hull(start, tokens.rows(slice(0, 1)))
    by_word = stacked(identity, tokens.rows(slice(1, None)))
    return Held(stacked(start, at.places(places, letters)), ids, by_word)


def _multiplied(
    part: Live, heads: Heads, back: int, before: Held, table: Tokens
) -> tuple[Layer, Held]:
    """A layer that multiplies the words at offsets of 0, `back`, twice that, ..."""
    places = len(before.by_place.mid)
    count = len(before.words)
    choices = count ** (len(heads.each) + 1)
    if choices > MOST_COMBINED:
        raise CheckFailed(
            f"{part.where}: {choices:,} choices of words are too many to go through; use fewer"
            " heads and more layers"
        )
    fetches = "the products at these offsets"
    others = looking_back(part, heads, before.by_place, before.by_word, fetches)
    due = [min((j + 1) * back, places - 1) for j in range(len(others))]
    check_offsets(part, others, due)
    found: dict[int, Enclosure] = {}
    mixed: list[Enclosure] = []
    wrote: list[Enclosure] = []
    step = max(1, CHUNK // before.by_word.mid.shape[1])
    for start in range(0, choices, step):
        some = np.arange(start, min(start + step, choices))
        own, *rows = np.unravel_index(some, (count,) * (len(others) + 1))
        averages = {one.head: one.fetched.rows(row) for one, row in zip(others, rows, strict=True)}
        wrote.append(heads.written(averages))
        mixed.append(add(before.by_word.rows(own), wrote[-1], RESIDUAL))
        after = part.after_mlp(mixed[-1])
        product = before.words[own]
        for row in rows:
            product = table[before.words[row], product]
        for word in np.unique(product).tolist():
            held = after.rows(np.flatnonzero(product == word)).hull()
            found[word] = hull(found[word], held) if word in found else held
    words = np.array(sorted(found))
    by_word = stacked(*(found[word] for word in words.tolist()))
    left = part.left(wrote, mixed, [by_word], every=False)
    # at a place that the layer does not write to, what stood there; else what any word may leave
    _, _, down, bias = part.weights
    kept = ~((heads.o != 0.0).any(1) | (down != 0.0).any(1) | (bias != 0.0))
    still, any_word = before.by_place, by_word.hull()
    by_place = still.like(
        np.where(kept, still.mid, any_word.mid), np.where(kept, still.rad, any_word.rad)
    )
    layer = all_of([one.reading for one in others]).layer(
        fetches, left, offsets=due, words=len(words)
    )
    return layer, Held(by_place, words, by_word)


MOST_INPUTS = 1 << 20


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


def derive_automaton(task: Eva, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_machine(task, model, ids_of(task), arithmetic)


DERIVATIONS: tuple[Derivation[Any], ...] = (
    *(
        Derivation(name=f"multiplied-{task.name}", task=task, derive=derive)
        for task in (Parity, Modular, Permutation, Group)
    ),
    Derivation(name="automaton", task=Eva, derive=derive_automaton),
)
