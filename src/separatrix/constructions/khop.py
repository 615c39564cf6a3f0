"""k-hop induction in floor(log2 k) + 2 full layers: every token finds the latest earlier token of
its own letter, and each further layer doubles the hops that are known (theory.md, section 6; the
depth is that of [San24]).

The start token stands at place 0, the prompt at 1..n. With o(p) the latest place before p of the
same letter, one hop leads from p to o(p) + 1. So a token that holds the bits of o(p) points to
where its hop leads, by the address "my place less 1". All bits are +-1, lowest first: A =
ceil(log2(n+1)) of a place and B = ceil(log2 V) of a letter. 0 in every bit stands for "none", and
is all that the start token holds.

    space      width   place p >= 1         place 0   letter x
    place      A       bits of p            0         .
    before     A       bits of p - 1        0         .
    one        1       1                    0         .
    start      1       0                    1         .
    letter     B       .                    .         bits of x
    found      A(A+1)  written by the heads of layer 1: of each, A bits of a place, and 1 if any
    fetched_l  A + B   written by the attention of layer l = 2, 3, ...
    hop_l      A       written by the MLP of layer l: bits of (2^(l-1) hops from here) - 1
    letter_l   B       the same, l with bit l-2 of k set: the letter as many hops from here as the
                       lowest l-1 bits of k say

Layer 1 must not find p itself. Every j < p differs from p in a highest bit b, in which p has 1 and
j has 0: then j is in the block S_b(p) of places that agree with p above bit b and have 0 there.
Head b finds the latest place of p's letter in S_b(p); blocks of lower b are nearer. Its scores are,
with C = 32 2^b and the bits p_c, j_c of places,

    C <letter of p, letter of j> + C sum_{c>b} p_c j_c - C j_b + 16 sum_{c<b} 2^c j_c

and for the start token C (B+A-1-b), 4 C more where p_b = -1. In S_b(p) a match scores C (B+A-b) and
a number that rises by 32 from place to place and is below C/2 in size. A wrong letter, and a place
elsewhere, cost 2 C: so the latest match leads by 32 over all others, the start token lies at least
32 below matches and 32 above what is none, and takes everything where p_b = -1.

The MLP copies the place of the lowest head that has found any: each bit is y cut to -1, 0, 1,
closed by 8 times what lower heads have found.

    y at 1:  relu(4 y - 1 - 8 F) - relu(4 y - 2 - 8 F), at -1 the same of -y; F = sum of lower found

Layer l >= 2 asks for the place whose predecessor it holds:

    K x_j = 8 (before, start),   Q x_p = 8 (hop_{l-1}, (A-1) one)

The place asked for scores 64 A, another one at most 64 (A-2), the start token 64 (A-1); "none"
gives 0 for every place, and so meets the start token. Its value is hop_{l-1} there, which doubles
the hops, and, where bit l-2 of k is set, the letter known there: 2^(l-2) more hops. The MLP cuts
both as above, with F = 0. Layer l = floor(log2 k) + 2 reads the highest bit of k, so it has the
letter after k hops.

    logit of letter v = 2 <bits of v, letter>,   of "none" = 2 B - 1
"""

from __future__ import annotations

import numpy as np

from separatrix.constructions.parts.built import (
    Spaces,
    empty_model,
    mixer_at,
    mlp_after,
    pick,
    put,
    recipe,
    signs,
    step,
)
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.models.model import MLP, Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture, Place, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import KHop
from separatrix.theory.written import bits_for, slots

STEP = 16
"""A score rises by twice as much from place to place."""
SCALE = 8
"""s of the layers that ask for places: a power of two, so that scores are exact."""


