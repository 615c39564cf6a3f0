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
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from separatrix.constructions.parts.built import recipe
from separatrix.constructions.parts.placement import (
    SCALE,
    empty_model,
    fits,
    mlp_after,
    softmax_head,
)
from separatrix.constructions.parts.spaces import Spaces, pick, put, signs, threshold
from separatrix.constructions.seqcomp import written_entries
from separatrix.models.model import Model
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
    fits(task, arithmetic)
    space = spaces(inner)
    keys = sum(space.widths()[name] for name in asked_with(inner))
    values = bits_for(inner.answers)
    architecture = architecture or stack([Full(heads=1, head_dim=max(keys, values))])
    ((place, *_),) = slots("thought", task, architecture)
    model = empty_model(task, architecture, width=space.width, hidden=2 * values)
    write_positions(inner, model, space)
    write_tokens(task, inner, model, space)

    head = softmax_head(model, place)
    parts = [f"{number}" for number in range(1, inner.L)]
    pick(head.k.weight, [(space[name], SCALE) for name in asked_with(inner)])
    rows = [(space[f"w_{part}"], float(SCALE)) for part in parts]
    pick(head.q.weight, [*rows, (space["held"], SCALE), (space["asked"], SCALE * tag(inner))])
    pick(head.v.weight, [(space["value"], 1.0)])
    put(head.o.weight, space["fetched"])
    threshold(mlp_after(model, place), space["fetched"], space["next"])
    write_head(task, inner, model, space)
    return model


def columns(task: SeqComp) -> int:
    """Values that a pair may hold: N_{L-2}, or m where L = 1."""
    return task.N(max(task.L - 2, 0))


def spaces(task: SeqComp) -> Spaces:
    """The residual stream, as in the table above."""
    parts = {f"{number}": bits_for(count) for number, count in enumerate(task.branching, 1)}
    values = bits_for(task.answers)
    return Spaces(
        **{f"row_{number}": width for number, width in parts.items()},
        column=bits_for(columns(task)),
        level=bits_for(task.L + 1),
        asked=bits_for(task.L + 1),
        final=1,
        **{f"w_{number}": width for number, width in parts.items()},
        held=bits_for(columns(task)),
        value=values,
        fetched=values,
        next=values,
    )


def asked_with(task: SeqComp) -> list[str]:
    """The spaces that keys hold."""
    return [*(f"row_{number}" for number in range(1, task.L)), "column", "level"]


def tag(task: SeqComp) -> float:
    """c: the least power of two from (2 + the largest D) / 2 on."""
    largest = bits_for(columns(task)) + max(map(bits_for, task.branching), default=0)
    return float(1 << bits_for(-(-(2 + largest) // 2)))


def write_positions(task: SeqComp, model: Model, space: Spaces) -> None:
    """What every position holds (the first two columns of the table above)."""
    position = model.position.weight
    level_bits = signs(task.L + 1, bits_for(task.L + 1))
    position[task.position_z0, space["level"]] = level_bits[0]
    write_addresses(task, position, space, level_bits)
    position[task.position_w :, space["asked"]] = level_bits
    position[task.position_w :, space["final"]] = -1.0
    position[-1, space["final"]] = 1.0


def write_addresses(task: SeqComp, position: Tensor, space: Spaces, level_bits: Tensor) -> None:
    """What the positions of entries hold of their address: each level its row in a space of its
    own.
    """
    for level, entries, row, column in written_entries(task):
        if level > 1:
            position[entries, space[f"row_{level - 1}"]] = row
        position[entries, space.first("column", column.shape[1])] = column
        position[entries, space["level"]] = level_bits[level]


def write_tokens(task: Thought, inner: SeqComp, model: Model, space: Spaces) -> None:
    """What tokens of the prompt hold, and what pairs do."""
    embed = model.embed.weight
    first = inner.vocabulary
    # a row for each pair: w counts in steps of the values
    w, value = np.divmod(np.arange(inner.w_values * columns(inner)), columns(inner))
    for tokens, of in (
        (slice(0, inner.w_values), np.arange(inner.w_values)),
        (slice(first, None), w),
    ):
        for number, part in enumerate(inner.split_w(of), 1):
            bits = bits_for(inner.branching[number - 1])
            embed[tokens, space[f"w_{number}"]] = signs(part, bits)
    embed[first:, space["held"]] = signs(value, bits_for(columns(inner)))
    embed[: inner.answers, space["value"]] = signs(inner.answers, bits_for(inner.answers))


def write_head(task: Thought, inner: SeqComp, model: Model, space: Spaces) -> None:
    """The logits above: a pair is read off w and the value, an answer off the value."""
    weight = model.head.weight
    first = inner.vocabulary
    for number in range(1, inner.L):
        weight[first:, space[f"w_{number}"]] = model.embed.weight[first:, space[f"w_{number}"]]
    width = bits_for(columns(inner))
    weight[first:, space.first("next", width)] = model.embed.weight[first:, space["held"]]
    weight[: inner.answers, space["next"]] = signs(inner.answers, bits_for(inner.answers))
    bits = sum(map(bits_for, inner.branching)) + bits_for(inner.answers)
    lift = float(1 << bits_for(bits + 2))
    weight[first:, space["final"]] = -lift
    weight[: inner.answers, space["final"]] = lift
