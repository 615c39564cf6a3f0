"""Parity, and the number of ones modulo m, by one full layer that counts and the MLP behind it
(theory.md, section 12, Theorem S, abelian groups).

    space    width   a bit       written by
    ones     1       the bit
    count    1       B           attention: + n (c / n), c the number of ones
    rest     1       0           the MLP: c modulo m

All queries are 0, so that every bit weighs 1/n, and the average of the bits is c/n, but for
rounding. With p digits of a number B = 2^(p-2): from there on numbers of the format are
multiples of 1/2, so that B + c is stored exactly wherever what is added is less than 1/4 away from
c. B = 0 where n is a power of two and no gate stands behind the average: nothing is rounded then.

    c mod m = c - m [c >= m] - m [c >= 2 m] - ...,   [c >= k] = relu(c - k + 1) - relu(c - k)

All of it are whole numbers, whose sizes add up to n^2 + n at most, which float32 holds.
"""

from __future__ import annotations

import torch

from separatrix.constructions.parts.built import Recipe
from separatrix.constructions.parts.placement import empty_model, mlp_after, softmax_head
from separatrix.constructions.parts.readers import settle
from separatrix.constructions.parts.spaces import Spaces, pick, put
from separatrix.constructions.tracked import nearest
from separatrix.models.model import MLP, Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Modular, Parity
from separatrix.theory.written import slots


def counted(
    task: Parity | Modular, architecture: Architecture | None, arithmetic: Arithmetic
) -> Model:
    """One full layer; no positions, no start token."""
    architecture = architecture or stack([Full(heads=1, head_dim=1)])
    ((place, *_),) = slots(f"counted-{task.name}", task, architecture)
    space = Spaces(ones=1, count=1, rest=1)
    hidden = 1 + 2 * (task.n // task.answers)
    model = empty_model(task, architecture, width=space.width, hidden=hidden, placed=False)
    mixer = softmax_head(model, place)
    whole = 2.0 ** (min(arithmetic.digits, FP32.digits) - 2)
    if task.n & (task.n - 1) == 0 and mixer.gate is None:
        whole = 0.0
    model.embed.weight[1, space["ones"]] = 1.0
    model.embed.weight[:, space["count"]] = whole
    pick(mixer.v.weight, [(space["ones"], 1.0)])
    put(mixer.o.weight, space["count"], factor=task.n * (2.0 if mixer.gate is not None else 1.0))
    settle(mixer)
    write_remainder(mlp_after(model, place), space, task.answers, whole)
    nearest(model, space["rest"], torch.arange(float(task.answers))[:, None])
    return model


def write_remainder(mlp: MLP, space: Spaces, m: int, whole: float) -> None:
    """`rest`: what stands in `count` above `whole`, modulo m."""
    units = torch.arange(len(mlp.up.weight))
    mlp.up.weight[:, space["count"]] = 1.0
    # a number from k - 1 on and from k on, for each multiple k of m; the first one is c itself
    first = (units + 1) // 2 * m - units % 2
    mlp.up.bias.copy_(-(whole + first))
    mlp.down.weight[space["rest"]] = torch.where(units % 2 == 1, -float(m), float(m))
    mlp.down.weight[space["rest"], 0] = 1.0


RECIPES = tuple(
    Recipe(
        name=f"counted-{task.name}",
        task=task,
        weights=counted,
        takes="one causal full layer of any size, without a cap; no positions; at most 2,048 bits",
    )
    for task in (Parity, Modular)
)
