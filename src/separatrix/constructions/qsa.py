"""q-sparse averaging in two full layers with one head each [San23]: every token of a set looks its
value up, and the last one averages over the set.

D = ceil(log2 n), S = ceil(log2 sets), B = ceil(log2 V) bits, +-1, lowest first; s = 4
(8 in layer 2, in fp64).

    space      width   place j < n   place of set i   token t < V   token V + p
    address    D       bits of j     0                .             .
    memory     1       +1            -1               .             .
    argument   D       .             .                .             bits of p
    set        S       0             bits of i        .             .
    value      B       .             .                bits of t     .
    fetched    B       written by layer 1
    clean      B       written by its MLP: fetched, +-1 again
    sum        1       written by layer 2
    wraps      1       written by its MLP

Layer 1 is the retrieval head (retrieval.py): K = s (address, memory), Q = s (argument, -memory).
Layer 2 compares sets, and reads z, the number whose bits are clean:

    K = s (set, -memory)    Q = s (set, -memory)    V = sum_b 2^(b-1) clean_b - (2^B - 1)/2 memory

The q tokens of the set tie, which gives the average of [San23], and times q, in `sum`, the sum. The
MLP takes V off for every w >= 1 with sum >= w V:

    wraps = -V sum_w (relu(2 (sum - w V) + 3/2) - relu(2 (sum - w V) + 1/2))

and the logit of a is a (sum + wraps) - a^2/2.
"""

from __future__ import annotations

import torch

from separatrix.constructions.parts.built import recipe
from separatrix.constructions.parts.placement import (
    SCALE,
    empty_model,
    fits,
    mlp_after,
    softmax_head,
)
from separatrix.constructions.parts.readers import Reader
from separatrix.constructions.parts.spaces import Spaces, pick, put, signs, step, threshold
from separatrix.core.errors import SizeError
from separatrix.models.model import MLP, Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import QSA
from separatrix.theory.written import bits_for, slots

MOST_READ = 1 << 24
"""Logits of all sums, which the proof compares."""


@recipe(
    "qsa",
    QSA,
    takes=(
        "two full layers: the first with ceil(log2 n) + 1 key and ceil(log2 V) value dimensions,"
        " the second with ceil(log2 sets) + 1 and 1"
    ),
)
def qsa(task: QSA, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Two full layers."""
    fits(task, arithmetic)
    if task.q * task.V**2 > MOST_READ:
        raise SizeError(
            f"{task.spec}: q V sums and V answers are compared one by one, at most {MOST_READ:,} in"
            " all; use a smaller V or q"
        )
    address, code, number = bits_for(task.n), bits_for(task.V), bits_for(task.sets)
    if architecture is None:
        dims = max(address + 1, number + 1, code)
        architecture = stack([Full(heads=1, head_dim=dims)] * 2)
    first, second = (slot.place for slot in slots("qsa", task, architecture))
    space = Spaces(
        address=address,
        memory=1,
        argument=address,
        set=number,
        value=code,
        fetched=code,
        clean=code,
        sum=1,
        wraps=1,
    )
    wraps = task.q * (task.V - 1) // task.V
    model = empty_model(task, architecture, width=space.width, hidden=2 * max(code, wraps))
    write_embeddings(task, model, space)
    Reader(first).write(
        model,
        query=[(space["argument"], SCALE), (space["memory"], -SCALE)],
        key=[(space["address"], SCALE), (space["memory"], SCALE)],
        value=[(space["value"], 1.0)],
        target=space["fetched"],
    )
    threshold(mlp_after(model, first), space["fetched"], space["clean"])
    head = softmax_head(model, second)
    # sums of ones are exact where others weigh less than the last digit of 1
    scale = 2 * SCALE if arithmetic.digits > FP32.digits else SCALE
    for matrix in (head.q.weight, head.k.weight):
        pick(matrix, [(space["set"], scale), (space["memory"], -scale)])
    head.v.weight[0, space["clean"]] = 2.0 ** (torch.arange(code) - 1.0)
    head.v.weight[0, space["memory"]] = -(2.0**code - 1) / 2
    put(head.o.weight, space["sum"], factor=float(task.q))
    write_wraps(mlp_after(model, second), space, task.V, wraps)
    answers = torch.arange(task.V, dtype=torch.float64)
    for name in ("sum", "wraps"):
        model.head.weight[:, space[name]] = answers.float()[:, None]
    model.head.bias.copy_((-answers * answers / 2).float())
    return model


def write_embeddings(task: QSA, model: Model, space: Spaces) -> None:
    """What tokens and places hold."""
    embed = model.embed.weight
    position = model.position.weight
    position[: task.n, space["address"]] = signs(task.n, bits_for(task.n))
    position[: task.n, space["memory"]] = 1.0
    position[task.n :, space["memory"]] = -1.0
    sets = signs(task.sets, bits_for(task.sets))
    position[task.n :, space["set"]] = sets.repeat_interleave(task.q, 0)
    embed[: task.V, space["value"]] = signs(task.V, bits_for(task.V))
    embed[task.V :, space["argument"]] = signs(task.n, bits_for(task.n))


def write_wraps(mlp: MLP, space: Spaces, modulus: int, wraps: int) -> None:
    """A step of -V at every multiple of V from V on."""
    source, target = space["sum"].start, space["wraps"].start
    for number in range(wraps):
        at = 2.0 * (number + 1) * modulus
        ends = 1.5 - at, 0.5 - at
        step(mlp, 2 * number, [(source, 2.0)], ends, target, -float(modulus))
