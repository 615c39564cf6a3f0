"""Exchanges of neighbours after a first permutation of any kind, in two heads of a layer with one
reflection per token (theory.md, section 10).

Spaces beside `one`, `turns`, `moved` and `read` of tracked.py, where `read` holds all K
things:

    space     width   holds
    start     1       1 at the first place, by embeddings of positions
    image     K K     of a token: 1 at (c, a) where it sends thing c to place a
    carried   K K     `image` of the first token, brought along by a second head
    ends      K - 1   where each thing stands

Head 0 reflects at every place but the first, the other writes at the first alone: b = 2 sigmoid(128
one - 256 start), or the opposite. With w_i the weight of place i, head 0 reads w_e(a) - w_a of
place a, whose thing the exchanges have brought to e(a). The MLP gathers

    ends_c = sum over a of relu(w_e(a) - least - most (1 - carried_ca))

which is w_e(p(c)) - least, for p the first permutation: all others are at or below 0.
"""

from __future__ import annotations

import numpy as np
import torch

from separatrix.constructions.parts.built import recipe
from separatrix.constructions.parts.placement import empty_model, mlp_after, recurrent_head
from separatrix.constructions.parts.spaces import Spaces, pick
from separatrix.constructions.tracked import (
    Exchanges,
    idle,
    keep,
    nearest,
    shares,
    write_exchange,
    write_query,
)
from separatrix.core.errors import SizeError
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.models.model import MLP, Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.exact import SATURATED
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import DeltaNet
from separatrix.tasks import Permutation
from separatrix.tasks.tracking import arrangements
from separatrix.theory.written import slots


@recipe(
    "swaps",
    Permutation,
    theorem="state-tracking",
    takes=(
        "a layer of two heads with negative=true, head_dim >= 2 k and value_dim >= k^2, for k >= 3"
        " and shift=swaps"
    ),
)
def swaps(task: Permutation, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Weights that answer every prompt that shift=swaps draws, in one layer (default: DeltaNet)."""
    k = task.k
    if task.shift != "swaps" or k == 2:
        raise SizeError(
            f"{task.spec}: the construction 'swaps' is for k >= 3 and shift=swaps, where every"
            " token after the first exchanges two neighbours"
        )
    keys, values = 2 * k, k * k
    if architecture is None:
        part = DeltaNet(heads=2, head_dim=keys, value_dim=values, negative=True)
        architecture = stack([part])
    ((place, *_),) = slots("swaps", task, architecture)
    rows = arrangements(k).rows
    one, other, N = shares((k,))
    weights = [a + b for a, b in zip(one, other, strict=True)]
    space = Spaces(
        one=1, turns=1, moved=k, start=1, image=values, carried=values, read=k, ends=k - 1
    )
    model = empty_model(task, architecture, width=space.width, hidden=k * (k - 1))
    # of tokens that are no exchange the first reflection is written, and never asked for
    changes = Exchanges.of(rows, k - 1).moved[:, 0]
    model.embed.weight[:, space["one"]] = 1.0
    model.embed.weight[:, space["moved"]] = changes
    images = torch.from_numpy(rows[:, :, None] == np.arange(k)).float()
    model.embed.weight[:, space["image"]] = images.flatten(1)
    model.position.weight[0, space["start"]] = 1.0

    mixer = recurrent_head(model, place)
    idle(mixer, range(1, mixer.updates), space["one"])
    write_exchange(mixer, space, k, tuple(range(k)), 0)
    write_query(mixer, space, [*one, *other])
    _carry(mixer, space)
    _gate(mixer, 0, space, 1.0)
    _gate(mixer, mixer.heads // mixer.qk, space, -1.0)
    keep(mixer)
    for number, row in enumerate(range(space["read"].start, space["read"].stop)):
        mixer.o.weight[row, number] = float(N)
    second = mixer.heads // mixer.qk
    for number, row in enumerate(range(space["carried"].start, space["carried"].stop)):
        mixer.o.weight[row, second * mixer.dv + number] = 1.0
    _gather(mlp_after(model, place), space, weights)
    codes = np.array(weights)[rows[:, : k - 1]] - min(weights)
    nearest(model, space["ends"], torch.from_numpy(codes).float())
    return model


def _carry(mixer: RecurrentMixer, space: Spaces) -> None:
    """The first head with other keys: k = q = e_1, v = image / 2, which b = 2 makes whole."""
    mixer.k.weight[mixer.head_dim, space["one"]] = 1.0
    mixer.q.weight[mixer.head_dim, space["one"]] = 1.0
    pick(mixer.v.weight, [(space["image"], 0.5)], start=mixer.heads // mixer.qk * mixer.dv)


def _gate(mixer: RecurrentMixer, head: int, space: Spaces, sign: float) -> None:
    """b = 2 at every place but the first, or, with sign -1, at the first alone."""
    gate = mixer.get_parameter("b.weight")
    gate[head, space["one"]] = sign * SATURATED
    gate[head, space["start"]] = -2 * sign * SATURATED


def _gather(mlp: MLP, space: Spaces, weights: list[int]) -> None:
    """Of every thing but the last, the weight of the place where it stands, less the least."""
    k = len(weights)
    least, most = min(weights), max(weights) - min(weights)
    for c in range(k - 1):
        for a in range(k):
            unit = c * k + a
            mlp.up.weight[unit, space["read"].start + a] = 1.0
            mlp.up.weight[unit, space["carried"].start + unit] = float(most)
            mlp.up.bias[unit] = float(weights[a] - least - most)
            mlp.down.weight[space["ends"].start + c, unit] = 1.0
