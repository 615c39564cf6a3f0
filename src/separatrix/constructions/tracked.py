"""State tracking in one layer whose tokens reflect its state (theory.md, section 10).

Spaces of the residual stream, all but `read` written by token embeddings:

    space   width   holds
    one     1       1
    turns   m       for each of m updates 1 if it reflects, else -1; b = 2 sigmoid(128 turn)
    moved   m K     for each update e_i - e_j, which exchanges things at i and j, or 0
    read    e       what the layer reads of its state

Key (e_i - e_j, e_i - e_j)/2 twice, value -(e_i - e_j) at the things followed, every decay 1. The
query gives each of 2 K numbers a dyadic share of length 1, so that place i weighs w_i, its two
shares together, and thing c, which has come to p(c), is read as w_p(c) - w_c. The head compares
what is read with what is read after each answer: <z, code> - |code|^2 / 2 is largest at the
nearest.

Every bit 1 of parity exchanges two things, and of counting modulo m it turns a cycle for each power
of a prime in m; elements of groups and permutations of k things are up to k - 1 exchanges.

A group of two elements takes one key number, which is 1, and the value 1/2: s' = 1 - s or s.

Swaps. Exchanges of neighbours after a first permutation of any kind, in two heads of a layer with
one reflection per token. Spaces beside those above, where `read` holds all K things:

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

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from separatrix.constructions.parts.built import (
    Recipe,
    Spaces,
    empty_model,
    mixer_at,
    mlp_after,
    pick,
    put,
    recipe,
)
from separatrix.core.errors import SizeError
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.delta import DeltaNetMixer, KDAMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.exact import SATURATED
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import DeltaNet, DeltaProduct
from separatrix.tasks import Group, Modular, Parity, Permutation, Task
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.tracking import arrangements, tracked
from separatrix.theory.solves.states import MOST_THINGS
from separatrix.theory.written import slots

_FEW = 6
"""Things whose shares are searched through."""


def exchanges(rows: Tokens, updates: int) -> Tensor:
    """For every token, its rearrangement as exchanges in turn: (tokens, m, K), e_i - e_j or 0."""
    moved = torch.zeros(len(rows), updates, rows.shape[1])
    for token, row in enumerate(rows.tolist()):
        for number, (i, j) in enumerate(_exchanges(row)):
            moved[token, number, i] = 1.0
            moved[token, number, j] = -1.0
    return moved


def _exchanges(row: list[int]) -> list[tuple[int, int]]:
    """Exchanges of places whose product, the first acting first, sends each i to row[i]."""
    found: list[tuple[int, int]] = []
    seen: set[int] = set()
    for start in range(len(row)):
        cycle: list[int] = []
        while start not in seen:
            seen.add(start)
            cycle.append(start)
            start = row[start]
        # (c_0 c_1) ... (c_l-2 c_l-1), the last acting first, sends each of a cycle to the next
        found += reversed(list(pairwise(cycle)))
    return found


def shares(blocks: tuple[int, ...]) -> tuple[list[int], list[int], int]:
    """Integers for the first and the second copy of every thing, and N: the sums of the two differ
    within each block, and all squares add up to N^2, a power of 4.
    """
    sums = [w - length // 2 for length in blocks for w in range(length)]
    last = max(range(len(sums)), key=lambda i: sums[i])
    # squares have the parity of their numbers: one weight more by 1 where that does not fit
    other = [w + (i == last) for i, w in enumerate(sums)]
    N = 1
    while True:
        for weights in (sums, other):
            found = _split(weights, N * N)
            if found is not None:
                return [a for a, _ in found], [b for _, b in found], N
        N *= 2


def _split(sums: list[int], total: int) -> list[tuple[int, int]] | None:
    """Pairs with these sums whose squares add up to `total`; None if none are found."""
    pairs: list[tuple[int, int]] = []
    rest = list(sums)
    # of many the first take as much as they can, so that little is left for the others
    while len(rest) > _FEW:
        least = sum(_squares(w, w // 2) for w in rest[1:])
        fitting = _firsts(rest[0], total - least)
        if not fitting:
            return None
        pairs.append((fitting[-1], rest[0] - fitting[-1]))
        total -= _squares(rest[0], fitting[-1])
        rest = rest[1:]
    # sum of squares so far -> the last number taken to reach it
    steps: list[dict[int, int]] = []
    for w in rest:
        before = steps[-1] if steps else {0: 0}
        steps.append({s + _squares(w, a): a for s in before for a in _firsts(w, total - s)})
    if total not in steps[-1]:
        return None
    ends: list[tuple[int, int]] = []
    for w, step in zip(reversed(rest), reversed(steps), strict=True):
        a = step[total]
        ends.append((a, w - a))
        total -= _squares(w, a)
    return [*pairs, *reversed(ends)]


def _squares(w: int, a: int) -> int:
    return a * a + (w - a) ** 2


def _firsts(w: int, most: int) -> list[int]:
    """Numbers a such that the squares of a and w - a are at most that together, least first."""
    found: list[int] = []
    a = w // 2
    while _squares(w, a) <= most:
        found.append(a)
        a -= 1
    return found


def reflections(task: Task, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Weights that follow what `task` moves in one layer (default: a stack of just that)."""
    moved = tracked(task)
    assert moved is not None
    # k = 1, v = 1/2, and b = 2 for tokens that exchange the two things
    flips = moved.order == 2
    if moved.things > MOST_THINGS and not flips:
        raise SizeError(
            f"{task.spec}: it moves {moved.things:,} things, and this construction follows at most"
            f" {MOST_THINGS}"
        )
    keys, values = 2 * moved.things, len(moved.followed)
    updates = 1 if flips else moved.swaps
    if architecture is None:
        part = DeltaNet(heads=1, head_dim=1, value_dim=1, negative=True)
        if not flips:
            part = DeltaProduct(
                heads=1, head_dim=keys, value_dim=values, householders=updates, negative=True
            )
        architecture = stack([part])
    ((place, *_),) = slots(task.name, task, architecture)
    tokens, answers = moved.tables
    changes = exchanges(tokens, updates)
    parts = {"read": 1} if flips else {"moved": updates * moved.things, "read": values}
    space = Spaces(one=1, turns=updates, **parts)
    model = empty_model(task, architecture, space, hidden=0, placed=False)
    model.embed.weight[:, space["one"]] = 1.0
    model.embed.weight[:, space["turns"]] = changes.any(-1).float() * 2 - 1
    mixer = mixer_at(model, place, RecurrentMixer)
    for update in range(updates):
        turn = space["turns"].start + update
        mixer.get_parameter("b.weight")[update * mixer.heads, turn] = SATURATED
    # updates beyond these have keys of 0, and gates that are shut
    idle(mixer, range(updates, mixer.updates), space["one"])
    keep(mixer)
    if flips:
        mixer.k.weight[0, space["one"]] = 1.0
        mixer.v.weight[0, space["one"]] = 0.5
        shares_, N = [1], 1
        # the first thing stands where it was, or not
        codes = answers[:, :1]
    else:
        model.embed.weight[:, space["moved"]] = changes.flatten(1)
        for update in range(updates):
            write_exchange(mixer, space, moved.things, moved.followed, update)
        first, second, N = shares(moved.blocks)
        shares_ = [*first, *second]
        sums, followed = np.add(first, second), list(moved.followed)
        codes = sums[answers[:, followed]] - sums[followed]
    mixer.q.weight[: len(shares_), space["one"]] = torch.tensor(shares_).float()[:, None]
    put(mixer.o.weight, space["read"], factor=float(N))
    nearest(model, space["read"], torch.from_numpy(codes).float())
    return model


