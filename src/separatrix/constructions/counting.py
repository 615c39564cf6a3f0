"""Counting in one full layer with a start token, whose weight 1/(1 + c) tells c matches.

D = ceil(log2 V) bits for a symbol, +-1, lowest first, s = 4 (8 in fp64). form=queried asks for the
last token's own symbol, which then matches itself; form=ones for 1, whatever the last token.

    space    width   start token   token t
    code     D       .             bits of t
    token    1       .             1
    start    1       1             .
    weight   1       written by attention
    rest     1       1             1

    K = s (code, D start)    Q = s (bits wanted, token)    V = start

    score of a match: s^2 D     of the start token: s^2 D     of all others: at most s^2 (D - 2)

Let k count the start token, the matches, and the last token where it matches itself: the start
token weighs 1/k.

Logits are lines in the weight y: that of k + 1 exceeds that of k by

    k (k + 1) (t_k - y),   t_k = (1/k + 1/(k + 1)) / 2

so by 1/2 at y = 1/(k + 1), and by -1/2 at y = 1/k. Slopes and heights are sums of these: a_k = -sum
j (j + 1), b_k = sum (j + 1/2). A slope that the format does not hold is rounded, and the height
takes what that changes at y = 1/k. Where sums hold more digits than weights do (fp64), `rest` and a
second column for the weight take what is left of both.

Parity, and the number of ones modulo m, by one full layer that counts and the MLP behind it
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

from fractions import Fraction
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray

from separatrix.constructions.parts.built import (
    Recipe,
    Spaces,
    empty_model,
    mixer_at,
    mlp_after,
    pick,
    put,
    recipe,
    signs,
)
from separatrix.constructions.parts.readers import settle
from separatrix.constructions.tracked import nearest
from separatrix.core.errors import SizeError
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Counting, Modular, Parity
from separatrix.theory.written import bits_for, slots

SCALE = 4.0
"""s: then others weigh n 2^-46 together, less than float32 adds to 1."""
LARGER = 8.0
"""s where sums hold more than 46 digits: others weigh n 2^-184."""
MOST_COUNTED = 1 << 18
"""A larger n is refused: its lines are written one by one, in more than seconds."""


@recipe(
    "counting",
    Counting,
    takes=(
        "one full layer, with ceil(log2 V) + 1 key dimensions and 1 value dimension; no positions;"
        " n up to about the root of 2^p in a format of p digits"
    ),
)
def counting(task: Counting, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """One full layer, by a start token; no positions."""
    if task.n > MOST_COUNTED:
        raise SizeError(f"{task.spec}: at most n = {MOST_COUNTED:,} is counted; use a smaller n")
    bits = bits_for(task.V)
    architecture = architecture or stack([Full(heads=1, head_dim=bits + 1, value_dim=1)])
    ((place, *_),) = slots("counting", task, architecture)
    longer = arithmetic.digits > FP32.digits
    scale = LARGER if longer else SCALE
    columns = 2 if longer else 1
    space = Spaces(code=bits, token=1, start=1, weight=columns, rest=1)
    model = empty_model(task, architecture, space, hidden=0, bos=True, placed=False)
    embed = model.embed.weight
    embed[: task.V, space["code"]] = signs(task.V, bits)
    embed[: task.V, space["token"]] = 1.0
    embed[task.V, space["start"]] = 1.0
    embed[:, space["rest"]] = 1.0
    mixer = mixer_at(model, place, SoftmaxMixer)
    # bits of 1 are +1: there is but one
    wanted = space["code"] if task.form == "queried" else space["token"]
    pick(mixer.q.weight, [(wanted, scale), (space["token"], scale)])
    # one product for the start token, as large as those of all bits together
    pick(mixer.k.weight, [(space["code"], scale), (space["start"], scale * bits)])
    pick(mixer.v.weight, [(space["start"], 1.0)])
    for column in range(space["weight"].start, space["weight"].stop):
        put(mixer.o.weight, slice(column, column + 1))
    write_lines(model, space, task, arithmetic)
    return model


def write_lines(model: Model, space: Spaces, task: Counting, arithmetic: Arithmetic) -> None:
    """The logits, on the format's grid."""
    first = 1 + (task.form == "queried")
    slopes, heights = lines(first, task.n)
    weight = space["weight"]
    written = [Fraction(0)] * len(slopes)
    for column in range(weight.start, weight.stop):
        held = _held(
            [slope - done for slope, done in zip(slopes, written, strict=True)], arithmetic
        )
        model.head.weight[:, column] = torch.from_numpy(held).float()
        written = [done + Fraction(x) for done, x in zip(written, held.tolist(), strict=True)]
    # at y = 1/k the line is as high as it should be
    heights = [
        height + (slope - done) / (first + number)
        for number, (height, slope, done) in enumerate(zip(heights, slopes, written, strict=True))
    ]
    bias = _held(heights, arithmetic)
    model.head.bias.copy_(torch.from_numpy(bias).float())
    if weight.stop - weight.start > 1:
        left = [height - Fraction(x) for height, x in zip(heights, bias.tolist(), strict=True)]
        model.head.weight[:, space["rest"]] = torch.from_numpy(_held(left, arithmetic)).float()[
            :, None
        ]


