"""Products of a group in full layers and windows, by fan-in (theory.md, section 12, Theorem S,
forms (a) and (b)): parity, sums modulo m, permutations, elements of a group.

(a) A start token stands at place 0, the letters at 1..n; heads read the word at an offset, or that
of the start token (parts/readers.py). A word is a rearrangement of a few things: for every thing i
and place a of its block 1 where i goes to a, else -1. Layer l multiplies r_l words; S_0 = 1 and
S_l = r_l S_(l-1).

    space         width       place 0    letter x
    word_0        all pairs   identity   x
    fetched_l_j   all pairs   written by head j of layer l: word_(l-1) at the offset j S_(l-1)
    word_l        all pairs   written by the MLP of layer l

The MLP follows every thing through the words, the oldest first, with two units for each path i_0,
i_1, ..., i_r:

    relu(z - r + 3/2) - relu(z - r + 1/2),   z = the sum over u of word u at (i_(u-1), i_u)

which is 1 where every word takes its step, so that z = r, and 0 else, where z <= r - 2. Twice the
sum of those from i to a, less 1, is the product at (i, a).

(b) Where rotations tell places, but no start token, the letters stand at 0..n-1, and behind them a
token that asks, for one n = sum over l of d_l S_(l-1), d_l < r_l. Where an offset does not exist
words are whatever they are. The token that asks holds the product so far in a space of its own,
done_l, at first the identity; A letters being done, its head j <= d_l reads the offset A + 1 +
(j - 1) S_(l-1), and units of its own multiply these d_l words with it. Its other heads look at
itself, and nothing reads what they bring.

Any total task by the automaton of its prefixes' classes (theory.md, section 3, tightness of
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

import itertools
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from separatrix.constructions.parts.built import (
    Recipe,
    Spaces,
    empty_model,
    mixer_at,
    mlp_after,
    put,
    recipe,
    signs,
    step,
)
from separatrix.constructions.parts.readers import LookBack, places_of, write_places
from separatrix.core.errors import SizeError
from separatrix.mixers.automaton import AutomatonMixer
from separatrix.models.model import MLP, Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.derivation import ids_of
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Automaton, Full
from separatrix.tasks import Eva, Group, Modular, Parity, Permutation, Task
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.tracking import tracked
from separatrix.theory.written import MOST_LISTED, bits_for, fan_ins, slots, word_numbers


def multiplied(task: Task, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Layers that multiply as many words as they have heads, and one more (default: layers of one
    head).
    """
    moved = tracked(task)
    assert moved is not None
    numbers, n = word_numbers(moved), task.length
    if architecture is None:
        layer = Full(heads=1, head_dim=max(bits_for(n + 1), numbers))
        architecture = stack([layer] * bits_for(n))
    slots(f"multiplied-{task.name}", task, architecture)
    chosen, asks = fan_ins(task, architecture)
    parts = places_of([slot for slot, _ in chosen], n + 1)
    # the word that heads read, and the product that is asked for
    read, held = "word_0", "done_0" if asks else "word_0"
    parts |= dict.fromkeys((read, held), numbers)
    things = Words(moved.blocks)
    layers: list[tuple[list[LookBack], dict[str, list[str]]]] = []
    length = 1
    for level, (slot, count) in enumerate(chosen, 1):
        digit = n // length % count if asks else 0
        heads: list[LookBack] = []
        for j in range(1, count):
            asker = n % length + 1 + (j - 1) * length if j <= digit else 0
            heads.append(LookBack(slot, j - 1, min(j * length, n - asks), asker if asks else None))
            parts |= heads[-1].asks(n + 1) | {f"fetched_{level}_{j}": numbers}
        oldest_first = [f"fetched_{level}_{j}" for j in range(count - 1, 0, -1)]
        made: dict[str, list[str]] = {}
        # the last words serve who asks alone
        if not asks or level < len(chosen):
            made[f"word_{level}"] = [*oldest_first, read]
        if digit:
            made[f"done_{level}"] = [*oldest_first[-digit:], held]
        layers.append((heads, made))
        parts |= dict.fromkeys(made, numbers)
        read = f"word_{level}"
        if digit or not asks:
            held = [*made][-1]
        length *= count
    space = Spaces(**parts)
    hidden = max(sum(things.units(len(sources)) for sources in made.values()) for _, made in layers)
    beside = {"bos": not asks, "asks": asks, "placed": "address" in parts}
    model = empty_model(task, architecture, space, hidden=hidden, **beside)
    write_places(model, space)
    tokens, answers = moved.tables
    model.embed.weight[:-1, space["word_0"]] = things.code(tokens)
    identity = things.code(np.arange(moved.things)[None])[0]
    model.embed.weight[-1, space["done_0" if asks else "word_0"]] = identity
    for level, (heads, made) in enumerate(layers, 1):
        for one in heads:
            target = space[f"fetched_{level}_{one.head + 1}"]
            one.write(model, space, space[f"word_{level - 1}"], target)
        unit = 0
        for name, sources in made.items():
            words = [space[source] for source in sources]
            mlp = mlp_after(model, heads[0].slot.place)
            unit = things.multiply(mlp, words, space[name], unit)
    model.head.weight[:, space[held]] = things.code(answers)
    return model


class Words:
    """Rearrangements of things within blocks, as numbers."""

    def __init__(self, blocks: tuple[int, ...]) -> None:
        starts = itertools.accumulate(blocks, initial=0)
        self.blocks = [range(a, a + length) for a, length in zip(starts, blocks, strict=False)]
        pairs = [pair for block in self.blocks for pair in itertools.product(block, repeat=2)]
        self.number = {pair: number for number, pair in enumerate(pairs)}
        """Of a thing and a place."""

    def code(self, rows: Tokens) -> Tensor:
        """(words, numbers) of where each word sends every thing."""
        things, places = np.array(list(self.number)).T
        return torch.from_numpy(rows[:, things] == places).float() * 2 - 1

    def units(self, words: int) -> int:
        """Hidden units that multiply so many."""
        return 2 * sum(len(block) ** (words + 1) for block in self.blocks)

    def multiply(self, mlp: MLP, sources: list[slice], target: slice, unit: int) -> int:
        """target = the product of the words that stand in `sources`, the first acting first, by
        hidden units from `unit` on; the next one.
        """
        mlp.down.bias[target] = -1.0
        paths = (itertools.product(block, repeat=len(sources) + 1) for block in self.blocks)
        for number, path in enumerate(itertools.chain(*paths)):
            steps = [self.number[step] for step in itertools.pairwise(path)]
            read = [source.start + step for source, step in zip(sources, steps, strict=True)]
            written = target.start + self.number[path[0], path[-1]]
            ends = 1.5 - len(sources), 0.5 - len(sources)
            step(mlp, unit + 2 * number, [(read, 1.0)], ends, written, 2.0)
        return unit + self.units(len(sources))


RECIPES = tuple(
    Recipe(
        name=f"multiplied-{task.name}",
        task=task,
        weights=multiplied,
        takes=(
            "full layers without options, and windows that see as far, with room for the bits of a"
            " place, or full ones with rotations alone, and for a number for each thing and place"
            " of its block: n at most the product of their heads, and one more each; one less where"
            " no start token serves, and a token behind the letters asks"
        ),
        rounded=True,
    )
    for task in (Parity, Modular, Permutation, Group)
)


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
    model = empty_model(task, architecture, space, hidden=0)
    model.position.weight[: len(ids), space["place"]] = signs(len(ids), places_)
    model.embed.weight[: max(ids), space["token"]] = signs(max(ids), tokens)
    mixer = mixer_at(model, place, AutomatonMixer)
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
