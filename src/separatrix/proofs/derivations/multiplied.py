"""Products of a group in full layers, each of which fetches the words at several offsets, and whose
MLP multiplies them with the token's own.

Places are found by addresses, or by rotations alone, where the start token must win whatever has no
token at its offset. By induction on layers, for every token of every prompt at once: before a layer
that looks back S places, 2 S, ... a token holds the product of its last S letters, or of all up to
itself, and the start token the identity. So each layer is proved for every place, whose offset must
win, and for every choice of words that it may multiply.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.hops import OPTIONS, Heads, check_offsets, looking_back
from separatrix.proofs.derivations.parts.live_parts import Live, live_of, live_parts
from separatrix.proofs.derivations.parts.reading import CHUNK, all_of, readout
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.derivations.tracked import counted, tracking
from separatrix.proofs.machine import RESIDUAL, Enclosure, add, hull, stacked
from separatrix.tasks import Group, Modular, Parity, Permutation, Task
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


DERIVATIONS = tuple(
    Derivation(name=f"multiplied-{task.name}", task=task, derive=derive)
    for task in (Parity, Modular, Permutation, Group)
)