def lines(first: int, n: int) -> tuple[list[Fraction], list[Fraction]]:
    """Slopes and heights for 0..n matches, where none is k = `first`."""
    ks = range(first, first + n)
    slopes = accumulate((-k * (k + 1) for k in ks), initial=0)
    twice = accumulate((2 * k + 1 for k in ks), initial=0)
    return [Fraction(slope) for slope in slopes], [Fraction(height, 2) for height in twice]


def _held(numbers: list[Fraction], arithmetic: Arithmetic) -> NDArray[np.float64]:
    """The nearest numbers that both the format and float32, in which weights are written, hold."""
    narrow = arithmetic if arithmetic.digits <= FP32.digits else FP32
    # a float64 of a fraction is rounded once, far below the digits that are kept
    found = narrow.leading(np.array([float(x) for x in numbers]))
    # too small to be told from 0
    return np.where(np.abs(found) < narrow.tiny, 0.0, found)


def counted(
    task: Parity | Modular, architecture: Architecture | None, arithmetic: Arithmetic
) -> Model:
    """One full layer; no positions, no start token."""
    architecture = architecture or stack([Full(heads=1, head_dim=1)])
    ((place, *_),) = slots(f"counted-{task.name}", task, architecture)
    space = Spaces(ones=1, count=1, rest=1)
    hidden = 1 + 2 * (task.n // task.answers)
    model = empty_model(task, architecture, space, hidden=hidden, placed=False)
    mixer = mixer_at(model, place, SoftmaxMixer)
    whole = 2.0 ** (min(arithmetic.digits, FP32.digits) - 2)
    if task.n & (task.n - 1) == 0 and mixer.gate is None:
        whole = 0.0
    model.embed.weight[1, space["ones"]] = 1.0
    model.embed.weight[:, space["count"]] = whole
    pick(mixer.v.weight, [(space["ones"], 1.0)])
    put(mixer.o.weight, space["count"], factor=task.n * (2.0 if mixer.gate is not None else 1.0))
    settle(mixer)
    # what stands in `count` above `whole`, modulo m
    mlp, units, m = mlp_after(model, place), torch.arange(hidden), task.answers
    mlp.up.weight[:, space["count"]] = 1.0
    # a number from k - 1 on and from k on, for each multiple k of m; the first one is c itself
    mlp.up.bias.copy_(-(whole + ((units + 1) // 2 * m - units % 2)))
    mlp.down.weight[space["rest"]] = torch.where(units % 2 == 1, -float(m), float(m))
    mlp.down.weight[space["rest"], 0] = 1.0
    nearest(model, space["rest"], torch.arange(float(task.answers))[:, None])
    return model


RECIPES = tuple(
    Recipe(
        name=f"counted-{task.name}",
        task=task,
        weights=counted,
        takes="one causal full layer of any size, without a cap; no positions; at most 2,048 bits",
    )
    for task in (Parity, Modular)
)
