"""Products of a group in full layers, by fan-in (theory.md, section 12, Theorem S, form (a)):
parity, sums modulo m, permutations, elements of a group.

A start token stands at place 0, the letters at 1..n. Places have A = ceil(log2(n + 1)) bits, +-1.
A word is a rearrangement of a few things: for every thing i and place a of its block 1 where i goes
to a, else -1. Layer l multiplies r_l words; S_0 = 1 and S_l = r_l S_(l-1).

    space         width       place p                  place 0    letter x
    address       A           bits of p                bits of 0  .
    asked_l_j     A           bits of p - j S_(l-1),   bits of 0  .
                              or of 0
    word_0        all pairs   .                        identity   x
    fetched_l_j   all pairs   written by head j of layer l
    word_l        all pairs   written by the MLP of layer l

Where a layer finds places by rotations alone, 1 for letters and 1 for the start token stand instead
of addresses. Keys of letters are 1 in the first number of every pair, and every token asks for the
offset d = j S_(l-1) with

    s w_r (cos(-d theta_r), sin(-d theta_r))   in pair r, w_r = ratio^r, W = sum_r w_r

which scores s W at that offset and less elsewhere, by a share `gap` of that at least. The start
token scores s W (1 - gap / 2), between the two: in a dimension that no rotation turns, by a key as
long as those of letters, so that a norm scales both alike; or in the slowest pair.

Head j < r_l of layer l reads word_(l-1) at the place asked for, which leads by 2 s^2 = 32 where it
has an address, and by ln(n + 1) + 17 at least where it has none. Before layer l a token holds the
product of its last S_(l-1) letters, or of all that there are: the start token is the identity for
places before the first. The MLP follows every thing through the words, the oldest first, with two
units for each path i_0, i_1, ..., i_r:

    relu(z - r + 3/2) - relu(z - r + 1/2),   z = the sum over u of word u at (i_(u-1), i_u)

which is 1 where every word takes its step, so that z = r, and 0 else, where z <= r - 2. Twice the
sum of those from i to a, less 1, is the product at (i, a).
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from torch import Tensor

from separatrix.constructions.parts.built import Recipe
from separatrix.constructions.parts.placement import SCALE, empty_model, mlp_after, softmax_head
from separatrix.constructions.parts.readers import write_norms
from separatrix.constructions.parts.spaces import Spaces, pick, put, signs
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.models.model import MLP, Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.rotations import single_frequencies
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Group, Modular, Parity, Permutation, Task
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.tracking import tracked
from separatrix.theory.written import Slot, bits_for, fan_ins, slots, word_numbers


def multiplied(task: Task, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Layers that multiply as many words as they have heads, and one more (default: layers of one
    head).
    """
    moved = tracked(task)
    assert moved is not None
    address, numbers, n = bits_for(task.length + 1), word_numbers(moved), task.length
    if architecture is None:
        layer = Full(heads=1, head_dim=max(address, numbers))
        architecture = stack([layer] * bits_for(n))
    slots(f"multiplied-{task.name}", task, architecture)
    chosen = fan_ins(task, architecture)
    parts = {"letter": 1, "start": 1} if any(slot.lead for slot, _ in chosen) else {}
    placed = not all(slot.lead for slot, _ in chosen)
    parts |= ({"address": address} if placed else {}) | {"word_0": numbers}
    for level, (slot, count) in enumerate(chosen, 1):
        for j in range(1, count):
            parts |= {} if slot.lead else {f"asked_{level}_{j}": address}
            parts[f"fetched_{level}_{j}"] = numbers
        parts[f"word_{level}"] = numbers
    space = Spaces(**parts)
    hidden = 2 * max(sum(length ** (count + 1) for length in moved.blocks) for _, count in chosen)
    model = empty_model(
        task, architecture, width=space.width, hidden=hidden, bos=True, placed=placed
    )
    things = Words(moved.blocks)
    tokens, answers = moved.tables
    model.embed.weight[:-1, space["word_0"]] = things.code(tokens)
    model.embed.weight[-1, space["word_0"]] = things.code(np.arange(moved.things)[None])[0]
    if "letter" in parts:
        model.embed.weight[:-1, space["letter"]] = 1.0
        model.embed.weight[-1, space["start"]] = 1.0
    at = np.arange(n + 1)
    if placed:
        model.position.weight[:, space["address"]] = signs(at, address)
    back = 1
    for level, (slot, count) in enumerate(chosen, 1):
        mixer = softmax_head(model, slot.place)
        for j in range(1, count):
            group = (j - 1) // (mixer.heads // mixer.kv)
            query, key = (
                matrix.weight[one * mixer.head_dim : (one + 1) * mixer.head_dim]
                for matrix, one in ((mixer.q, j - 1), (mixer.k, group))
            )
            if slot.lead:
                turn_back(mixer, query, key, slot, min(j * back, n), space)
            else:
                asked = space[f"asked_{level}_{j}"]
                model.position.weight[:, asked] = signs(np.maximum(at - j * back, 0), address)
                pick(query, [(asked, SCALE)])
                pick(key, [(space["address"], SCALE)])
            values = slice(group * mixer.dv, (group + 1) * mixer.dv)
            pick(mixer.v.weight[values], [(space[f"word_{level - 1}"], 1.0)])
            own = mixer.o.weight[:, (j - 1) * mixer.dv : j * mixer.dv]
            # a gate of 0 halves
            put(own, space[f"fetched_{level}_{j}"], factor=1.0 if mixer.gate is None else 2.0)
        sources = [space[f"fetched_{level}_{j}"] for j in range(count - 1, 0, -1)]
        sources.append(space[f"word_{level - 1}"])
        things.multiply(mlp_after(model, slot.place), sources, space[f"word_{level}"])
        back *= count
    model.head.weight[:, space[f"word_{len(chosen)}"]] = things.code(answers)
    return model