def write_exchange(
    mixer: RecurrentMixer, space: Spaces, things: int, followed: tuple[int, ...], update: int
) -> None:
    """An update's key in head 0, the exchange twice, halved; its value at the things followed."""
    start = space["moved"].start + update * things
    exchange = slice(start, start + things)
    key = update * mixer.qk * mixer.head_dim
    pick(mixer.k.weight, [(exchange, 0.5), (exchange, 0.5)], start=key)
    value = update * mixer.heads * mixer.dv
    for number, thing in enumerate(followed):
        mixer.v.weight[value + number, start + thing] = -1.0


def idle(mixer: RecurrentMixer, updates: range, one: slice) -> None:
    """b = 0 in updates that are not used, in all heads."""
    for update in updates:
        heads = slice(update * mixer.heads, (update + 1) * mixer.heads)
        mixer.get_parameter("b.weight")[heads, one] = -SATURATED


def keep(mixer: RecurrentMixer) -> None:
    """Decays of exactly 1."""
    if isinstance(mixer, KDAMixer):
        mixer.get_parameter("a.up.bias").fill_(-SATURATED)
    elif not isinstance(mixer, DeltaNetMixer):
        mixer.get_parameter("a.bias").fill_(-SATURATED)


def nearest(model: Model, read: slice, codes: Tensor) -> None:
    """The answer whose code (answers, e) is nearest to what was read."""
    model.head.weight[:, read] = codes
    model.head.bias.copy_(codes.square().sum(1) / -2)


