"""What is decided by flags: a start token that counts matches, and a last token that looks for a
flag. Match2 per query by a bit code, 2-Sum as a decision, and equality of two strings.

Counting. Every value has D = ceil(log2 M) bits, +-1; s = 4. Every token asks for the bits of the
value that cancels it, and the start token scores as much as a match:

    space     width   start token   token x
    value     D       .             bits of x
    partner   D       .             bits of -x
    token     1       .             1
    start     1       1             .
    own       1       .             1/4 where x = -x
    weight    1       written by attention

    K token = s (bits of x, 0)      K start = s (0, D)      Q = s (bits of -x, 1)
    V = 1 at the start token, 0 elsewhere

With c matches the start token weighs 1/(1 + c); a token that cancels itself is its own match. So
the sum of weight and own is 1, or at most 1/2 with an earlier match, and 3/4 or at most 7/12 there.

Per query one layer is enough: the logits are (weight + own, 85/128). As a decision, of a pair that
cancels the later token sees the earlier one, and the MLP takes z = weight + own:

    flag = 1 - (relu(32 z - 77/4) - relu(32 z - 93/4)) / 4

is exactly 1 up to 77/128, where both units are 0, and 0 from 93/128 on, where what they differ by
is rounded.

Looking. Keys are 8 times the flag, queries 4: a flag, which is 0 or 1, leads by 2 s^2 = 32. Values
are flags, too. The logits of the decision are (1/2, found).

Equality. A place of either string holds the address of its bit, D = ceil(log2 n) bits, and a tag
that only the first string has:

    space     width   place j of u      place i of v      token b
    place     D       bits of j         bits of i         .
    first     1       1                 -1                .
    one       1       1                 1                 .
    bit       1       .                 .                 +-1
    fetched   1       written by the attention of layer 1
    differs   1       written by the MLP of layer 1
    found     1       written by the attention of layer 2

Layer 1: K = s (place, first), Q = s (place, one), V = bit: a place of u fetches itself, and one of
v its partner. The MLP writes a flag where y = bit - fetched is 2 or -2:

    differs = (relu(2 y - 1) - relu(2 y - 3) + relu(-2 y - 1) - relu(-2 y - 3)) / 2

which is 0 for |y| <= 1/2 and 1 from 3/2 on. Layer 2 looks for it. The logits are (found, 1/2).
"""

from __future__ import annotations

import numpy as np
import torch

from separatrix.constructions.parts.built import recipe
from separatrix.constructions.parts.placement import SCALE, empty_model, fits, mlp_after
from separatrix.constructions.parts.readers import Reader, readers
from separatrix.constructions.parts.spaces import Spaces, put, signs, step
from separatrix.core.errors import SizeError
from separatrix.models.model import MLP, Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Equality, TwoSum
from separatrix.theory.written import bits_for

OWN = 0.25
"""What a token holds that meets itself: with it the weight of the start token is 3/4 with the token
alone and at most 7/12 with another match, as it is 1 and at most 1/2 for other tokens.
"""
THRESHOLD = 85 / 128
"""Between the two, and of 7 binary digits."""

_STEEP = 32.0
"""What z is multiplied by at the threshold."""
_HALF_STEP = 2.0
"""Half of the way, so multiplied, from 1 to 0."""


