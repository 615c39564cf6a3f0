"""The two layers that decide by flags, as weights: a start token that counts matches, and a last
token that looks for a flag.

Counting. Every token asks for the bits of the value that it is to meet; the start token scores as
much as a match. With D bits and s = 4:

    K token = s (bits of x, 0)      K start = s (0, D)      Q = s (bits wanted, 1)
    V = 1 at the start token, 0 elsewhere

A match scores s^2 D, the start token too, everything else at most s^2 (D - 2). So with c matches
the start token weighs 1/(1 + c), less what n e^(-2 s^2) takes.

Looking. Keys are 8 times the flag, queries 4: a flag, which is 0 or 1, leads by 2 s^2 = 32. Values
are flags, too: what arrives is 0 without a flag, and within n e^-32 of 1 with any.
"""

from __future__ import annotations

import torch

from separatrix.architecture import Architecture, Place
from separatrix.constructions.parts.chain import SCALE
from separatrix.constructions.parts.placement import (
    last_full,
    places,
    softmax_head,
    wide_enough,
)
from separatrix.constructions.parts.spaces import Spaces, bits_for, pick, put, signs
from separatrix.mechanisms import Full
from separatrix.model import Model
from separatrix.tasks import Task, TwoSum

OWN = 0.25
"""What a token holds that meets itself: with it the weight of the start token is 3/4 with the token
alone and at most 7/12 with another match, as it is 1 and at most 1/2 for other tokens.
"""
THRESHOLD = 85 / 128
"""Between the two, and of 7 binary digits."""


def flagging_places(
    task: Task, architecture: Architecture, *, keys: int, values: int = 1, last: tuple[int, int]
) -> tuple[Place, Place]:
    """The last two full layers of which the first has so many key and value dimensions, and the
    second has those of `last`. Raises SizeError, saying what is needed, where there are none such.
    """
    (second,) = last_full(task, architecture, 1, head_dim=last[0], value_dim=last[1])
    wide = places(
        architecture, lambda part: isinstance(part, Full) and wide_enough(part, keys, values)
    )
    before = [place for place in wide if place[0] < second[0]]
    if before:
        return before[-1], second
    # one layer that is wide enough is not two: this says so
    first, second = last_full(
        task,
        architecture,
        2,
        head_dim=max(keys, last[0]),
        value_dim=max(values, last[1]),
    )
    return first, second


def counting_spaces(task: TwoSum) -> dict[str, int]:
    """Spaces of the residual stream that counting takes."""
    bits = bits_for(task.M)
    return {"value": bits, "partner": bits, "token": 1, "start": 1, "own": 1, "weight": 1}


def counting_keys(task: TwoSum) -> int:
    """Key dimensions: the bits of a value, and one for the start token."""
    return bits_for(task.M) + 1


def write_counting(task: TwoSum, model: Model, space: Spaces, place: Place) -> None:
    """The embeddings, and the head that leaves the start token's weight in "weight"."""
    bits = bits_for(task.M)
    values = torch.arange(task.M)
    partners = (-values) % task.M
    embed = model.embed.weight
    embed[: task.M, space["value"]] = signs(task.M, bits)
    embed[: task.M, space["partner"]] = signs(partners.numpy(), bits)
    embed[: task.M, space["token"]] = 1.0
    embed[: task.M, space["own"]] = OWN * (partners == values).float()[:, None]
    embed[task.M, space["start"]] = 1.0
    head = softmax_head(model, place)
    pick(head.q.weight, [(space["partner"], SCALE), (space["token"], SCALE)])
    # one product for the start token, as large as those of all bits together
    pick(head.k.weight, [(space["value"], SCALE), (space["start"], SCALE * bits)])
    pick(head.v.weight, [(space["start"], 1.0)])
    put(head.o.weight, space["weight"])


def write_looking(model: Model, space: Spaces, place: Place, *, one: str, flag: str) -> None:
    """The head that leaves in "found" whether any token holds a flag; `one` is 1 everywhere."""
    head = softmax_head(model, place)
    pick(head.q.weight, [(space[one], SCALE)])
    pick(head.k.weight, [(space[flag], 2 * SCALE)])
    pick(head.v.weight, [(space[flag], 1.0)])
    put(head.o.weight, space["found"])
