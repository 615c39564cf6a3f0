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

from separatrix.constructions.parts.chain import SCALE
from separatrix.constructions.parts.readers import Reader
from separatrix.constructions.parts.spaces import Spaces, bits_for, signs
from separatrix.models.model import Model
from separatrix.tasks import TwoSum

OWN = 0.25
"""What a token holds that meets itself: with it the weight of the start token is 3/4 with the token
alone and at most 7/12 with another match, as it is 1 and at most 1/2 for other tokens.
"""
THRESHOLD = 85 / 128
"""Between the two, and of 7 binary digits."""


def counting_spaces(task: TwoSum) -> dict[str, int]:
    """Spaces of the residual stream that counting takes."""
    bits = bits_for(task.M)
    return {"value": bits, "partner": bits, "token": 1, "start": 1, "own": 1, "weight": 1}


def counting_keys(task: TwoSum) -> int:
    """Key dimensions: the bits of a value, and one for the start token."""
    return bits_for(task.M) + 1


def write_counting(task: TwoSum, model: Model, space: Spaces, reader: Reader) -> None:
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
    reader.write(
        model,
        query=[(space["partner"], SCALE), (space["token"], SCALE)],
        # one product for the start token, as large as those of all bits together
        key=[(space["value"], SCALE), (space["start"], SCALE * bits)],
        value=[(space["start"], 1.0)],
        target=space["weight"],
    )


def write_looking(model: Model, space: Spaces, reader: Reader, *, one: str, flag: str) -> None:
    """The head that leaves in "found" whether any token holds a flag; `one` is 1 everywhere."""
    reader.write(
        model,
        query=[(space[one], SCALE)],
        key=[(space[flag], 2 * SCALE)],
        value=[(space[flag], 1.0)],
        target=space["found"],
    )
