"""Products of a group in full layers, by fan-in (theory.md, section 12, Theorem S, form (a)):
parity, sums modulo m, permutations, elements of a group.

A start token stands at place 0, the letters at 1..n; heads read the word at an offset, or that of
the start token (parts/readers.py). A word is a rearrangement of a few things: for every thing i and
place a of its block 1 where i goes to a, else -1. Layer l multiplies r_l words; S_0 = 1 and
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
"""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import torch
from torch import Tensor

from separatrix.constructions.parts.built import Recipe
from separatrix.constructions.parts.readers import LookBack, places_of, write_places
from separatrix.constructions.parts.spaces import Spaces, empty_model, mlp_after, step
from separatrix.models.model import MLP, Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Group, Modular, Parity, Permutation, Task
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.tracking import tracked
from separatrix.theory.written import bits_for, fan_ins, slots, word_numbers


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
    chosen = fan_ins(task, architecture)
    words = [count for _, count in chosen]
    layers = [
        [LookBack(slot, j - 1, j * prod(words[:level])) for j in range(1, count)]
        for level, (slot, count) in enumerate(chosen)
    ]
    parts = places_of([slot for slot, _ in chosen], n + 1) | {"word_0": numbers}
    for level, heads in enumerate(layers, 1):
        for one in heads:
            parts |= one.asks(n + 1) | {f"fetched_{level}_{one.head + 1}": numbers}
        parts[f"word_{level}"] = numbers
    space = Spaces(**parts)
    hidden = 2 * max(sum(length ** (count + 1) for length in moved.blocks) for count in words)
    placed = "address" in parts
    model = empty_model(
        task, architecture, width=space.width, hidden=hidden, bos=True, placed=placed
    )
    write_places(model, space)
    things = Words(moved.blocks)
    tokens, answers = moved.tables
    model.embed.weight[:-1, space["word_0"]] = things.code(tokens)
    model.embed.weight[-1, space["word_0"]] = things.code(np.arange(moved.things)[None])[0]
    for level, heads in enumerate(layers, 1):
        own = space[f"word_{level - 1}"]
        fetched = [space[f"fetched_{level}_{one.head + 1}"] for one in heads]
        for one, target in zip(heads, fetched, strict=True):
            one.write(model, space, own, target)
        mlp = mlp_after(model, heads[0].slot.place)
        things.multiply(mlp, [*reversed(fetched), own], space[f"word_{level}"])
    model.head.weight[:, space[f"word_{len(layers)}"]] = things.code(answers)
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

    def multiply(self, mlp: MLP, sources: list[slice], target: slice) -> None:
        """target = the product of the words that stand in `sources`, the first acting first."""
        mlp.down.bias[target] = -1.0
        paths = (itertools.product(block, repeat=len(sources) + 1) for block in self.blocks)
        for number, path in enumerate(itertools.chain(*paths)):
            steps = [self.number[step] for step in itertools.pairwise(path)]
            read = [source.start + step for source, step in zip(sources, steps, strict=True)]
            written = target.start + self.number[path[0], path[-1]]
            ends = 1.5 - len(sources), 0.5 - len(sources)
            step(mlp, 2 * number, [(read, 1.0)], ends, written, 2.0)


RECIPES = tuple(
    Recipe(
        name=f"multiplied-{task.name}",
        task=task,
        weights=multiplied,
        takes=(
            "full layers without options, with room for the bits of a place, or with rotations"
            " alone, and for a number for each thing and place of its block: n at most the product"
            " of their heads, and one more each"
        ),
        rounded=True,
    )
    for task in (Parity, Modular, Permutation, Group)
)