def turn_back(
    mixer: SoftmaxMixer, query: Tensor, key: Tensor, slot: Slot, offset: int, space: Spaces
) -> None:
    """A head (head_dim, width) that asks for an offset by rotations, or else for the start token;
    as clearly as `slot` says.
    """
    assert slot.lead is not None
    assert mixer.rotation is not None
    letter, start = space["letter"].start, space["start"].start
    pairs = mixer.rotation.dims // 2
    weights = slot.lead.ratio ** np.arange(pairs)
    total = float(weights.sum())
    scale = 2.0 ** math.ceil(math.log2(slot.score / total))
    turn = -offset * single_frequencies(mixer.rotation)
    asked = np.concatenate([weights * np.cos(turn), weights * np.sin(turn)])
    query[: 2 * pairs, [letter, start]] = torch.from_numpy(scale * asked[:, None]).float()
    key[:pairs, letter] = 1.0
    blank = (1 - slot.lead.gap / 2) * total
    if len(key) == slot.start:
        key[pairs - 1, start] = blank / float(weights[-1])
        return
    blank /= math.sqrt(pairs)
    query[slot.start, [letter, start]] = scale * blank
    key[slot.start, start] = math.sqrt(pairs)
    # |q| |k| over the largest score
    long = math.sqrt(pairs * (float(weights @ weights) + blank**2)) / total
    write_norms(mixer, mixer.head_dim, math.sqrt(slot.score * long))


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
            for unit, offset, sign in ((2 * number, 1.5, 2.0), (2 * number + 1, 0.5, -2.0)):
                mlp.up.weight[unit, read] = 1.0
                mlp.up.bias[unit] = offset - len(sources)
                mlp.down.weight[written, unit] = sign


RECIPES = tuple(
    Recipe(
        name=f"multiplied-{task.name}",
        task=task,
        weights=multiplied,
        theorem="S",
        takes=(
            "full layers without options, with room for the bits of a place, or with rotations"
            " alone, and for a number for each thing and place of its block: n at most the product"
            " of their heads, and one more each"
        ),
        rounded=True,
    )
    for task in (Parity, Modular, Permutation, Group)
)
