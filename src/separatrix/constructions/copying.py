"""A string copied in two full layers: every blank finds the mark, and asks for the value that
stands as far behind the first place as it stands behind the mark (theory.md, section 6).

B = ceil(log2 V) bits of a value, +-1, lowest first; s = 4.

    space     width   place p     value t     mark   another token
    number    1       p - n       .           .      .
    square    1       (p - n)^2   .           .      .
    one       1       .           1           1      1
    mark      1       .           -1          1      -1
    value     B       .           bits of t   0      0
    found     1       written by the attention of layer 1
    read      B       written by the attention of layer 2
    answer    B       written by its MLP: read, +-1 again

Layer 1: Q = s one, K = s mark, V = number. With the mark at place m, found is m - n, but for
rounding, and a blank at place p asks layer 2 for place w = p - m - 1:

    Q = s (number - found - (n + 1) one, one)     K = s (8 number, -4 square)     V = value

A place t scores 4 s^2 ((w - n)^2 - (t - w)^2), so that w leads by 64, less what rounding takes: two
places d apart differ by d^2 and, of an error e in found, by 2 d e, while sums of up to 3 n^2 round.
"""

from __future__ import annotations

import torch

from separatrix.constructions.parts.built import (
    SCALE,
    Spaces,
    empty_model,
    mixer_at,
    recipe,
    signs,
)
from separatrix.constructions.parts.readers import readers
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Copying
from separatrix.theory.written import MOST_COPIED, bits_for


@recipe(
    "copying",
    Copying,
    takes=(
        "two full layers, the second with 2 key dimensions, ceil(log2 V) value dimensions and no"
        f" norm; n <= {MOST_COPIED:,}"
    ),
)
def copying(task: Copying, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Two full layers."""
    bits = bits_for(task.V)
    if architecture is None:
        asking = Full(heads=1, head_dim=2, value_dim=bits)
        architecture = stack([Full(heads=1, head_dim=1), asking])
    marks, asks = readers("copying", task, architecture)
    space = Spaces(number=1, square=1, one=1, mark=1, value=bits, found=1, read=bits, answer=bits)
    model = empty_model(task, architecture, space, hidden=2 * bits)
    embed, position = model.embed.weight, model.position.weight
    at = torch.arange(task.length)[:, None] - float(task.n)
    position[:, space["number"]] = at
    position[:, space["square"]] = at * at
    embed[:, space["one"]] = 1.0
    embed[:, space["mark"]] = -1.0
    embed[task.V, space["mark"]] = 1.0
    embed[: task.V, space["value"]] = signs(task.V, bits)
    marks.write(model, space, {"one": 1}, {"mark": 1}, "number", "found")
    asked, held = {"number": 1, "one": 1}, {"number": 8, "square": -4}
    asks.write(model, space, asked, held, "value", "read", "answer")
    query = mixer_at(model, asks.place, SoftmaxMixer).q.weight[asks.start]
    query[space["found"]] = -SCALE
    query[space["one"]] = -SCALE * (task.n + 1.0)
    model.head.weight[:, space["answer"]] = signs(task.V, bits)
    return model
