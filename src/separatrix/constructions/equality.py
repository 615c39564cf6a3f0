"""Equality of two strings in two full layers: the first flags every place where they differ, the
second looks for a flag.

A place of either string holds the address of its bit, D = ceil(log2 n) bits of +-1, and a tag that
only the first string has; s = 4.

    space     width   place j of u      place i of v      token b
    place     D       bits of j         bits of i         .
    first     1       1                 -1                .
    one       1       1                 1                 .
    bit       1       .                 .                 +-1
    fetched   1       written by the attention of layer 1
    differs   1       written by the MLP of layer 1
    found     1       written by the attention of layer 2

Layer 1: K = s (place, first), Q = s (place, one), V = bit. The place of u with the same address
scores s^2 (D + 1), all else at most s^2 (D - 1). So a place of v fetches its partner, and a place
of u fetches itself. The MLP writes a flag where y = bit - fetched is 2 or -2:

    differs = (relu(2 y - 1) - relu(2 y - 3) + relu(-2 y - 1) - relu(-2 y - 3)) / 2

which is 0 for |y| <= 1/2 and 1 from 3/2 on. Layer 2 looks for a flag (parts/flags.py): 0 arrives
without one, and within 2 n e^-32 of 1 with any. The logits are (found, 1/2).
"""

from __future__ import annotations

import numpy as np

from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.chain import SCALE, fits
from separatrix.constructions.parts.comparing import two_comparing
from separatrix.constructions.parts.flags import write_looking
from separatrix.constructions.parts.placement import (
    empty_model,
    mlp_after,
)
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.parts.spaces import Spaces, bits_for, put, signs
from separatrix.models.model import MLP, Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Equality

_HIDDEN = 4


def equality(
    task: Equality, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every input of `task` in two full layers of `architecture` (default: a
    stack of just those).

    Raises SizeError when there are too few full layers that are wide enough, or n is beyond what
    float32 can be bounded for.
    Source: [Bha24], in the form of theory.md, section 6.
    """
    fits(task, arithmetic)
    bits = bits_for(task.n)
    if architecture is None:
        architecture = stack([Full(heads=1, head_dim=bits + 1, value_dim=1)] * 2)
    first, second = two_comparing(task, architecture, keys=bits + 1)
    space = Spaces(place=bits, first=1, one=1, bit=1, fetched=1, differs=1, found=1)
    model = empty_model(task, architecture, width=space.width, hidden=_HIDDEN)
    _write_embeddings(task, model, space)
    first.write(
        model,
        query=[(space["place"], SCALE), (space["one"], SCALE)],
        key=[(space["place"], SCALE), (space["first"], SCALE)],
        value=[(space["bit"], 1.0)],
        target=space["fetched"],
    )
    _write_difference(mlp_after(model, first.place), space)
    write_looking(model, space, second, one="one", flag="differs")
    # logits (found, 1/2)
    put(model.head.weight.T[space["found"]].T, slice(0, 1))
    model.head.bias[1] = 0.5

    return built(task, model, name="equality", arithmetic=arithmetic)


def _write_embeddings(task: Equality, model: Model, space: Spaces) -> None:
    bits = bits_for(task.n)
    position = model.position.weight
    position[:, space["place"]] = signs(np.arange(task.length) % task.n, bits)
    position[: task.n, space["first"]] = 1.0
    position[task.n :, space["first"]] = -1.0
    position[:, space["one"]] = 1.0
    model.embed.weight[:, space["bit"]] = signs(2, 1)


def _write_difference(mlp: MLP, space: Spaces) -> None:
    """differs, as in the line above."""
    unit = 0
    for side in (2.0, -2.0):
        for bias, sign in ((-1.0, 0.5), (-3.0, -0.5)):
            mlp.up.weight[unit, space["bit"]] = side
            mlp.up.weight[unit, space["fetched"]] = -side
            mlp.up.bias[unit] = bias
            mlp.down.weight[space["differs"], unit] = sign
            unit += 1


RECIPE = Recipe(
    name="equality",
    task=Equality,
    build=equality,
    theorem="equality",
    takes=("two full layers, the first with ceil(log2 n) + 1 key dimensions"),
)