@recipe(
    "match2-bits",
    TwoSum,
    takes=(
        "form=query and any M; one full layer, with ceil(log2 M) + 1 key dimensions and 1 value"
        " dimension; no positions"
    ),
)
def match2_bits(task: TwoSum, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """One full layer. Source: theory.md, section 6 (Match2, "beyond, the bit code")."""
    if task.form != "query":
        raise SizeError(f"{task.spec}: one layer answers the query form; use form=query")
    model, space, _ = _counting("match2-bits", task, architecture, layers=1)
    # logits (weight + own, 85/128)
    put(model.head.weight.T[space["weight"]].T, slice(0, 1))
    put(model.head.weight.T[space["own"]].T, slice(0, 1))
    model.head.bias[1] = THRESHOLD

    return model


@recipe(
    "pairs",
    TwoSum,
    takes=(
        "form=decision and any M; two full layers, the first with ceil(log2 M) + 1 key dimensions;"
        " no positions"
    ),
)
def pairs(task: TwoSum, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Two full layers. Source: [San23] for Match2; theory.md, section 6."""
    if task.form != "decision":
        raise SizeError(f"{task.spec}: two layers decide over all pairs; use form=decision")
    model, space, (first, second) = _counting("pairs", task, architecture, layers=2)
    _write_threshold(mlp_after(model, first.place), space)
    write_looking(model, space, second, one="token", flag="flag")
    # logits (1/2, found)
    model.head.bias[0] = 0.5
    put(model.head.weight.T[space["found"]].T, slice(1, 2))

    return model


def _write_threshold(mlp: MLP, space: Spaces) -> None:
    """flag = 1 - (relu(32 z - 77/4) - relu(32 z - 93/4)) / 4 with z = weight + own."""
    read = [(space["weight"], _STEEP), (space["own"], _STEEP)]
    ends = _HALF_STEP - _STEEP * THRESHOLD, -_HALF_STEP - _STEEP * THRESHOLD
    step(mlp, 0, read, ends, space["flag"], -1 / (2 * _HALF_STEP))
    mlp.down.bias[space["flag"]] = 1.0


def _counting(
    name: str, task: TwoSum, architecture: Architecture | None, layers: int
) -> tuple[Model, Spaces, list[Reader]]:
    """A model of so many full layers whose first head leaves the start token's weight in "weight",
    its spaces, and the heads.
    """
    bits = bits_for(task.M)
    # the bits of a value, and one for the start token
    architecture = architecture or stack([Full(heads=1, head_dim=bits + 1, value_dim=1)] * layers)
    found = readers(name, task, architecture)
    more = {"flag": 1, "found": 1} if layers > 1 else {}
    space = Spaces(value=bits, partner=bits, token=1, start=1, own=1, weight=1, **more)
    model = empty_model(
        task, architecture, width=space.width, hidden=2 * (layers - 1), bos=True, placed=False
    )
    values = torch.arange(task.M)
    partners = (-values) % task.M
    embed = model.embed.weight
    embed[: task.M, space["value"]] = signs(task.M, bits)
    embed[: task.M, space["partner"]] = signs(partners.numpy(), bits)
    embed[: task.M, space["token"]] = 1.0
    embed[: task.M, space["own"]] = OWN * (partners == values).float()[:, None]
    embed[task.M, space["start"]] = 1.0
    found[0].write(
        model,
        query=[(space["partner"], SCALE), (space["token"], SCALE)],
        # one product for the start token, as large as those of all bits together
        key=[(space["value"], SCALE), (space["start"], SCALE * bits)],
        value=[(space["start"], 1.0)],
        target=space["weight"],
    )
    return model, space, found


def write_looking(model: Model, space: Spaces, reader: Reader, *, one: str, flag: str) -> None:
    """The head that leaves in "found" whether any token holds a flag; `one` is 1 everywhere."""
    reader.write(
        model,
        query=[(space[one], SCALE)],
        key=[(space[flag], 2 * SCALE)],
        value=[(space[flag], 1.0)],
        target=space["found"],
    )


@recipe(
    "equality",
    Equality,
    takes=("two full layers, the first with ceil(log2 n) + 1 key dimensions"),
)
def equality(task: Equality, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Two full layers. Source: [Bha24], in the form of theory.md, section 6."""
    fits(task, arithmetic)
    bits = bits_for(task.n)
    architecture = architecture or stack([Full(heads=1, head_dim=bits + 1, value_dim=1)] * 2)
    first, second = readers("equality", task, architecture)
    space = Spaces(place=bits, first=1, one=1, bit=1, fetched=1, differs=1, found=1)
    model = empty_model(task, architecture, width=space.width, hidden=4)
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

    return model


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
    for unit, side in ((0, 2.0), (2, -2.0)):
        read = [(space["bit"], side), (space["fetched"], -side)]
        step(mlp, unit, read, (-1.0, -3.0), space["differs"], 0.5)
