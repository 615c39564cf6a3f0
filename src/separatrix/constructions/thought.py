"""L-SeqComp by one full layer that writes L tokens before it answers (theory.md, section 6, chain
of thought).

The prompt ends in w at position n-1. After the token at position n-1+l, l = 0..L, the layer fetches
the value i_l (i_0 = z_0). For l < L it writes the token (w, i_l), for l = L it answers i_L. So what
stands at position n-1+l, l >= 1, is the token (w, v) with v = i_{l-1}: the query has every part of
w, and the place says which one counts. All bits are +-1, lowest first; s = 4.

    space     width                 position of (a, i) of z_l    position n-1+l    token (w, v)
    row_j     ceil(log2 n_j)        bits of a if j = l-1, or 0   0                 .
    column    ceil(log2 N_{L-2})    bits of i                    0                 .
    level     ceil(log2 (L+1))      bits of l                    0                 .
    asked     the same              0                            bits of l         .
    final     1                     0                            1 if l = L, or -1 .
    w_j       ceil(log2 n_j)        .                            .                 bits of w_j
    held      as column             .                            .                 bits of v
    value     ceil(log2 N_{L-1})    .                            .                 0
    fetched   the same              written by the attention
    next      the same              written by the MLP

    j = 1..L-1; N_{L-2} is N_0 = m where L = 1. z_0 counts as level 0 with an empty address. A token
    t of the prompt has the bits of t in `value`, and, since it may be w, its parts in w_j.

    K x_j = s (row_1, ..., row_{L-1}, column, level)
    Q x   = s (w_1, ..., w_{L-1}, held, c asked)
    V x_j = value

With T tags, entry (a, i) of z_l scores s^2 (D_l - 2 hamming + c T) at position n-1+l, D_l = bits of
its address; an entry of another level l' at most s^2 (D_l' + c (T - 2)), and w and written tokens
score 0. So with c a power of two and 2 c >= 2 + the largest D the right entry leads by 2 s^2, over
w and written tokens too (c >= 2). At l = 0 `held` is 0, and D_0 = 0.

With W bits of w, F a power of two above W and the bits of values, the head gives

    (w', v')   <bits of w', w> + <bits of v', next> - F final
    t          <bits of t, next> + F final

Before the answer final = -1 lifts pairs by 2 F over the tokens t; after the last written token it
is the other way round. Among pairs, and among the answers t, the right one leads by 2.

L-SeqComp by an encoder of 1 + ceil(log2(L+1)) full layers: pointer doubling (theory.md, section
6).

Attention is not causal here. Follow the chain from the token w: it points to entry z_0 of z_1;
entry (a, i) of z_l, of value v, points to entry (w_l, v) of z_{l+1}; an entry of z_L holds the
final value. So index 0 of the chain is w, l the entry of z_l, and L+1 the answer. After layer 1+j
every token points 2^j steps on, or holds what is final. All bits are +-1, lowest first; s = 8.

    space     width                 (a, i) of z_l at its place   z_0       w      token t
    row_j     ceil(log2 n_j)        bits of a if j = l-1, or 0   0         0      .
    column    ceil(log2 N_{L-2})    bits of i                    0         0      .
    level     ceil(log2 (L+2))      bits of l                    0         0      .
    next_0    the same              bits of l+1                  L+1       1      .
    final_0   1                     1 if l = L, or -1            1         -1     .
    is_z0     1                     0                            1         0      .
    is_w      1                     0                            0         1      .
    one       1                     1                            1         1      .
    w_j       ceil(log2 n_j)        .                            .         .      bits of w_j
    value     ceil(log2 N_{L-1})    .                            .         .      bits of t
    fetched_k, all_w, held_k, next_k, final_k: written by layers k+1, as told below

In layer 1 every token fetches w, and w fetches z_0, with one head:

    K x_j = s (is_w, is_z0),   Q x_i = s (one - is_w, is_w),   V x_j = (w_1, ..., w_{L-1}, value)

The MLP then writes all_w, the bits of w that were fetched or, at w, its own; and held_0, the
token's own value or, at w, the value of z_0. So every token holds a pointer: (level next_0, value
held_0), final or not, and all of w. In layer 2 + k it is asked for and read:

    K x_j = s (row_1, ..., row_{L-1}, column, level)
    Q x_i = s (all_w, held_k, c next_k)
    V x_j = (held_k, next_k, final_k)

A pointer that is final asks for a level that no entry has, and reads anything; the MLP keeps what
it held:

    x_{k+1} = x_k where final_k = 1, or y cut to +-1: written as the sum of
    relu(2 y + 1 - 4 (1 + f)) - relu(2 y - 1 - 4 (1 + f)),   f = final_k,
    relu(2 x + 1 - 4 (1 - f)) - relu(2 x - 1 - 4 (1 - f)),   and -1

of which one line is 0 and the other 0 or 2. After 1 + ceil(log2(L+1)) layers w holds the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from separatrix.constructions.parts.built import (
    SCALE,
    Spaces,
    empty_model,
    mixer_at,
    mlp_after,
    pick,
    put,
    recipe,
    signs,
    step,
    threshold,
)
from separatrix.constructions.seqcomp import write_parts, written_entries
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.models.model import MLP, Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import SeqComp, Thought
from separatrix.theory.written import bits_for, paired, slots


@recipe(
    "thought",
    Thought,
    takes=(
        "one full layer, with a key dimension for each bit of w, of N_{L-2} values and of the L+1"
        " levels, and ceil(log2 N) value dimensions for N answers"
    ),
)
def thought(task: Thought, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """One full layer that writes every pair, token by token, and answers. Source: [CPW]."""
    inner = paired(task)
    space = spaces(inner)
    keys = sum(space.widths()[name] for name in asked_with(inner))
    values = bits_for(inner.answers)
    architecture = architecture or stack([Full(heads=1, head_dim=max(keys, values))])
    ((place, *_),) = slots("thought", task, architecture)
    model = empty_model(task, architecture, space, hidden=2 * values)
    position = model.position.weight
    level_bits = signs(inner.L + 1, bits_for(inner.L + 1))
    position[inner.position_z0, space["level"]] = level_bits[0]
    write_addresses(inner, position, space, level_bits)
    position[inner.position_w :, space["asked"]] = level_bits
    position[inner.position_w :, space["final"]] = -1.0
    position[-1, space["final"]] = 1.0
    embed, first = model.embed.weight, inner.vocabulary
    # a row for each pair: w counts in steps of the values
    w, value = np.divmod(np.arange(inner.w_values * columns(inner)), columns(inner))
    write_parts(inner, embed[: inner.w_values], space, np.arange(inner.w_values))
    write_parts(inner, embed[first:], space, w)
    embed[first:, space["held"]] = signs(value, bits_for(columns(inner)))
    embed[: inner.answers, space["value"]] = signs(inner.answers, values)

    head = mixer_at(model, place, SoftmaxMixer)
    pick(head.k.weight, [(space[name], SCALE) for name in asked_with(inner)])
    of_w = [space[name] for name in parts(inner, "w")]
    rows = [(part, float(SCALE)) for part in of_w]
    pick(head.q.weight, [*rows, (space["held"], SCALE), (space["asked"], SCALE * tag(inner))])
    pick(head.v.weight, [(space["value"], 1.0)])
    put(head.o.weight, space["fetched"])
    threshold(mlp_after(model, place), space["fetched"], space["next"])
    # a pair is read off w and the value, an answer off the value
    weight = model.head.weight
    held = space["next", bits_for(columns(inner))]
    read = [(part, part) for part in of_w]
    for target, source in (*read, (held, space["held"])):
        weight[first:, target] = embed[first:, source]
    weight[: inner.answers, space["next"]] = signs(inner.answers, values)
    lift = float(1 << bits_for(sum(map(bits_for, inner.branching)) + values + 2))
    weight[first:, space["final"]] = -lift
    weight[: inner.answers, space["final"]] = lift
    return model


def columns(task: SeqComp) -> int:
    """Values that a pair may hold: N_{L-2}, or m where L = 1."""
    return task.N(max(task.L - 2, 0))


def spaces(task: SeqComp) -> Spaces:
    """The residual stream, as in the table above."""
    of_w = [bits_for(count) for count in task.branching]
    values = bits_for(task.answers)
    return Spaces(
        **dict(zip(parts(task, "row"), of_w, strict=True)),
        column=bits_for(columns(task)),
        level=bits_for(task.L + 1),
        asked=bits_for(task.L + 1),
        final=1,
        **dict(zip(parts(task, "w"), of_w, strict=True)),
        held=bits_for(columns(task)),
        value=values,
        fetched=values,
        next=values,
    )


def asked_with(task: SeqComp) -> list[str]:
    """The spaces that keys hold."""
    return [*parts(task, "row"), "column", "level"]


def tag(task: SeqComp) -> float:
    """c: the least power of two from (2 + the largest D) / 2 on."""
    largest = bits_for(columns(task)) + max(map(bits_for, task.branching), default=0)
    return float(1 << bits_for(-(-(2 + largest) // 2)))


def write_addresses(task: SeqComp, position: Tensor, space: Spaces, level_bits: Tensor) -> None:
    """What the positions of entries hold of their address: each level its row in a space of its
    own.
    """
    for level, entries, row, column in written_entries(task):
        if level > 1:
            position[entries, space[f"row_{level - 1}"]] = row
        position[entries, space["column", column.shape[1]]] = column
        position[entries, space["level"]] = level_bits[level]


LARGER = 2 * SCALE
"""s: a power of two, so that scores are exact."""


@recipe(
    "encoder",
    SeqComp,
    takes=(
        "1 + ceil(log2(L+1)) full layers with causal=false, with a key dimension for each bit of w,"
        " of N_{L-2} values and of L+2 levels"
    ),
)
def encoder(task: SeqComp, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """1 + ceil(log2(L+1)) full layers that are not causal."""
    rounds = bits_for(task.L + 1)
    space = encoder_spaces(task)
    keys = max(2, sum(space.widths()[name] for name in asked_with(task)))
    widths = space.widths()
    values = max(widths["fetched"], widths["fetched_1"])
    if architecture is None:
        part = Full(heads=1, head_dim=max(keys, values), causal=False)
        architecture = stack([part] * (1 + rounds))
    first, *rest = (slot.place for slot in slots("encoder", task, architecture))
    model = empty_model(task, architecture, space, hidden=4 * values)
    position, embed = model.position.weight, model.embed.weight
    level_bits = signs(task.L + 2, bits_for(task.L + 2))
    write_addresses(task, position, space, level_bits)
    for level, entries, *_ in written_entries(task):
        position[entries, space["next_0"]] = level_bits[level + 1]
        position[entries, space["final_0"]] = 1.0 if level == task.L else -1.0
    position[task.position_z0, space["next_0"]] = level_bits[task.L + 1]
    position[task.position_z0, space["final_0"]] = 1.0
    position[task.position_z0, space["is_z0"]] = 1.0
    position[task.position_w, space["next_0"]] = level_bits[1]
    position[task.position_w, space["final_0"]] = -1.0
    position[task.position_w, space["is_w"]] = 1.0
    position[:, space["one"]] = 1.0
    write_parts(task, embed[: task.w_values], space, np.arange(task.w_values))
    embed[: task.answers, space["value"]] = signs(task.answers, bits_for(task.answers))

    head = mixer_at(model, first, SoftmaxMixer)
    pick(head.k.weight, [(space["is_w"], LARGER), (space["is_z0"], LARGER)])
    pick(head.q.weight, [(space["one"], LARGER), (space["is_w"], LARGER)])
    # one - is_w
    pick(head.q.weight, [(space["is_w"], -LARGER)])
    own = [space[name] for name in [*parts(task, "w"), "value"]]
    pick(head.v.weight, [(part, 1.0) for part in own])
    put(head.o.weight, space["fetched"])
    write_first(mlp_after(model, first), task, space)
    for number, place in enumerate(rest):
        head = mixer_at(model, place, SoftmaxMixer)
        held, following, final = (space[f"{name}_{number}"] for name in ("held", "next", "final"))
        pick(head.k.weight, [(space[name], LARGER) for name in asked_with(task)])
        asked = space[f"held_{number}", bits_for(columns(task))]
        pick(
            head.q.weight,
            [(space["all_w"], LARGER), (asked, LARGER), (following, LARGER * tag(task))],
        )
        pick(head.v.weight, [(held, 1.0), (following, 1.0), (final, 1.0)])
        fetched = space[f"fetched_{number + 1}"]
        put(head.o.weight, fetched)
        sources = [*every(held), *every(following), *every(final)]
        targets = [
            column
            for name in ("held", "next", "final")
            for column in every(space[f"{name}_{number + 1}"])
        ]
        mlp = mlp_after(model, place)
        for unit, (y, x, target) in enumerate(zip(every(fetched), sources, targets, strict=True)):
            # 4 (1 + f) and 4 (1 - f)
            choose(mlp, 4 * unit, [(y, 4.0, 4.0), (x, 4.0, -4.0)], target, final.start)
    model.head.weight[:, space[f"held_{rounds}"]] = signs(task.answers, bits_for(task.answers))
    return model


def parts(task: SeqComp, name: str) -> list[str]:
    """The spaces of the parts of w."""
    return [f"{name}_{number}" for number in range(1, task.L)]


def every(space: slice) -> range:
    """The coordinates of a space."""
    return range(space.start, space.stop)


def encoder_spaces(task: SeqComp) -> Spaces:
    """The residual stream, as in the table above."""
    of_w = [bits_for(count) for count in task.branching]
    value = bits_for(task.answers)
    level = bits_for(task.L + 2)
    found = dict(zip(parts(task, "row"), of_w, strict=True))
    found |= {"column": bits_for(columns(task)), "level": level, "is_z0": 1, "is_w": 1, "one": 1}
    found |= dict(zip(parts(task, "w"), of_w, strict=True))
    found |= {"value": value, "fetched": sum(of_w) + value, "all_w": sum(of_w)}
    for number in range(bits_for(task.L + 1) + 1):
        if number:
            found[f"fetched_{number}"] = value + level + 1
        found |= {f"held_{number}": value, f"next_{number}": level, f"final_{number}": 1}
    return Spaces(**found)


def write_first(mlp: MLP, task: SeqComp, space: Spaces) -> None:
    """all_w: what was fetched, at w its own; held_0: its own, at w what was fetched."""
    own = [column for name in [*parts(task, "w"), "value"] for column in every(space[name])]
    targets = [*every(space["all_w"]), *every(space["held_0"])]
    is_w = space["is_w"].start
    of_w = len(every(space["all_w"]))
    for unit, (y, x, target) in enumerate(zip(every(space["fetched"]), own, targets, strict=True)):
        # f = 2 is_w - 1 closes what was fetched at w, or, of values, everywhere else
        held, other = (0.0, 8.0), (8.0, -8.0)
        if unit >= of_w:
            held, other = (8.0, -8.0), (0.0, 8.0)
        choose(mlp, 4 * unit, [(y, *held), (x, *other)], target, is_w)


def choose(
    mlp: MLP, unit: int, sources: Sequence[tuple[int, float, float]], target: int, by: int
) -> None:
    """Four hidden units from `unit` on: the target is one of two sources, cut to +-1. Each, a row
    (source, a, b), is closed where a + b f is large, f the coordinate `by`.
    """
    for number, (source, a, b) in enumerate(sources):
        read = [(source, 2.0), (by, -b)]
        step(mlp, unit + 2 * number, read, (1.0 - a, -1.0 - a), target)
    mlp.down.bias[target] = -1.0