@recipe(
    "khop",
    KHop,
    takes=(
        "floor(log2 k) + 2 full layers with room for the bits of a place and of a letter, the first"
        " with a head for each bit of a place"
    ),
)
def khop(task: KHop, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """floor(log2 k) + 2 full layers, the first with a head for each bit of a place."""
    bits = bits_for(task.n + 1)
    letters = bits_for(task.V)
    depth = task.k.bit_length() + 1
    keys = letters + bits + 1
    values = bits + max(1, letters)
    if architecture is None:
        first = Full(heads=bits, head_dim=max(keys, bits + 1))
        architecture = stack([first, *[Full(heads=1, head_dim=max(keys, values))] * (depth - 1)])
    chosen = [slot.place for slot in slots("khop", task, architecture)]
    space = spaces(task)
    # four hidden units for each bit that is cut
    hidden = 4 * max(bits * bits, values)
    model = empty_model(task, architecture, space, hidden=hidden, bos=True)
    numbers = np.arange(1, task.n + 1)
    position = model.position.weight
    position[1:, space["place"]] = signs(numbers, bits)
    position[1:, space["before"]] = signs(numbers - 1, bits)
    position[1:, space["one"]] = 1.0
    position[0, space["start"]] = 1.0
    model.embed.weight[: task.V, space["letter"]] = signs(task.V, letters)
    head = mixer_at(model, chosen[0], SoftmaxMixer)
    for bit in range(bits):
        write_search(head, bit, task, space)
    # hop_1: the place found by the lowest head that found one
    start = space["found"].start
    for at, number in np.ndindex(bits, bits):
        closing = [start + lower * (bits + 1) + bits for lower in range(at)]
        source, target = start + at * (bits + 1) + number, space["hop_1"].start + number
        cut(mlp_after(model, chosen[0]), 4 * (at * bits + number), source, target, closing)
    letter = "letter"
    for level, place in enumerate(chosen[1:], 2):
        letter = write_hop(model, place, task, space, level, letter)
    model.head.weight[: task.V, space[letter]] = 2.0 * signs(task.V, letters)
    model.head.bias[task.V] = 2.0 * letters - 1.0
    return model


def moves_letter(task: KHop, level: int) -> bool:
    """Whether layer l moves the letter on: bit l-2 of k."""
    return bool(task.k >> (level - 2) & 1)


def spaces(task: KHop) -> Spaces:
    """The residual stream, as in the table above."""
    bits = bits_for(task.n + 1)
    letters = bits_for(task.V)
    parts = {"place": bits, "before": bits, "one": 1, "start": 1, "letter": letters}
    parts |= {"found": bits * (bits + 1), "hop_1": bits}
    for level in range(2, task.k.bit_length() + 2):
        parts |= {f"fetched_{level}": bits + letters, f"hop_{level}": bits}
        if moves_letter(task, level):
            parts[f"letter_{level}"] = letters
    return Spaces(**parts)


def write_search(head: SoftmaxMixer, bit: int, task: KHop, space: Spaces) -> None:
    """Head b: the latest place of the same letter that first differs in bit b."""
    bits = bits_for(task.n + 1)
    letters = bits_for(task.V)
    C = 2.0 * STEP * 2**bit
    # keys and queries share the scale, so that both fit into narrow formats
    scale = 2.0 ** ((bit + 5) // 2)
    keys = slice(bit * head.head_dim, (bit + 1) * head.head_dim)
    values = slice(bit * head.dv, (bit + 1) * head.dv)
    pick(
        head.k.weight[keys],
        [(space["letter"], scale), (space["place"], scale), (space["start"], scale)],
    )
    query = head.q.weight[keys]
    pick(query, [(space["letter"], C / scale)])
    one = space["one"].start
    own = space["place"].start
    for number in range(bits):
        row = letters + number
        if number > bit:
            query[row, own + number] = C / scale
        else:
            query[row, one] = (-C if number == bit else STEP * 2.0**number) / scale
    # C (B+A-1-b), and 4 C more where the place has 0 in bit b
    query[letters + bits, one] = (C * (letters + bits - 1 - bit) + 2 * C) / scale
    query[letters + bits, own + bit] = -2 * C / scale
    pick(head.v.weight[values], [(space["place"], 1.0), (space["one"], 1.0)])
    target = space["found"].start + bit * (bits + 1)
    put(head.o.weight[:, values], slice(target, target + bits + 1))


def cut(mlp: MLP, unit: int, source: int, target: int, closing: list[int]) -> None:
    """Four hidden units from `unit` on: the target gains y cut to -1, 0, 1, unless one of `closing`
    is 1.
    """
    for number, sign in enumerate((1.0, -1.0)):
        read = [(source, 4.0 * sign), (closing, -8.0)]
        step(mlp, unit + 2 * number, read, (-1.0, -2.0), target, sign)


def write_hop(
    model: Model, place: Place, task: KHop, space: Spaces, level: int, letter: str
) -> str:
    """Layer l: doubles the hops, and moves the letter on where its bit of k is set. Returns the
    space that holds the letter afterwards.
    """
    bits = bits_for(task.n + 1)
    head = mixer_at(model, place, SoftmaxMixer)
    pick(head.k.weight, [(space["before"], SCALE), (space["start"], SCALE)])
    pick(head.q.weight, [(space[f"hop_{level - 1}"], SCALE), (space["one"], SCALE * (bits - 1.0))])
    fetched = space[f"fetched_{level}"]
    targets = list(range(space[f"hop_{level}"].start, space[f"hop_{level}"].stop))
    read = [(space[f"hop_{level - 1}"], 1.0)]
    if moves_letter(task, level):
        read.append((space[letter], 1.0))
        letter = f"letter_{level}"
        targets += range(space[letter].start, space[letter].stop)
    pick(head.v.weight, read)
    put(head.o.weight, slice(fetched.start, fetched.start + len(targets)))
    mlp = mlp_after(model, place)
    for number, target in enumerate(targets):
        cut(mlp, 4 * number, fetched.start + number, target, [])
    return letter