@recipe(
    "swaps",
    Permutation,
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
    model = empty_model(task, architecture, space, hidden=k * (k - 1))
    # of tokens that are no exchange the first reflection is written, and never asked for
    changes = exchanges(rows, k - 1)[:, 0]
    model.embed.weight[:, space["one"]] = 1.0
    model.embed.weight[:, space["moved"]] = changes
    images = torch.from_numpy(rows[:, :, None] == np.arange(k)).float()
    model.embed.weight[:, space["image"]] = images.flatten(1)
    model.position.weight[0, space["start"]] = 1.0

    mixer = mixer_at(model, place, RecurrentMixer)
    idle(mixer, range(1, mixer.updates), space["one"])
    write_exchange(mixer, space, k, tuple(range(k)), 0)
    mixer.q.weight[:keys, space["one"]] = torch.tensor([*one, *other]).float()[:, None]
    # the first head with other keys: k = q = e_1, v = image / 2, which b = 2 makes whole
    second = mixer.heads // mixer.qk
    for maps in (mixer.k.weight, mixer.q.weight):
        maps[mixer.head_dim, space["one"]] = 1.0
    pick(mixer.v.weight, [(space["image"], 0.5)], start=second * mixer.dv)
    _gate(mixer, 0, space, 1.0)
    _gate(mixer, second, space, -1.0)
    keep(mixer)
    put(mixer.o.weight, space["read"], factor=float(N))
    put(mixer.o.weight[:, second * mixer.dv :], space["carried"])
    # of every thing but the last, the weight of the place where it stands, less the least
    mlp, least, most = mlp_after(model, place), min(weights), max(weights) - min(weights)
    for unit, (c, a) in enumerate(np.ndindex(k - 1, k)):
        mlp.up.weight[unit, space["read"].start + a] = 1.0
        mlp.up.weight[unit, space["carried"].start + unit] = float(most)
        mlp.up.bias[unit] = float(weights[a] - least - most)
        mlp.down.weight[space["ends"].start + c, unit] = 1.0
    codes = np.array(weights)[rows[:, : k - 1]] - least
    nearest(model, space["ends"], torch.from_numpy(codes).float())
    return model


def _gate(mixer: RecurrentMixer, head: int, space: Spaces, sign: float) -> None:
    """b = 2 at every place but the first, or, with sign -1, at the first alone."""
    gate = mixer.get_parameter("b.weight")
    gate[head, space["one"]] = sign * SATURATED
    gate[head, space["start"]] = -2 * sign * SATURATED


_TAKES: dict[type[Task], str] = {
    Parity: "a deltanet, gdn, kda or deltaproduct layer with negative=true",
    Modular: (
        "a deltaproduct layer with q - 1 updates and 2 q key numbers for each power q of a prime"
        " in m"
    ),
    Permutation: "a deltaproduct layer with k - 1 updates, head_dim >= 2 k and value_dim >= k - 1",
    Group: (
        "a deltaproduct layer with an update for each exchange of an element, and two key numbers"
        " for each thing"
    ),
}
RECIPES = tuple(
    Recipe(name=task.name, task=task, weights=reflections, takes=takes)
    for task, takes in _TAKES.items()
)
