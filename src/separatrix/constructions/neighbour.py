"""Nearest neighbour in two full layers: every label fetches the string before it, and the query
looks for the label whose string differs from it in the fewest bits.

Strings have d bits, labels L = ceil(log2 V), places of pairs D = ceil(log2(n + 1)); all bits are
+-1, and s = 4. The query stands where a next pair would begin.

    space     width   place of x_j   place of y_j   string x         label y
    pair      D       bits of j      bits of j      .                .
    leads     1       1              -1             .                .
    one       1       1              1              .                .
    bits      d       .              .              bits of x        .
    tag       1       .              .              -1               1
    label     L       .              .              .                bits of y
    fetched   d       written by the attention of layer 1
    near      d       written by the MLP of layer 1
    read      L       written by the attention of layer 2
    answer    L       written by the MLP of layer 2

Layer 1: K = s (pair, leads), Q = s (pair, one), V = bits. A threshold makes what is fetched +-1
again.

Layer 2: K = s (near, (d + 1) tag), Q = s (bits, one), V = label. Several strings may be nearest:
where they have one label nothing need tie exactly.
"""

from __future__ import annotations

import numpy as np

from separatrix.constructions.parts.built import recipe
from separatrix.constructions.parts.readers import readers
from separatrix.constructions.parts.spaces import (
    SCALE,
    Spaces,
    empty_model,
    fits,
    mlp_after,
    signs,
    threshold,
)
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Neighbour
from separatrix.theory.written import bits_for


@recipe(
    "neighbour",
    Neighbour,
    takes=(
        "two full layers: the first with ceil(log2(n + 1)) + 1 key dimensions and d value"
        " dimensions, the second with d + 1 and ceil(log2 V)"
    ),
)
def neighbour(task: Neighbour, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Two full layers. Source: [Bha24] for labelled vectors and a query; the weights are ours."""
    fits(task, arithmetic)
    pair = bits_for(task.n + 1)
    labels = bits_for(task.V)
    if architecture is None:
        architecture = stack(
            [
                Full(heads=1, head_dim=pair + 1, value_dim=task.d),
                Full(heads=1, head_dim=task.d + 1, value_dim=labels),
            ]
        )
    first, second = readers("neighbour", task, architecture)
    space = Spaces(
        pair=pair,
        leads=1,
        one=1,
        bits=task.d,
        tag=1,
        label=labels,
        fetched=task.d,
        near=task.d,
        read=labels,
        answer=labels,
    )
    model = empty_model(task, architecture, width=space.width, hidden=2 * max(task.d, labels))
    places = np.arange(task.length)
    position = model.position.weight
    position[:, space["pair"]] = signs(places // 2, pair)
    position[:, space["leads"]] = signs(1 - places % 2, 1)
    position[:, space["one"]] = 1.0
    embed = model.embed.weight
    embed[: task.strings, space["bits"]] = signs(task.strings, task.d)
    embed[: task.strings, space["tag"]] = -1.0
    embed[task.strings :, space["tag"]] = 1.0
    embed[task.strings :, space["label"]] = signs(task.V, labels)
    first.write(
        model,
        query=[(space["pair"], SCALE), (space["one"], SCALE)],
        key=[(space["pair"], SCALE), (space["leads"], SCALE)],
        value=space["bits"],
        target=space["fetched"],
    )
    threshold(mlp_after(model, first.place), space["fetched"], space["near"])
    second.write(
        model,
        query=[(space["bits"], SCALE), (space["one"], SCALE)],
        key=[(space["near"], SCALE), (space["tag"], SCALE * (task.d + 1))],
        value=space["label"],
        target=space["read"],
    )
    threshold(mlp_after(model, second.place), space["read"], space["answer"])
    model.head.weight[:, space["answer"]] = signs(task.V, labels)

    return model
